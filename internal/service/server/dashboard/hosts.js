// The list of hosts: those in a state, with a part of a name, in a chosen order.

import { bytes, count, duration, hostLink, page, panel, time } from "./dom.js";
import { list, parse } from "./list.js";

const states = ["", "walled", "suspected", "failing", "held", "paused", "busy", "ready", "waiting", "idle"];
const orders = [["waiting", "most waiting"], ["failures", "largest share of failures"], ["finish", "longest to finish"], ["delay", "longest delay"], ["requests", "most requests"], ["bytes", "most bytes"], ["urls", "most URLs"], ["next", "next request"], ["name", "name"]];

export const hostColumns = [
  { title: "Host", cell: (h) => hostLink(h.host) },
  { title: "State", cell: (h) => (h.suspected ? `${h.state}, wall suspected` : h.state) },
  { title: "Why", cell: (h) => [h.reason, h.trouble].filter(Boolean).join(": ") },
  { title: "Next", number: true, cell: (h) => time(h.next) },
  { title: "Delay", number: true, cell: (h) => duration(h.delay_seconds) },
  { title: "Waiting", number: true, cell: (h) => count(h.waiting) },
  { title: "URLs", number: true, cell: (h) => count(h.known) },
  { title: "Failed", number: true, cell: (h) => (h.failure_share ? `${(100 * h.failure_share).toFixed(1)} %` : "") },
  { title: "Requests", number: true, cell: (h) => count(h.requests) },
  { title: "Size", number: true, cell: (h) => bytes(h.bytes) },
  { title: "Finish", number: true, cell: (h) => (h.waiting ? duration(h.finish_seconds) : "") },
];

export async function hosts(argument, shared) {
  const shown = await list(shared, {
    path: "/api/v1/hosts", rows: "hosts", csv: "/api/v1/export/hosts", page: "hosts", wanted: { sort: "waiting", ...parse(argument) },
    filters: [
      { key: "contains", label: "Part of the name" },
      { key: "state", label: "State", options: states.map((s) => [s, s || "all"]) },
      { key: "sort", label: "Order", options: orders },
    ],
    columns: hostColumns,
  });
  return { title: "Hosts", node: page("Hosts", "", panel("List", shown)), on: {} };
}
