// The newest fetches, as they end.

import { bytes, clock, duration, el, hostLink, page, panel, refill, table, urlLink } from "./dom.js";

export const result = (f) => el("span", { class: f.error || f.status >= 400 ? "bad" : "good" }, f.error || String(f.status));

export function fetchTable(list) {
  return table("Newest first", [
    { title: "Time", cell: (f) => clock(f.at) },
    { title: "Result", cell: result },
    { title: "URL", cell: (f) => urlLink(f.url) },
    { title: "Host", cell: (f) => hostLink(f.host) },
    { title: "Size", number: true, cell: (f) => bytes(f.bytes) },
    { title: "Took", number: true, cell: (f) => duration(f.seconds) },
  ], list);
}

export async function fetches(_, shared) {
  let held = false;
  const list = el("div", { class: "fetches" });
  const show = () => held || refill(list, fetchTable(shared.recent));
  const hold = el("button", {
    type: "button", "aria-pressed": "false",
    click() {
      held = !held;
      hold.setAttribute("aria-pressed", held);
      show();
    },
  }, "Hold");
  show();
  return { title: "Fetches", node: page("Fetches", hold, panel("Recent", list)), on: { fetches: show } };
}
