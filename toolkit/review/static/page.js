"use strict";
// Keeps the page up to date. Without it everything works by reloading.
(() => {
  if (!document.querySelector("nav") || !window.EventSource) return;
  const base = document.body.dataset.base;
  const back = location.pathname === base + "/back";
  const news = document.getElementById("news");
  const touched = () => {
    const at = document.activeElement;
    const writing = at && at.closest("main") && /^(INPUT|TEXTAREA|SELECT|BUTTON)$/.test(at.tagName);
    const changed = [...document.querySelectorAll("main input, main textarea")].some(
      (field) => field.type !== "hidden" && field.value !== field.defaultValue);
    return writing || changed || document.querySelector("main details[open]");
  };
  const refresh = async () => {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
    if (!answer.ok || answer.redirected) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    document.title = page.title;
    document.querySelector("nav").replaceWith(page.querySelector("nav"));
    // Nothing is taken from under the hands of somebody who reads or writes.
    if (touched() || document.body.dataset.still) {
      news.hidden = false;
      return;
    }
    document.querySelector("main").replaceWith(page.querySelector("main"));
  };
  if (back) document.body.dataset.still = "1";
  const events = new EventSource(base + "/events?mark=" + document.body.dataset.mark);
  let waiting = null;
  events.addEventListener("news", () => {
    if (waiting || back) return;
    waiting = setTimeout(() => { waiting = null; refresh(); }, 300);
  });
})();
