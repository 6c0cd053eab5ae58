"use strict";
// Only the rows in sight are in the document; names and reasons are set as text, never as markup.
const HEIGHT = 28;
const MARGIN = 12;
const data = JSON.parse(document.getElementById("data").textContent);
const part = (id) => document.getElementById(id);
const grid = part("grid");
const rows = part("rows");
const state = { shown: data.rows, columns: [], row: 0, column: 0 };
const paths = data.rows.map((row) => row.path.toLowerCase());

function unseen(text) {
  // Characters that move or hide others are written out.
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu, (c) => "\\u{" + c.codePointAt(0).toString(16) + "}");
}

function element(kind, text, role, className) {
  const made = document.createElement(kind);
  made.textContent = text;
  if (role) made.setAttribute("role", role);
  if (className) made.className = className;
  return made;
}

function choices(id, every, values) {
  part(id).append(...["", ...values].map((value) => {
    const option = element("option", value || every);
    option.value = value;
    return option;
  }));
}

function filter() {
  const words = part("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  const [agent, action, effect] = ["agent", "action", "effect"].map((id) => part(id).value);
  state.columns = data.columns
    .map((column, at) => ({ ...column, at }))
    .filter((column) => (!agent || column.agent === agent) && (!action || column.action === action));
  state.shown = data.rows.filter((row, at) =>
    words.every((word) => paths[at].includes(word)) &&
    (!effect || state.columns.some((column) => data.cells[row.cells[column.at]].effect === effect)));
  state.row = 0;
  state.column = 0;
  head();
  part("count").textContent = `${state.shown.length} of ${data.rows.length} paths`;
  rows.style.height = `${state.shown.length * HEIGHT}px`;
  grid.setAttribute("aria-rowcount", String(state.shown.length + 1));
  grid.scrollTop = 0;
  draw();
}

function head() {
  document.documentElement.style.setProperty("--columns", String(state.columns.length));
  part("head").replaceChildren(
    element("div", "path", "columnheader"),
    ...state.columns.map((column) => element("div", unseen(`${column.agent}: ${column.action}`), "columnheader")),
  );
}

function draw() {
  const first = Math.max(0, Math.floor(grid.scrollTop / HEIGHT) - MARGIN);
  const last = Math.min(state.shown.length, first + Math.ceil(grid.clientHeight / HEIGHT) + 2 * MARGIN);
  const made = [];
  for (let at = first; at < last; at += 1) made.push(line(at));
  rows.replaceChildren(...made);
  grid.setAttribute("aria-activedescendant", state.shown.length ? `c${state.row}-${state.column}` : "");
}

function line(at) {
  const row = state.shown[at];
  const made = element("div", "", "row", "row");
  made.style.top = `${at * HEIGHT}px`;
  made.setAttribute("aria-rowindex", String(at + 2));
  const path = element("div", unseen(row.path) + (row.directory ? "/" : ""), "rowheader", "path");
  path.title = path.textContent;
  made.append(path);
  state.columns.forEach((column, number) => {
    const cell = data.cells[row.cells[column.at]];
    const box = element("div", cell.effect, "gridcell", `cell ${cell.effect}`);
    if (cell.effect === "deny" && cell.where) box.append(" ", element("small", unseen(cell.where)));
    box.id = `c${at}-${number}`;
    box.title = unseen(cell.because);
    box.setAttribute("aria-selected", String(at === state.row && number === state.column));
    box.addEventListener("click", () => choose(at, number));
    made.append(box);
  });
  return made;
}

function choose(row, column) {
  if (!state.shown.length || !state.columns.length) return;
  state.row = Math.max(0, Math.min(state.shown.length - 1, row));
  state.column = Math.max(0, Math.min(state.columns.length - 1, column));
  const top = state.row * HEIGHT;
  const sight = grid.clientHeight - 2 * HEIGHT;
  if (top < grid.scrollTop) grid.scrollTop = top;
  if (top > grid.scrollTop + sight) grid.scrollTop = top - sight;
  const chosen = state.shown[state.row];
  const { agent, action, at } = state.columns[state.column];
  const cell = data.cells[chosen.cells[at]];
  part("detail").textContent = `${unseen(`${action} ${chosen.path} for agent ${agent}: ${cell.effect}`)}\n${unseen(cell.because)}`;
  draw();
}

grid.addEventListener("keydown", (event) => {
  const page = Math.max(1, Math.floor(grid.clientHeight / HEIGHT) - 2);
  const moves = {
    ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1],
    PageDown: [page, 0], PageUp: [-page, 0], Home: [-state.shown.length, 0], End: [state.shown.length, 0],
    Enter: [0, 0], " ": [0, 0],
  };
  const move = moves[event.key];
  if (!move) return;
  event.preventDefault();
  choose(state.row + move[0], state.column + move[1]);
});

document.addEventListener("keydown", (event) => {
  if (event.key === "/" && !event.ctrlKey && !event.metaKey && document.activeElement !== part("search")) {
    event.preventDefault();
    part("search").focus();
  }
});

part("theme").addEventListener("click", () => {
  const list = document.documentElement.classList;
  const dark = list.contains("dark") || (!list.contains("light") && matchMedia("(prefers-color-scheme: dark)").matches);
  list.toggle("dark", !dark);
  list.toggle("light", dark);
});

part("filters").addEventListener("submit", (event) => event.preventDefault());
for (const id of ["search", "agent", "action", "effect"]) part(id).addEventListener("input", filter);
grid.addEventListener("scroll", draw);
addEventListener("resize", draw);
part("title").textContent = unseen(`What agents may do in ${data.root}`);
choices("agent", "all agents", [...new Set(data.columns.map((column) => column.agent))]);
choices("action", "all actions", [...new Set(data.columns.map((column) => column.action))]);
choices("effect", "any verdict", ["allow", "ask", "deny"]);
filter();
