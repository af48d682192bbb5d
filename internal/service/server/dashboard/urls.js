// The list of URLs: those of a host, in a state, for a reason, with a status, or with a part of the URL; and what can be done with them.

import { post } from "./client.js";
import { command } from "./dialog.js";
import { count, el, panel, time, urlLink } from "./dom.js";
import { list, parse } from "./list.js";

const states = ["", "queued", "fetched", "redirected", "failed", "denied", "excluded", "retrying"];
const canPutBack = ["failed", "denied", "excluded", "redirected", "retrying"];

export const urlColumns = [
  { title: "URL", cell: (u) => urlLink(u.url) }, { title: "State", cell: (u) => u.state }, { title: "Why", cell: (u) => [u.reason, u.note].filter(Boolean).join(": ") },
  { title: "Status", number: true, cell: (u) => u.status || "" }, { title: "Found on", cell: (u) => (u.via ? urlLink(u.via) : u.seed ? "a seed" : "") }, { title: "Fetched", cell: (u) => time(u.last_fetched) },
];

// selection is what the API puts back for what is shown.
export function selection({ host, state, reason, status, contains }) {
  const wanted = {};
  if (host) wanted.host = host;
  if (state) wanted.states = [state];
  if (reason) wanted.reasons = [reason];
  if (status) wanted.statuses = [Number(status)];
  if (contains) wanted.pattern = contains.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  return wanted;
}

// actions are the buttons for what is shown.
export function actions(shared) {
  return (wanted) => {
    const chosen = selection(wanted);
    const made = [];
    if (Object.keys(chosen).length && (!wanted.state || canPutBack.includes(wanted.state))) {
      made.push(command(shared, "Retry these", { title: "Put these URLs back into their queues?", text: "Those that failed, were denied or excluded are due at once. Delays, backoffs and robots.txt apply as usual." },
        async () => {
          const last = await post("/api/v1/urls/retry", chosen);
          if (last.error) throw new Error(last.error);
          shared.later(`${count(last.back)} of ${count(last.looked)} inspected URLs were put back`);
        }, "main"));
    }
    if (wanted.host && Object.keys(chosen).length === 1) {
      made.push(command(shared, "Delete these", { title: `Delete all URLs of ${wanted.host}?`, text: "They are new when they are found again. The output stays. This cannot be undone." },
        () => post("/api/v1/urls/delete", { host: wanted.host }), "danger"));
    }
    return made;
  };
}

export async function urls(argument, shared) {
  const shown = await list(shared, {
    path: "/api/v1/urls", rows: "urls", csv: "/api/v1/export", page: "urls", wanted: parse(argument), columns: urlColumns, actions: actions(shared),
    filters: [
      { key: "contains", label: "Part of the URL" }, { key: "host", label: "Host" },
      { key: "state", label: "State", options: states.map((s) => [s, s || "all"]) },
      { key: "reason", label: "Reason" }, { key: "status", label: "Status", inputmode: "numeric", pattern: "[1-9][0-9][0-9]", size: 4 },
    ],
  });
  const node = el("div", {}, el("h1", {}, "URLs"), panel("List", shown));
  node.style.display = "contents";
  return { title: "URLs", node, on: {} };
}
