"use strict";
// The tree of verdicts, as the review pages show it. Only opened folders are in the document; names and reasons
// are set as text, never as markup.
const INNER = 300; // names of one folder that are shown at first
const FOUND = 200; // paths of a search that are shown
const AT_ONCE = 3; // agents beside each other
const EFFECTS = ["allow", "ask", "deny"];
const ACTIONS = ["read", "write", "delete"];
const data = JSON.parse(document.getElementById("data").textContent);
const part = (id) => document.getElementById(id);
const number = new Intl.NumberFormat("en");
const plural = (count, one, many = one + "s") => `${number.format(count)} ${count === 1 ? one : many}`;
const kindOf = (action) => action.split(".")[0];
const everybody = "default";
const known = [...new Set(data.columns.map((column) => column.agent))];
const agents = [...known.filter((one) => one !== everybody), ...known.filter((one) => one === everybody)];
const actions = ACTIONS.filter((action) => data.columns.some((column) => kindOf(column.action) === action));
const columns = agents.flatMap((agent) => actions.map((action) => ({ agent, action, at: data.columns.flatMap(
  (column, at) => (column.agent === agent && kindOf(column.action) === action ? [at] : [])) })));
const FILTERS = {
  "": ["all verdicts", null],
  differ: ["only where agents differ", (row) => actions.some((_, n) => {
    const kinds = columns.filter((column) => column.action === actions[n]).map(
      (column) => column.at.map((at) => effect(row, at)).join());
    return new Set(kinds).size > 1;
  })],
  delete: ["may delete", (row) => allows(row, "delete")],
  write: ["may write without asking", (row) => allows(row, "write")],
  denied: ["denied", (row) => row.cells.some((cell) => data.cells[cell].effect === "deny")],
};
const state = { show: "", words: [], opened: new Set(["."]), shown: new Map(), first: 0, agent: 0, why: null, nodes: null };

function effect(row, at) { return data.cells[row.cells[at]].effect; }

function allows(row, action) {
  return columns.some((column) => column.action === action && column.at.some((at) => effect(row, at) === "allow"));
}

// ------------------------------------------------------------------ text

function boxed(text) {
  // Characters that move or hide others are shown by their number, in a box.
  return text.split(/([\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}])/gu).filter(Boolean).map((piece) => {
    if (!/^[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]$/u.test(piece)) return piece;
    return element("span", "esc", "U+" + piece.codePointAt(0).toString(16).toUpperCase().padStart(4, "0"));
  });
}

function element(name, className, ...inner) {
  const made = document.createElement(name);
  if (className) made.className = className;
  made.append(...inner);
  return made;
}

function path(text, directory) {
  const made = element("span", "path");
  (text + (directory ? "/" : "")).split(/(?<=\/)(?=.)/su).forEach((piece, at) => {
    if (at) made.append(document.createElement("wbr"));
    made.append(...boxed(piece));
  });
  return made;
}

function button(className, press, ...inner) {
  const made = element("button", className, ...inner);
  made.type = "button";
  made.addEventListener("click", press);
  return made;
}

function day(seconds) {
  const date = new Date(seconds * 1000);
  const year = date.getFullYear() === new Date().getFullYear() ? {} : { year: "numeric" };
  return date.toLocaleDateString("en-GB", { day: "numeric", month: "short", ...year });
}

function agentName(agent) {
  return agent !== everybody ? boxed(agent) : [agents.length === 1 ? "every agent" : "everybody else"];
}

// ------------------------------------------------------------------ tree

const verdicts = new Map();

function verdict(row, column) {
  // The strictest effect, the kinds that are looser, and when its rule ends; equal ones are one object.
  const name = column.action + ":" + column.at.map((at) => row.cells[at]).join();
  let found = verdicts.get(name);
  if (!found) {
    const cells = column.at.map((at) => [data.columns[at].action, data.cells[row.cells[at]]]);
    const most = Math.max(...cells.map(([, cell]) => EFFECTS.indexOf(cell.effect)));
    const ends = cells.flatMap(([, cell]) => (cell.until === undefined ? [] : [cell.until]));
    found = {
      effect: EFFECTS[most],
      looser: cells.flatMap(([kind, cell]) => (EFFECTS.indexOf(cell.effect) < most ? [[kind.split(".")[1], cell.effect]] : [])),
      until: ends.length ? Math.min(...ends) : null,
    };
    verdicts.set(name, found);
  }
  return found;
}

