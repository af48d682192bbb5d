// The list of hosts: those in a state, with a part of a name, in a chosen order.

import { post } from "./client.js";
import { command, served } from "./dialog.js";
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

// commandHosts are the buttons that tell hosts, by their names, to wait. One after the other is told; the first that fails ends it.
export function commandHosts(shared, names, labels = ["Pause", "Resume", "Set delay"]) {
  const one = names.length === 1;
  const some = one ? names[0] : `${count(names.length)} hosts`;
  const are = `${some} ${one ? "is" : "are"}`;
  const each = (said, tell) => async (answer) => {
    let [done, why] = [0, []];
    for (const name of names) {
      try {
        const { incomplete, error } = (await tell(name, answer)) ?? {};
        if (error) throw new Error(error);
        if (incomplete) why = incomplete.why;
        done++;
      } catch (error) {
        throw new Error(`${name}: ${error.message}; ${done} of ${names.length} hosts before it have followed`);
      }
    }
    return { done: said, incomplete: why.length ? { why } : undefined };
  };
  const to = (action) => (name, answer) => post(`/api/v1/hosts/${encodeURIComponent(name)}/${action}`, answer);
  const [them, they] = one ? ["it", "it is"] : ["them", "they are"];
  return {
    some, each,
    waits: [
      command(shared, labels[0], { title: `Pause ${some}?`, text: `No request to ${them} begins until ${they} resumed.` }, () => each(`${are} paused`, to("pause"))({})),
      command(shared, labels[1], { title: `Resume ${some}?`, text: "Other holds stay." }, () => each(`${are} resumed`, to("resume"))({})),
      command(shared, labels[2], { title: `Delay of ${some}`, text: `The least seconds between two requests to ${one ? "it" : "each of them"}; 0 restores the settings. A longer crawl delay of a robots.txt stays in force.`,
        fields: [{ name: "seconds", label: "Seconds", type: "number", min: 0, step: "any", required: true }] }, ({ seconds }) => each(`${are} given the delay`, to("delay"))({ seconds: Number(seconds) })),
    ],
  };
}

// commands are the buttons for the hosts that are chosen.
function commands(shared, chosen) {
  if (!chosen.length) return [];
  const { some, each, waits } = commandHosts(shared, chosen.map((h) => h.host));
  const known = count(chosen.reduce((sum, h) => sum + h.known, 0));
  return [
    ...waits,
    served(shared, "/api/v1/urls/retry", command(shared, "Retry failed", { title: `Put the failed URLs of ${some} back into their queues?`, text: "They are due at once. Delays, backoffs and robots.txt apply as usual." },
      each(`The failed URLs of ${some} are put back`, (name) => post("/api/v1/urls/retry", { host: name, states: ["failed"] })))),
    served(shared, "/api/v1/urls/delete", command(shared, "Delete URLs", { title: `Delete the ${known} URLs of ${some}?`, text: "They are new when they are found again. The output stays. This cannot be undone." },
      each(`The URLs of ${some} are deleted`, (name) => post("/api/v1/urls/delete", { host: name })), "danger")),
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
    columns: hostColumns, name: (h) => h.host, actions: (_, chosen) => commands(shared, chosen),
  });
  return { title: "Hosts", node: page("Hosts", "", panel("List", shown)), on: {} };
}
