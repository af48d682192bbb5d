// A list to work on: what it shows can be narrowed, has a count and more pages, and comes as CSV.

import { get, query } from "./client.js";
import { count, el, quiet, refill, table } from "./dom.js";

// pagesAtOnce bounds the requests for one page: a page of a long search may be empty and not the last.
const pagesAtOnce = 20;

// parse reads what a list is narrowed to from the part of the address behind its page.
export const parse = (argument) => Object.fromEntries(new URLSearchParams(argument));

// list shows {path, rows, csv, page, filters, wanted, columns, actions}: rows is the key of the rows in the answer, csv the path of all of them,
// page the name in the address, a filter {key, label, options} or {key, label, type}, and actions(wanted) are buttons for what is shown.
// A list that is slow comes before its rows do. With name(row) rows can be chosen, and actions(wanted, chosen) gets those that are.
export async function list(shared, { path, rows: key, csv, page, filters = [], wanted, columns, actions = () => [], name, slow }) {
  const { signal } = shared;
  const place = el("div", {}, quiet("searching"));
  const buttons = el("div", { class: "tools" });
  const more = el("button", { type: "button", hidden: true, click: () => load(false).catch(fail) }, "More");
  const fail = (error) => shared.fail(error, signal);
  let [rows, next, matching, turn] = [[], "", -1, 0];
  const chosen = new Set();
  const choose = (row) => el("input", { type: "checkbox", "aria-label": `Choose ${name(row)}`, checked: chosen.has(name(row)), change: (e) => { chosen[e.target.checked ? "add" : "delete"](name(row)); showButtons(); } });
  const [first, ...others] = columns;
  const shown = name ? [{ ...first, cell: (row) => el("span", { class: "choice" }, choose(row), first.cell(row)) }, ...others] : columns;

  function showRows() {
    const all = matching >= 0 ? `${count(rows.length)} of ${count(matching)}` : `${count(rows.length)}${next ? ", and there may be more" : ""}`;
    refill(place, rows.length ? table(all, shown, rows) : quiet(next ? "none so far" : "none"));
  }
  function showButtons() {
    const { sort, ...narrowed } = wanted;
    refill(buttons, rows.length || next ? el("a", { class: "button", href: `${csv}?${query({ ...narrowed, format: "csv" })}`, download: "" }, "CSV") : "",
      name && rows.length ? el("button", { type: "button", click: chooseAll }, chosen.size ? "Choose none" : "Choose all shown") : "", ...actions(wanted, name ? rows.filter((row) => chosen.has(name(row))) : []));
  }
  function chooseAll() {
    if (chosen.size) chosen.clear();
    else for (const row of rows) chosen.add(name(row));
    showRows();
    showButtons();
  }

  async function load(restart) {
    const mine = restart ? ++turn : turn;
    if (restart) {
      [rows, next, matching] = [[], "", -1];
      chosen.clear();
    }
    more.disabled = true;
    for (let i = 0, before = rows.length; i < pagesAtOnce && (i === 0 || (next && rows.length === before)); i++) {
      const answer = await get(`${path}?${query({ ...wanted, [key === "urls" ? "from" : "after"]: next, limit: 50 })}`, signal);
      if (mine !== turn) return; // the list is another one meanwhile
      rows.push(...answer[key]);
      next = answer.next ?? "";
      if (i === 0 && answer.matching >= 0) matching = answer.matching;
    }
    more.hidden = !next;
    more.disabled = false;
    more.textContent = rows.length ? "More" : "Search on";
    showRows();
    showButtons();
  }
  function change(filter, value) {
    wanted[filter] = value;
    if (page) history.replaceState(null, "", `#/${page}/${query(wanted)}`);
    load(true).catch(fail);
  }
  const inputs = filters.map(({ key: filter, label, options, ...rest }) => el("label", {}, label, options
    ? el("select", { name: filter, change: (e) => change(filter, e.target.value) }, options.map(([value, text]) => el("option", { value, selected: value === (wanted[filter] ?? "") }, text)))
    : el("input", { name: filter, type: "search", value: wanted[filter], change: (e) => change(filter, e.target.value.trim()), ...rest })));
  const loading = load(true);
  if (slow) loading.catch(fail);
  else await loading;
  return el("div", { class: "list" }, el("div", { class: "tools" }, inputs, buttons), place, more);
}
