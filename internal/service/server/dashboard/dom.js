// Elements from data. Texts of strangers only ever become text nodes.

// el makes an element. Attributes that are functions listen to an event of that name; class, text and others are set as they are.
export function el(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (typeof value === "function") made.addEventListener(key, value);
    else made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.flat(Infinity).filter((child) => child !== undefined && child !== null && child !== false && child !== ""));
  return made;
}

// page is what a page shows: its title with the tools for all of it, and its panels.
export const page = (title, tools, ...parts) => el("div", { class: "page" }, el("div", { class: "tools" }, el("h1", {}, title), tools), ...parts);

export const panel = (title, ...children) => el("section", { class: "panel" }, el("h2", {}, title), ...children);
export const columns = (...children) => el("div", { class: "columns" }, ...children);
export const quiet = (text) => el("p", { class: "quiet" }, text);

// facts is a list of names and values; values that are empty are left out, and so is a list of none.
export function facts(pairs) {
  const given = pairs.filter(([, value]) => value !== undefined && value !== null && value !== "" && value !== false);
  return given.length ? el("dl", { class: "facts" }, given.map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)])) : "";
}

// refill puts other children in a place; a link or a button that had the focus has it again.
export function refill(place, ...children) {
  const held = place.contains(document.activeElement) ? document.activeElement : null;
  place.replaceChildren(...children);
  if (!held) return;
  const same = held.hasAttribute("href")
    ? (x) => x.getAttribute("href") === held.getAttribute("href")
    : (x) => x.textContent === held.textContent;
  [...place.querySelectorAll(held.localName)].find(same)?.focus({ preventScroll: true });
}

// table has columns of {title, number, cell(row)}. On a narrow screen each row is a card.
export function table(caption, columns, rows) {
  const kind = (column) => (column.number ? "number" : "text");
  if (!rows.length) return el("p", { class: "quiet" }, `${caption}: none`);
  return el("div", { class: "scroll" }, el("table", {},
    el("caption", {}, caption),
    el("thead", {}, el("tr", {}, columns.map((c) => el("th", { scope: "col", class: c.number && "number" }, c.title)))),
    el("tbody", {}, rows.map((row) => el("tr", {}, columns.map((c) => el("td", { class: kind(c), "data-title": c.title }, c.cell(row) ?? "")))))));
}

// bars shows counts as a list that reads well without the bars, too. A name may lead to a page: entries are [name, count, page].
export function bars(entries, bad = () => false) {
  const most = Math.max(1, ...entries.map(([, n]) => n));
  if (!entries.length) return quiet("none yet");
  return el("dl", { class: "bars" }, entries.map(([name, n, to]) => {
    const fill = el("div", { class: bad(name) ? "fill bad" : "fill" });
    fill.style.width = `${(100 * n) / most}%`;
    return [el("dt", {}, to ? el("a", { href: `#/${to}` }, name) : name), el("dd", { class: "track", "aria-hidden": "true" }, fill), el("dd", { class: "count" }, count(n))];
  }));
}

// middle cuts a long text in its middle: its end says as much as its beginning.
const middle = (text, most) => (text.length <= most ? text : `${text.slice(0, most / 2)}…${text.slice(-most / 2)}`);
const link = (page, text, most) => el("a", { href: `#/${page}/${encodeURIComponent(text)}`, title: text.length > most && text }, middle(text, most));
export const hostLink = (name) => link("hosts", name, 40);
export const urlLink = (url) => link("url", url, 80);

const plain = new Intl.NumberFormat("en");
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
export const count = (n) => (n === undefined ? "" : n < 100000 ? plain.format(n) : short.format(n));
export const rate = (n) => (n === undefined ? "" : n < 10 ? n.toFixed(1) : count(Math.round(n)));

// unbroken keeps a number and its units on one line.
const unbroken = (text) => text.replaceAll(" ", "\u00a0");

export function bytes(n) {
  if (n === undefined) return "";
  let unit = 0;
  for (; n >= 1024 && unit < 5; unit++) n /= 1024;
  return unbroken(`${n < 10 && unit ? n.toFixed(1) : Math.round(n)} ${["B", "KiB", "MiB", "GiB", "TiB", "PiB"][unit]}`);
}

export function duration(seconds) {
  if (seconds === undefined || seconds === null) return "";
  if (seconds < 1) return unbroken(`${Math.round(seconds * 1000)} ms`);
  if (seconds < 60) return unbroken(`${Number(seconds.toFixed(1))} s`);
  const units = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const first = units.findIndex(([size]) => seconds >= size);
  const [size, name] = units[first];
  const whole = Math.floor(seconds / size);
  const [next, nextName] = units[first + 1] ?? [0, ""];
  const rest = next ? Math.floor((seconds % size) / next) : 0;
  return unbroken(rest ? `${whole} ${name} ${rest} ${nextName}` : `${whole} ${name}`);
}

// Times are in UTC everywhere, as in the log, the commands and what the crawl says of itself. The frame shows the clock.
const utc = (date) => date.toISOString().replace("T", " ");
export const clockText = (date) => utc(date).slice(11, 19);
const stamp = (text, shown) => (text ? el("time", { datetime: text, title: `${utc(new Date(text)).slice(0, 23)} UTC` }, shown(new Date(text))) : "");

// time is short for today, and has the date for other days.
export const time = (text) => stamp(text, (date) => (utc(date).slice(0, 10) === utc(new Date()).slice(0, 10) ? clockText(date) : utc(date).slice(0, 16)));
export const clock = (text) => stamp(text, clockText);
