// The cluster: its nodes, its shards, who owns each, and what moves.

import { get } from "./client.js";
import { bytes, count, duration, el, facts, panel, table, time } from "./dom.js";

const states = { trusted: "makes requests", drained: "drained", doubted: "makes no requests", dead: "dead", left: "has left" };

// movement says what is under way with a shard.
function movement(s) {
  if (!s.owner) return el("strong", { class: "bad" }, s.goal ? `no owner; ${s.goal} takes it` : "no owner");
  return s.goal && s.goal !== s.owner ? `goes to ${s.goal}` : "";
}

export async function cluster(_, shared) {
  const summary = el("div");
  const nodes = el("div");
  const shards = el("div");
  const copies = el("div");
  async function load() {
    const v = await get("/api/v1/cluster", shared.signal);
    summary.replaceChildren(facts([
      ["Shards without owner", String(v.shards_without_owner)], ["Shards that move", String(v.shards_moving)],
      ["This node", v.here.node], ["Connected to NATS", v.here.connected ? "yes" : "no"],
      ["Trust left", duration(v.here.trust_seconds)], ["Refused publishes", String(v.here.refused_publishes)],
    ]));
    nodes.replaceChildren(table(`${v.nodes.length} nodes`, [
      { title: "Node", cell: (n) => n.node },
      { title: "State", cell: (n) => states[n.state] ?? n.state },
      { title: "Shards", number: true, cell: (n) => count(n.owns) },
      { title: "Still gets", number: true, cell: (n) => (n.gets ? count(n.gets) : "") },
      { title: "Weight", number: true, cell: (n) => count(n.weight) },
      { title: "Heartbeat", number: true, cell: (n) => `${duration(n.heartbeat_seconds)} ago` },
    ], v.nodes));
    shards.replaceChildren(table(`${v.shards.length} shards`, [
      { title: "Shard", number: true, cell: (s) => String(s.shard) },
      { title: "Owner", cell: (s) => s.owner },
      { title: "Since", cell: (s) => time(s.since) },
      { title: "Moves", cell: movement },
      { title: "Log to replay", number: true, cell: (s) => `${count(s.log_records)} records` },
      { title: "Bytes", number: true, cell: (s) => bytes(s.log_bytes) },
      { title: "Snapshot", cell: (s) => (s.snapshot ? [time(s.snapshot), `, ${bytes(s.snapshot_bytes)}`] : "none yet") },
    ], v.shards));
    copies.replaceChildren(table("Copies of registers and logs", [
      { title: "NATS server", cell: (r) => r.server },
      { title: "Role", cell: (r) => (r.leader ? "leader" : "copy") },
      { title: "State", cell: (r) => (r.offline ? "offline" : r.current ? "current" : "behind") },
      { title: "Lag", number: true, cell: (r) => count(r.lag) },
    ], v.replicas));
  }
  await load();
  const node = el("div", {},
    el("div", { class: "tools" }, el("h1", {}, "Cluster")),
    panel("Now", summary), panel("Nodes", nodes), panel("Shards", shards), panel("NATS", copies));
  node.style.display = "contents";
  let events = 0;
  const status = () => {
    if (++events % 3 === 0) load().catch((error) => { if (!shared.signal.aborted) shared.say(error.message); });
  };
  return { title: "Cluster", node, on: { status } };
}