const above = (one) => (one.includes("/") ? one.slice(0, one.lastIndexOf("/")) : ".");
const depth = (one) => (one === "." ? 0 : one.split("/").length);

function tree(keeps) {
  const nodes = new Map([[".", { path: ".", directory: true, files: 0, inner: [], counted: null }]]);
  const reach = (name) => {
    let node = nodes.get(name);
    if (!node) {
      node = { path: name, directory: true, files: 0, inner: [], counted: null };
      nodes.set(name, node);
      reach(above(name)).inner.push(node);
    }
    return node;
  };
  for (const row of data.rows) {
    if (keeps && (row.directory || !keeps(row))) continue;
    const node = reach(row.path);
    node.directory = row.directory;
    node.files = row.directory ? 0 : 1;
    node.counted = columns.map((column) => new Map([[verdict(row, column), 1]]));
  }
  for (const node of [...nodes.values()].sort((one, other) => depth(other.path) - depth(one.path))) {
    const inner = node.inner.filter((one) => one.files);
    if (inner.length) {
      node.files = inner.reduce((sum, one) => sum + one.files, 0);
      node.counted = columns.map((_, at) => {
        const sums = new Map();
        for (const one of inner) for (const [each, count] of one.counted[at]) sums.set(each, (sums.get(each) || 0) + count);
        return sums;
      });
    }
    node.counted ||= columns.map(() => new Map());
    node.inner.sort((one, other) => (other.directory - one.directory) || (one.path < other.path ? -1 : 1));
  }
  return nodes;
}

function sums(counter) {
  const found = { allow: 0, ask: 0, deny: 0 };
  for (const [each, count] of counter) found[each.effect] += count;
  return found;
}

function most(counter) {
  const found = sums(counter);
  return counter.size ? EFFECTS.reduce((one, other) => (found[other] >= found[one] ? other : one)) : "ask";
}

function notes(counter) {
  // What differs below, and by the kind of writing.
  const main = most(counter);
  const total = [...counter.values()].reduce((sum, count) => sum + count, 0);
  const found = sums(counter);
  const kinds = new Map();
  for (const [each, count] of counter) {
    for (const [kind, said] of each.effect === main ? each.looser : []) {
      const one = kinds.get(kind + said) || { kind, said, count: 0, ends: new Set() };
      one.count += count;
      one.ends.add(each.until);
      kinds.set(kind + said, one);
    }
  }
  const lines = [];
  for (const { kind, said, count, ends } of kinds.values()) {
    lines.push(`${count === total ? "" : number.format(count) + " "}${kind}: ${said}`);
    const [end] = ends;
    if (ends.size === 1 && end !== null) lines.push(`until ${day(end - 1)}`);
  }
  for (const one of EFFECTS) if (one !== main && found[one]) lines.push(`${number.format(found[one])} ${one}`);
  const ends = new Set([...counter.keys()].filter((one) => one.effect === main && !one.looser.length).map((one) => one.until));
  const [end] = ends;
  if (ends.size === 1 && end !== null) lines.push(`until ${day(end - 1)}`);
  return lines;
}

// ------------------------------------------------------------------ table

function shownColumns() {
  const some = agents.slice(state.first, state.first + AT_ONCE);
  return columns.map((column, at) => ({ ...column, number: at })).filter((column) => some.includes(column.agent));
}

