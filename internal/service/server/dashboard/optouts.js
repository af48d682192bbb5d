// The opt-outs: what is never fetched from, who wished it and until when.

import { del, get, post, query } from "./client.js";
import { command } from "./dialog.js";
import { el, page, panel, table, time } from "./dom.js";

const scopes = [["host", "a host"], ["domain", "a domain and all hosts below it"], ["range", "a range of addresses"], ["prefix", "URLs that begin so"]];

export async function optouts(_, shared) {
  const { opt_outs: entries } = await get("/api/v1/optouts", shared.signal);
  const remove = (e) => command(shared, "Remove", { title: `Remove the opt-out of ${e.scope} ${e.value}?`, text: "What it covers is fetched again." },
    () => del(`/api/v1/optouts?${query({ scope: e.scope, value: e.value })}`), "danger");
  const list = table(`${entries.length} in all`, [
    { title: "Scope", cell: (e) => e.scope },
    { title: "Covers", cell: (e) => e.value },
    { title: "Since", number: true, cell: (e) => time(e.at) },
    { title: "Until", number: true, cell: (e) => (e.until ? [time(e.until), e.in_force ? "" : " (ended)"] : "further notice") },
    { title: "Recorded by", cell: (e) => e.by },
    { title: "Reason", cell: (e) => e.reason },
    { title: "Source", cell: (e) => e.source },
    { title: "Action", cell: (e) => (e.source === "command" ? remove(e) : "") },
  ], entries);
  const add = command(shared, "Add", {
    title: "Record an opt-out", text: "Nothing that it covers is requested from now on.",
    fields: [
      { name: "scope", label: "Scope", options: scopes },
      { name: "value", label: "Host, domain, addresses or prefix", type: "text", required: true },
      { name: "reason", label: "Reason", type: "text" },
      { name: "by", label: "Recorded by", type: "text" },
      { name: "until", label: "Until, in UTC (empty: further notice)", type: "datetime-local" },
    ],
  }, ({ scope, value, reason, by, until }) => post("/api/v1/optouts",
    { scope, value, reason, by, ...(until && { until: new Date(`${until}Z`).toISOString() }) }), "main");
  return { title: "Opt-outs", node: page("Opt-outs", add, panel("Never fetched from", el("div", { class: "list" }, list))), on: {} };
}
