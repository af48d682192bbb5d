// The list of hosts: a page at a time, in a chosen order.

import { get, query } from "./client.js";
import { bytes, count, duration, el, hostLink, panel, table, time } from "./dom.js";

const states = ["", "ready", "busy", "waiting", "trouble", "held", "paused", "idle"];
const orders = [["waiting", "most waiting"], ["finish", "longest to finish"], ["delay", "longest delay"], ["requests", "most requests"], ["bytes", "most bytes"], ["urls", "most URLs"], ["next", "next request"], ["name", "name"]];

export async function hosts(_, shared) {
  const wanted = { state: "", sort: "waiting" };
  const list = el("div");
  const more = el("button", { type: "button", hidden: true, click: () => load(false).catch((e) => shared.say(e.message)) }, "More");
  let rows = [];
  let after = "";

  async function load(restart) {
    if (restart) [rows, after] = [[], ""];
    const page = await get(`/api/v1/hosts?${query({ ...wanted, after, limit: 50 })}`, shared.signal);
    rows.push(...page.hosts);
    after = page.next ?? "";
    more.hidden = !after;
    list.replaceChildren(table(`${count(rows.length)} of ${count(page.matching)}`, [
      { title: "Host", cell: (h) => hostLink(h.host) },
      { title: "State", cell: (h) => h.state },
      { title: "Why", cell: (h) => [h.reason, h.trouble].filter(Boolean).join(": ") },
      { title: "Next", cell: (h) => time(h.next) },
      { title: "Delay", number: true, cell: (h) => duration(h.delay_seconds) },
      { title: "Waiting", number: true, cell: (h) => count(h.waiting) },
      { title: "URLs", number: true, cell: (h) => count(h.known) },
      { title: "Requests", number: true, cell: (h) => count(h.requests) },
      { title: "Size", number: true, cell: (h) => bytes(h.bytes) },
      { title: "Finish", number: true, cell: (h) => duration(h.finish_seconds) },
    ], rows));
  }
  const choose = (key, id, label, options) => el("label", { for: id }, label, el("select", {
    id, change(event) { wanted[key] = event.target.value; load(true).catch((e) => shared.say(e.message)); },
  }, options.map(([value, name]) => el("option", { value }, name))));
  await load(true);
  const node = el("div", {},
    el("h1", {}, "Hosts"),
    el("div", { class: "tools" }, choose("state", "state-filter", "State", states.map((s) => [s, s || "all"])), choose("sort", "sort", "Order", orders)),
    panel("List", list, more));
  node.style.display = "contents";
  return { title: "Hosts", node, on: {} };
}
