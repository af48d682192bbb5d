// The alarms: conditions that need somebody's attention, each with what to do. A program without their module has none.

import { get, serves } from "./client.js";
import { el, time } from "./dom.js";

// pages lead to what an alarm is about, by its code.
const pages = {
  walls: "hosts/state=walled", many_walls: "hosts/state=walled", robots_unreachable: "hosts/state=held", idle: "hosts/sort=waiting", parked: "hosts/sort=next",
  lost_node: "cluster", failing: "hosts/sort=failures", crashed: "urls/state=failed&reason=crash",
};
const kinds = { critical: "bad", warning: "warn", notice: "quiet" };

// alarms returns the alarms of now as a list, or "" if there are none.
export async function alarms(signal) {
  if (!(await serves("/api/v1/alarms"))) return "";
  const { alarms: list } = await get("/api/v1/alarms", signal);
  return list.length ? el("ul", { class: "attention", id: "alarms" }, list.map(row)) : "";
}

const row = (a) => el("li", {}, el("strong", { class: kinds[a.severity] ?? "quiet" }, a.severity), el("div", {},
  pages[a.code] ? el("a", { href: `#/${pages[a.code]}` }, a.title) : el("strong", {}, a.title), a.node && ` at ${a.node}`, `: ${a.text}`, a.since && [", since ", time(a.since)], el("div", { class: "quiet" }, `What to do: ${a.do}`)));
