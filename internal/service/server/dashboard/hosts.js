// The list of hosts: those in a state, with a part of a name, in a chosen order.

import { post } from "./client.js";
import { command } from "./dialog.js";
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

// commands are the buttons for the chosen hosts. One after the other is told; the first that fails ends it.
function commands(shared, names) {
  if (!names.length) return [];
  const some = names.length === 1 ? names[0] : `${count(names.length)} hosts`;
  const each = (action, said) => async (answer) => {
    let [done, why] = [0, []];
    for (const name of names) {
      try {
        const { incomplete } = (await post(`/api/v1/hosts/${encodeURIComponent(name)}/${action}`, answer)) ?? {};
        if (incomplete) why = incomplete.why;
        done++;
      } catch (error) {
        throw new Error(`${name}: ${error.message}; ${done} of ${names.length} hosts before it have followed`);
      }
    }
    return { done: `${some} ${names.length === 1 ? "is" : "are"} ${said}`, incomplete: why.length ? { why } : undefined };
  };
  return [
    command(shared, "Pause", { title: `Pause ${some}?`, text: "No request to them begins until they are resumed." }, () => each("pause", "paused")({})),
    command(shared, "Resume", { title: `Resume ${some}?`, text: "Their other holds stay." }, () => each("resume", "resumed")({})),
    command(shared, "Set delay", { title: `Delay of ${some}`, text: "The least seconds between two requests to each of them; 0 restores the settings. A longer crawl delay of a robots.txt stays in force.",
      fields: [{ name: "seconds", label: "Seconds", type: "number", min: 0, step: "any", required: true }] }, ({ seconds }) => each("delay", "given the delay")({ seconds: Number(seconds) })),
  ];
}

export async function hosts(argument, shared) {
  const shown = await list(shared, {
    path: "/api/v1/hosts", rows: "hosts", csv: "/api/v1/export/hosts", page: "hosts", wanted: { sort: "waiting", ...parse(argument) },
    filters: [
      { key: "contains", label: "Part of the name" },
      { key: "state", label: "State", options: states.map((s) => [s, s || "all"]) },
      { key: "sort", label: "Order", options: orders },
    ],
    columns: hostColumns, name: (h) => h.host, actions: (_, names) => commands(shared, names),
  });
  return { title: "Hosts", node: page("Hosts", "", panel("List", shown)), on: {} };
}