function head() {
  const some = agents.slice(state.first, state.first + AT_ONCE);
  const top = element("tr", "", document.createElement("td"));
  const below = element("tr", "", heading("Path", "", "col"));
  some.forEach((agent, n) => {
    const wide = heading("", `first g${n + 1}`, "colgroup");
    wide.colSpan = actions.length;
    wide.append(...agentName(agent));
    top.append(wide);
    actions.forEach((action, at) => below.append(heading(action, `g${n + 1}${at ? "" : " first"}`, "col")));
  });
  part("head").replaceChildren(top, below);
  part("agents").hidden = some.length < 2;
  part("agents").replaceChildren(part("agents").firstElementChild, ...some.map((agent, n) => {
    const radio = element("input");
    Object.assign(radio, { type: "radio", name: "agent", id: `a${n + 1}`, checked: n === state.agent });
    radio.addEventListener("change", () => { state.agent = n; });
    return element("label", "chip", radio, " ", ...agentName(agent));
  }));
  const groups = [];
  for (let at = 0; at < agents.length && agents.length > AT_ONCE; at += AT_ONCE) {
    const names = agents.slice(at, at + AT_ONCE).flatMap((agent, n) => [n ? ", " : "", ...agentName(agent)]);
    groups.push(pressed(button("chip" + (at === state.first ? " on" : ""), () => { state.first = at; state.agent = 0; render(); }, ...names), at === state.first));
  }
  part("groups").hidden = !groups.length;
  part("groups").replaceChildren("Agents: ", ...groups);
}

function pressed(made, is) {
  made.setAttribute("aria-pressed", String(is));
  return made;
}

function heading(text, className, scope) {
  const made = element("th", className, text);
  made.scope = scope;
  return made;
}

function line(node, deep, label) {
  const made = element("tr", state.why && state.why.path === node.path ? "on" : "");
  const first = heading("", `d${Math.min(deep, 7) + 1}`, "row");
  const opened = state.opened.has(node.path);
  if (node.directory && node.path !== "." && !state.words.length) {
    const toggle = button("", () => { opened ? state.opened.delete(node.path) : state.opened.add(node.path); render(node.path); },
      element("span", "", opened ? "▾ " : "▸ "), path(label, true));
    toggle.firstChild.setAttribute("aria-hidden", "true");
    toggle.setAttribute("aria-expanded", String(opened));
    toggle.dataset.path = node.path;
    first.append(toggle);
  } else {
    first.append(path(label, node.directory));
  }
  made.append(first);
  const over = node.path === "." ? null : state.nodes.get(above(node.path));
  for (const column of shownColumns()) {
    const counter = node.counted[column.number];
    const said = most(counter);
    const small = notes(counter);
    const same = over && !small.length && said === most(over.counted[column.number]);
    const place = agents.indexOf(column.agent) - state.first + 1;
    const box = element("td", `g${place}${column.action === actions[0] ? " first" : ""}`);
    const cell = button(`cell ${said}${same ? " same" : ""}`, () => why(node, column), said);
    cell.setAttribute("aria-label", `${said}: why`);
    box.append(cell);
    if (small.length) box.append(element("span", "mixed", ...small.flatMap((text, at) => (at ? [document.createElement("br"), text] : [text]))));
    made.append(box);
  }
  return made;
}

function* inside(node, deep) {
  const limit = state.shown.get(node.path) || INNER;
  for (const one of node.inner.slice(0, limit)) {
    yield line(one, deep, one.path.slice(one.path.lastIndexOf("/") + 1));
    if (one.directory && state.opened.has(one.path)) yield* inside(one, deep + 1);
  }
  if (node.inner.length > limit) {
    const more = button("", () => { state.shown.set(node.path, limit + INNER); render(); }, `Show more: ${number.format(node.inner.length - limit)} are left`);
    const cell = element("td", "", more);
    cell.colSpan = 1 + shownColumns().length;
    yield element("tr", "", cell);
  }
}

function found() {
  return [...state.nodes.values()].filter((node) => node.path !== "." && state.words.every((word) => node.path.toLowerCase().includes(word)))
    .sort((one, other) => (one.path < other.path ? -1 : 1));
}

