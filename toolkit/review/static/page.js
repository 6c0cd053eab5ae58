"use strict";
// Keeps the page up to date, and moves between questions by keys. Without it everything works by reloading.
(() => {
  if (!document.querySelector("nav") || !window.EventSource) return;
  const base = document.body.dataset.base;
  const back = location.pathname === base + "/back";
  const news = document.getElementById("news");
  let waited = Number(document.body.dataset.waiting);
  // Nothing is taken from under the hands, or from under the pointer, of somebody who reads or writes.
  const touched = () => {
    const at = document.activeElement;
    const writing = at && at.closest("main") && /^(A|INPUT|TEXTAREA|SELECT|BUTTON|SUMMARY)$/.test(at.tagName);
    const changed = [...document.querySelectorAll("main input, main textarea")].some((field) =>
      field.type === "checkbox" || field.type === "radio"
        ? field.checked !== field.defaultChecked
        : field.type !== "hidden" && field.value !== field.defaultValue);
    return writing || changed || document.querySelector("main details[open], main :is(.rows, form):hover");
  };
  const tell = (waiting) => {
    const more = waiting - waited;
    const words = more === 1 ? "1 new question." : `${more} new questions.`;
    news.firstElementChild.textContent = more > 0 ? words : "There is something new.";
    news.hidden = false;
  };
  const refresh = async (waiting) => {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
    if (!answer.ok || answer.redirected) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    document.title = page.title;
    document.querySelector("nav").replaceWith(page.querySelector("nav"));
    if (touched() || document.querySelector("main [data-still]")) return tell(waiting);
    document.querySelector("main").replaceWith(page.querySelector("main"));
    waited = waiting;
    news.hidden = true;
  };
  const events = new EventSource(base + "/events?mark=" + document.body.dataset.mark);
  let coming = null;
  events.addEventListener("news", (event) => {
    if (coming || back) return;
    coming = setTimeout(() => { coming = null; refresh(Number(event.data)); }, 300);
  });
  // j and k move between the questions of the inbox; a link does the rest.
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select")) return;
    const step = { j: 1, k: -1 }[event.key];
    const all = [...document.querySelectorAll("a.what")];
    if (!step || !all.length) return;
    const at = all.indexOf(document.activeElement);
    all[Math.min(Math.max(at + step, 0), all.length - 1)].focus();
  });
})();
