// The list of URLs: those of a host, in a state, for a reason, with a status, of a seed, or with a part of the URL; and what can be
// done with them.

import { post, send } from "./client.js";
import { command } from "./dialog.js";
import { count, el, page, panel, time, urlLink } from "./dom.js";
import { list, parse } from "./list.js";

const states = ["", "queued", "fetched", "redirected", "failed", "denied", "excluded", "retrying"];
export const canPutBack = ["failed", "denied", "excluded", "redirected", "retrying"];

export const urlColumns = [
  { title: "URL", cell: (u) => urlLink(u.url) }, { title: "State", cell: (u) => u.state }, { title: "Why", cell: (u) => [u.reason, u.note].filter(Boolean).join(": ") },
  { title: "Status", number: true, cell: (u) => String(u.status || "") }, { title: "Found on", cell: (u) => (u.via ? urlLink(u.via) : u.seed ? "a seed" : "") }, { title: "Fetched", number: true, cell: (u) => time(u.last_fetched) },
];

// selection is what the API puts back for what is shown; null if it has no such selection.
export function selection({ host, state, reason, status, contains, seed, tag }) {
  if (seed || tag || (state && !canPutBack.includes(state))) return null;
  const wanted = {};
  if (host) wanted.host = host;
  if (state) wanted.states = [state];
  if (reason) wanted.reasons = [reason];
  if (status) wanted.statuses = [Number(status)];
  if (contains) wanted.pattern = contains.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  return Object.keys(wanted).length ? wanted : null;
}

// actions are the buttons for what is shown.
export function actions(shared) {
  return (wanted) => {
    const chosen = selection(wanted);
    const made = [];
    if (chosen) {
      made.push(command(shared, "Retry these", { title: "Put these URLs back into their queues?", text: "Those that failed, were denied or excluded are due at once. Delays, backoffs and robots.txt apply as usual." },
        async () => {
          const last = await post("/api/v1/urls/retry", chosen);
          if (last.error) throw new Error(last.error);
          return { done: `${count(last.back)} of ${count(last.looked)} inspected URLs were put back` };
        }, "main"));
    }
    if (chosen?.host && Object.keys(chosen).length === 1) {
      made.push(command(shared, "Delete these", { title: `Delete all URLs of ${wanted.host}?`, text: "They are new when they are found again. The output stays. This cannot be undone." },
        () => post("/api/v1/urls/delete", { host: wanted.host }), "danger"));
    }
    return made;
  };
}

// added says what became of lines with URLs.
export async function addURLs(text, again) {
  const r = await send(`/api/v1/urls${again ? "?again=true" : ""}`, text);
  const bad = (r.problems ?? []).map((p) => `line ${p.line}: ${p.reason}`).join("; ");
  if (r.error || (r.bad && r.bad === r.lines)) throw new Error(r.error || bad);
  const parts = [["added", r.added], ["put back", r.again], ["known before", r.known], ["outside the scope", r.outside], ["refused", r.refused], ["opted out", r.opted_out], [`bad (${bad})`, r.bad]];
  return { done: `URLs: ${parts.filter(([, n]) => n).map(([name, n]) => `${count(n)} ${name}`).join(", ") || "none"}` };
}

const add = (shared) => command(shared, "Add URLs", {
  title: "Add URLs to the crawl", text: "They belong to the crawl as links do: those outside the scope are not added. To widen the scope, add a seed.",
  fields: [
    { name: "list", label: "URLs, one a line", lines: 8, required: true },
    { name: "again", label: "Known URLs that failed, were denied or excluded", options: [["", "stay as they are"], ["again", "are put back"]] },
  ],
}, ({ list: text, again }) => addURLs(text, again));

export async function urls(argument, shared) {
  const shown = await list(shared, {
    path: "/api/v1/urls", rows: "urls", csv: "/api/v1/export", page: "urls", wanted: parse(argument), columns: urlColumns, actions: actions(shared),
    filters: [
      { key: "contains", label: "Part of the URL" }, { key: "host", label: "Host" },
      { key: "state", label: "State", options: states.map((s) => [s, s || "all"]) },
      { key: "reason", label: "Reason" }, { key: "status", label: "Status", inputmode: "numeric", pattern: "[1-9][0-9][0-9]", size: 4 },
      { key: "seed", label: "Seed" }, { key: "tag", label: "Tag", size: 8 },
    ],
  });
  return { title: "URLs", node: page("URLs", add(shared), panel("List", shown)), on: {} };
}