function render(focus) {
  head();
  const root = state.nodes.get(".");
  const all = data.rows.filter((row) => !row.directory).length;
  if (state.words.length) {
    const some = found();
    part("rows").replaceChildren(...some.slice(0, FOUND).map((node) => line(node, 0, node.path)));
    part("count").textContent = plural(some.length, "path has these words", "paths have these words")
      + (some.length > FOUND ? `; the first ${FOUND} are shown` : "");
  } else {
    part("rows").replaceChildren(line(root, 0, data.root), ...inside(root, 1));
    part("count").textContent = state.show ? `${plural(root.files, "file")} of ${number.format(all)} fit; counts are of these` : "";
  }
  part("chips").replaceChildren(...Object.entries(FILTERS).map(([name, [words, keeps]]) => pressed(
    button("chip" + (name === state.show ? " on" : ""), () => { state.show = name; state.nodes = tree(keeps); render(); }, words), name === state.show)));
  part("count").hidden = !part("count").textContent;
  if (focus !== undefined) [...document.querySelectorAll("#rows button[data-path]")].find((one) => one.dataset.path === focus)?.focus();
}

function why(node, column) {
  state.why = node;
  const inner = node.path === "." ? "" : node.path + "/";
  let rows = data.rows.filter((row) => !row.directory && (node.directory ? row.path.startsWith(inner) : row.path === node.path));
  if (!rows.length) rows = data.rows.filter((row) => row.path === node.path);
  const reasons = [];
  for (const at of column.at) {
    const counts = new Map();
    for (const row of rows) {
      const one = counts.get(row.cells[at]) || { count: 0, example: row.path };
      one.count += 1;
      counts.set(row.cells[at], one);
    }
    const sorted = [...counts].sort((one, other) => other[1].count - one[1].count);
    for (const [cell, one] of sorted) reasons.push([data.columns[at].action, data.cells[cell], one]);
  }
  part("asked").replaceChildren("Why: ", ...agentName(column.agent), `, ${column.action}, `,
    node.path === "." ? "the whole workspace" : path(node.path, node.directory));
  part("reasons").replaceChildren(...reasons.map(([action, cell, one]) => element("tr", "",
    labelled("Action", action), labelled("Verdict", element("span", `mark ${cell.effect}`, cell.effect)),
    labelled("Rule", ...boxed(cell.because)),
    labelled("Until", cell.until === undefined ? "no end" : new Date(cell.until * 1000).toLocaleString("en-GB")),
    labelled("Files", ...(node.directory ? [`${number.format(one.count)}, for instance `, path(one.example)] : ["this one"])))));
  part("rest").textContent = column.action === "write"
    ? "A cell shows the strictest kind of writing (create, replace, edit) that most of a folder gets; small text says what differs." : "";
  part("rest").hidden = column.action !== "write";
  part("why").hidden = false;
  render();
  part("why").scrollIntoView({ block: "nearest" });
  part("why").focus({ preventScroll: true });
}

function labelled(label, ...inner) {
  const made = element("td", "", element("div", "", ...inner));
  made.dataset.l = label;
  return made;
}

// ------------------------------------------------------------------ start

document.addEventListener("keydown", (event) => {
  if (event.key === "/" && !event.ctrlKey && !event.metaKey && document.activeElement !== part("search")) {
    event.preventDefault();
    part("search").focus();
  }
});
part("filters").addEventListener("submit", (event) => event.preventDefault());
part("search").addEventListener("input", () => {
  state.words = part("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  render();
});
part("root").append(...boxed(data.root));
part("facts").textContent = [
  plural(agents.length, "kind") + " of agents",
  plural(data.rows.filter((row) => !row.directory).length, "file"),
  data.every ? "with .git/ and ignored files" : ".git/ and ignored files are left out",
  ...(data.whole === false ? ["only the paths nearest to the root: the workspace has more"] : []),
  ...(data.unread ? [plural(data.unread, "folder") + " cannot be opened"] : []),
].join(" · ");
state.nodes = tree(null);
render();
