// The opt-outs: what is never fetched from, who wished it and until when.

import { del, get, post, query } from "./client.js";
import { command } from "./dialog.js";
import { el, panel, table, time } from "./dom.js";

const scopes = ["host", "domain", "range", "prefix"];

export async function optouts(_, shared) {
  const list = el("div");
  async function load() {
    const { opt_outs: entries } = await get("/api/v1/optouts", shared.signal);
    list.replaceChildren(table(`${entries.length} in all`, [
      { title: "Scope", cell: (e) => e.scope },
      { title: "Covers", cell: (e) => e.value },
      { title: "Since", cell: (e) => time(e.at) },
      { title: "Until", cell: (e) => (e.until ? [time(e.until), e.in_force ? "" : " (ended)"] : "further notice") },
      { title: "Recorded by", cell: (e) => e.by },
      { title: "Reason", cell: (e) => e.reason },
      { title: "Source", cell: (e) => e.source },
      { title: "", cell: (e) => (e.source === "command" ? remove(e) : "") },
    ], entries));
  }
  const remove = (e) => command(shared, "Remove", { title: `Remove the opt-out of ${e.scope} ${e.value}?`, text: "What it covers is fetched again." },
    () => del(`/api/v1/optouts?${query({ scope: e.scope, value: e.value })}`), "danger");
  const add = command(shared, "Add", {
    title: "Record an opt-out", text: "Nothing that it covers is requested from now on.",
    fields: [
      { name: "scope", label: `Scope (${scopes.join(", ")})`, type: "text", required: true, value: "host", pattern: scopes.join("|") },
      { name: "value", label: "Host, domain, addresses or prefix", type: "text", required: true },
      { name: "reason", label: "Reason", type: "text" },
      { name: "by", label: "Recorded by", type: "text" },
      { name: "until", label: "Until (empty: further notice)", type: "datetime-local" },
    ],
  }, ({ scope, value, reason, by, until }) => post("/api/v1/optouts",
    { scope, value, reason, by, ...(until && { until: new Date(until).toISOString() }) }), "main");
  await load();
  const node = el("div", {},
    el("div", { class: "tools" }, el("h1", {}, "Opt-outs"), add),
    panel("Never fetched from", list));
  node.style.display = "contents";
  return { title: "Opt-outs", node, on: {} };
}
