// The list of URLs: those of a host, in a state, for a reason, with a status, of a seed, or with a part of the URL; and what can be
// done with them.

import { get, post, send } from "./client.js";
import { command } from "./dialog.js";
import { count, el, page, panel, time, urlLink } from "./dom.js";
import { commandHosts } from "./hosts.js";
import { list, parse } from "./list.js";

const states = ["", "queued", "fetched", "redirected", "failed", "denied", "excluded", "retrying"];
export const canPutBack = ["failed", "denied", "excluded", "redirected", "retrying"];
const canDrop = ["queued", "retrying", "failed", "denied", "redirected", "fetched"];

export const urlColumns = [
  { title: "URL", cell: (u) => urlLink(u.url) }, { title: "State", cell: (u) => u.state }, { title: "Why", cell: (u) => [u.reason, u.note].filter(Boolean).join(": ") },
  { title: "Status", number: true, cell: (u) => String(u.status || "") }, { title: "Found on", cell: (u) => (u.via ? urlLink(u.via) : u.seed ? "a seed" : "") }, { title: "Fetched", number: true, cell: (u) => time(u.last_fetched) },
];

// selection is what the API puts back, or drops, for what is shown; null if it has no such selection.
export function selection({ host, state, reason, status, contains, seed, tag }, states = canPutBack) {
  if (state && !states.includes(state)) return null;
  const wanted = {};
  if (host) wanted.host = host;
  if (state) wanted.states = [state];
  if (reason) wanted.reasons = [reason];
  if (status) wanted.statuses = [Number(status)];
  if (contains) wanted.contains = contains;
  if (seed) wanted.seed = seed;
  if (tag) wanted.tag = tag;
  return Object.keys(wanted).length ? wanted : null;
}

// hostOf is the name of the host of a URL, as the lists of hosts have it.
const hostOf = (u) => new URL(u.url).hostname.replace(/^\[(.*)\]$/, "$1");

// change has the API put URLs back or drop them.
async function change(what, wanted) {
  const last = await post(`/api/v1/urls/${what}`, wanted);
  if (last.error) throw new Error(last.error);
  return last;
}

const leftOut = "They are excluded: not fetched, also when they are found again. A request in flight may finish. The output stays. A retry of the reason operator undoes it.";

const atOnce = 30; // URLs of any length have room in a request

// dropChosen drops URLs host by host, so that no more than their hosts are searched.
async function dropChosen(chosen) {
  let dropped = 0;
  for (const urls of Object.values(Object.groupBy(chosen.map((u) => u.url), (url) => new URL(url).hostname))) {
    for (let i = 0; i < urls.length; i += atOnce) dropped += (await change("drop", { urls: urls.slice(i, i + atOnce) })).dropped ?? 0;
  }
  return { done: `${count(dropped)} of ${count(chosen.length)} URLs were dropped` };
}

const later = "Delays, backoffs and robots.txt apply as usual.";

// chosenActions are the buttons for URLs that are chosen: they, or their hosts unless those have a page of their own around the list.
function chosenActions(shared, chosen, withHosts) {
  const some = chosen.length === 1 ? "this URL" : `${count(chosen.length)} URLs`;
  const text = `Those that failed, were denied or excluded, or redirected, are due at once; others stay as they are. ${later}`;
  return [
    command(shared, "Retry chosen", { title: `Put ${some} back into ${chosen.length === 1 ? "its queue" : "their queues"}?`, text }, () => addURLs(chosen.map((u) => u.url).join("\n"), true), "main"),
    command(shared, "Drop chosen", { title: `Drop ${some}?`, text: leftOut }, () => dropChosen(chosen), "danger"),
    ...(withHosts ? commandHosts(shared, [...new Set(chosen.map(hostOf))], ["Pause hosts", "Resume hosts", "Set delay of hosts"]).waits : []),
  ];
}

// actions are the buttons for what is chosen, or else for all that the list is narrowed to.
export function actions(shared, withHosts) {
  return (wanted, chosen) => {
    if (chosen.length) return chosenActions(shared, chosen, withHosts);
    const selected = selection(wanted);
    const made = [];
    if (selected) {
      made.push(command(shared, "Retry these", async () => {
        const { back } = await change("retry", { ...selected, dry_run: true });
        return { title: back === 1 ? "Put 1 URL back into its queue?" : `Put ${count(back)} URLs back into their queues?`, text: `These are all that failed, were denied or excluded, redirected, or wait for another attempt, and match. They are due at once. ${later}` };
      }, async () => {
        const last = await change("retry", selected);
        return { done: `${count(last.back || 0)} of ${count(last.looked)} inspected URLs were put back` };
      }, "main"));
    }
    const dropped = selection(wanted, canDrop);
    if (dropped) {
      made.push(command(shared, "Drop these", async () => {
        const last = await change("drop", { ...dropped, dry_run: true });
        const n = last.dropped ?? 0;
        return { title: `Drop ${n === 1 ? "1 URL" : `${count(n)} URLs`}?`, text: `These are all that ${wanted.state ? `are ${wanted.state}` : "wait"} and match. ${leftOut}` };
      }, async () => {
        const last = await change("drop", dropped);
        return { done: `${count(last.dropped ?? 0)} of ${count(last.looked)} inspected URLs were dropped` };
      }, "danger"));
    }
    if (selected?.host && Object.keys(selected).length === 1) {
      made.push(command(shared, "Delete these", async () => {
        const { known } = await get(`/api/v1/hosts/${encodeURIComponent(wanted.host)}`);
        return { title: `Delete all ${count(known)} URLs of ${wanted.host}?`, text: "They are new when they are found again. The output stays. This cannot be undone." };
      }, () => post("/api/v1/urls/delete", { host: wanted.host }), "danger"));
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
    path: "/api/v1/urls", rows: "urls", csv: "/api/v1/export", page: "urls", wanted: parse(argument), columns: urlColumns, name: (u) => u.url, actions: actions(shared, true),
    filters: [
      { key: "contains", label: "Part of the URL" }, { key: "host", label: "Host" },
      { key: "state", label: "State", options: states.map((s) => [s, s || "all"]) },
      { key: "reason", label: "Reason" }, { key: "status", label: "Status", inputmode: "numeric", pattern: "[1-9][0-9][0-9]", size: 4 },
      { key: "seed", label: "Seed" }, { key: "tag", label: "Tag", size: 8 },
    ],
  });
  return { title: "URLs", node: page("URLs", add(shared), panel("List", shown)), on: {} };
}
