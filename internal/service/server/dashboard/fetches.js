// The newest fetches, as they end.

import { bytes, clock, duration, el, hostLink, panel, table, urlLink } from "./dom.js";

export function fetchTable(list) {
  return table("Newest first", [
    { title: "Time", cell: (f) => clock(f.at) },
    { title: "Result", cell: (f) => el("span", { class: f.error || f.status >= 400 ? "bad" : "good" }, f.error || String(f.status)) },
    { title: "URL", cell: (f) => urlLink(f.url) },
    { title: "Host", cell: (f) => hostLink(f.host) },
    { title: "Size", number: true, cell: (f) => bytes(f.bytes) },
    { title: "Took", number: true, cell: (f) => duration(f.seconds) },
  ], list);
}

export async function fetches(_, shared) {
  let held = false;
  const list = el("div");
  const show = () => held || list.replaceChildren(fetchTable(shared.recent));
  const hold = el("button", {
    type: "button", "aria-pressed": "false",
    click() {
      held = !held;
      hold.setAttribute("aria-pressed", held);
      hold.textContent = held ? "Follow" : "Hold";
      show();
    },
  }, "Hold");
  show();
  const node = el("div", {}, el("div", { class: "tools" }, el("h1", {}, "Fetches"), hold), panel("Recent", list));
  node.style.display = "contents";
  return { title: "Fetches", node, on: { fetches: show } };
}
