// The cluster: what moves now, its nodes, its shards with their logs and snapshots, and the NATS servers.

import { get } from "./client.js";
import { bytes, count, duration, el, page, panel, table } from "./dom.js";

const states = { trusted: "makes requests", drained: "drained", doubted: "makes no requests", dead: "dead", left: "has left", unreadable: "register unreadable" };
const mostShards = 100; // that are listed

const moves = (s) => !s.owner || (s.goal && s.goal !== s.owner);

const tiles = (pairs) => el("dl", { class: "tiles" }, pairs.map(([name, value, bad]) =>
  el("div", {}, el("dt", {}, name), el("dd", { class: bad && "bad", title: value }, value))));

// ago is how long before the time of the view something was.
const ago = (v, text) => el("time", { datetime: text, title: text }, `${duration(Math.max(0, (new Date(v.at) - new Date(text)) / 1000))} ago`);

const snapshot = (v, s) => (s.snapshot ? [ago(v, s.snapshot), `, ${bytes(s.snapshot_bytes)}`] : "none yet");

// shardsOf sums up what the shards of each node have.
function shardsOf(v) {
  const of = new Map(v.nodes.map((n) => [n.node, { records: 0, bytes: 0, oldest: null, none: 0 }]));
  for (const s of v.shards) {
    const sum = of.get(s.owner);
    if (!sum) continue;
    sum.records += s.log_records;
    sum.bytes += s.log_bytes;
    if (!s.snapshot) sum.none++;
    else if (!sum.oldest || s.snapshot < sum.oldest) sum.oldest = s.snapshot;
  }
  return of;
}

function now(v) {
  const dead = v.nodes.filter((n) => n.state === "doubted" || (n.state === "dead" && n.owns)).length;
  const log = v.shards.reduce((sum, s) => sum + s.log_bytes, 0);
  return tiles([
    ["Nodes", count(v.nodes.filter((n) => n.state !== "left").length)], ["Silent nodes", count(dead), dead > 0],
    ["Shards", count(v.shards.length)], ["Without owner", count(v.shards_without_owner), v.shards_without_owner > 0],
    ["Moving", count(v.shards_moving)], ["Log to replay", bytes(log)],
    [`Trust of ${v.here.node}`, duration(v.here.trust_seconds), v.here.trust_seconds <= 0],
    v.here.connected ? ["Refused publishes", count(v.here.refused_publishes), v.here.refused_publishes > 0] : ["NATS", "no contact", true],
  ]);
}

function moving(v) {
  return table("To their owners by the weights of the nodes", [
    { title: "Shard", cell: (s) => String(s.shard) },
    { title: "From", cell: (s) => s.owner || el("strong", { class: "bad" }, "no owner") },
    { title: "To", cell: (s) => s.goal || el("strong", { class: "bad" }, "no node takes shards") },
    { title: "Log to replay", number: true, cell: (s) => `${count(s.log_records)} records, ${bytes(s.log_bytes)}` },
    { title: "Snapshot", number: true, cell: (s) => snapshot(v, s) },
  ], v.shards.filter(moves).slice(0, mostShards));
}

function nodes(v) {
  const of = shardsOf(v);
  return table(`${v.nodes.length} nodes`, [
    { title: "Node", cell: (n) => n.node },
    { title: "State", cell: (n) => el("span", { class: n.state === "trusted" ? "good" : n.state === "dead" && n.owns ? "bad" : "warn" }, states[n.state] ?? n.state) },
    { title: "Shards", number: true, cell: (n) => count(n.owns) },
    { title: "Still gets", number: true, cell: (n) => (n.gets ? count(n.gets) : "") },
    { title: "Weight", number: true, cell: (n) => count(n.weight) },
    { title: "Heartbeat", number: true, cell: (n) => `${duration(n.heartbeat_seconds)} ago` },
    { title: "Log to replay", number: true, cell: (n) => `${count(of.get(n.node).records)} records, ${bytes(of.get(n.node).bytes)}` },
    { title: "Oldest snapshot", number: true, cell: (n) => (of.get(n.node).oldest ? ago(v, of.get(n.node).oldest) : "") },
  ], v.nodes);
}

function shards(v) {
  const sorted = [...v.shards].sort((a, b) => moves(b) - moves(a) || b.log_bytes - a.log_bytes || a.shard - b.shard);
  const shown = sorted.slice(0, mostShards);
  const number = shown.length < sorted.length ? `${count(shown.length)} of ${count(sorted.length)}` : count(sorted.length);
  return table(`${number} shards: those that move first, then by the log that a new owner has to replay`, [
    { title: "Shard", cell: (s) => String(s.shard) },
    { title: "Owner", cell: (s) => (moves(s) ? [s.owner || "none", ` → ${s.goal || "?"}`] : s.owner) },
    { title: "Since", number: true, cell: (s) => (s.since ? ago(v, s.since) : "") },
    { title: "Records", number: true, cell: (s) => count(s.log_records) },
    { title: "Bytes", number: true, cell: (s) => bytes(s.log_bytes) },
    { title: "URLs of others", number: true, cell: (s) => (s.incoming ? `${count(s.incoming)} ${s.incoming === 1 ? "message" : "messages"}` : "") },
    { title: "Snapshot", number: true, cell: (s) => snapshot(v, s) },
  ], shown);
}

const copies = (v) => table("Copies of registers and logs", [
  { title: "NATS server", cell: (r) => r.server },
  { title: "Role", cell: (r) => (r.leader ? "leader" : "copy") },
  { title: "State", cell: (r) => el("span", { class: r.offline ? "bad" : r.current ? "good" : "warn" }, r.offline ? "offline" : r.current ? "current" : "behind") },
  { title: "Lag", number: true, cell: (r) => `${count(r.lag)} messages` },
], v.replicas);

export async function cluster(_, shared) {
  const { signal } = shared;
  const parts = [now, moving, nodes, copies, shards].map((draw) => ({ draw, place: el("div") }));
  async function load() {
    const v = await get("/api/v1/cluster", signal);
    for (const { draw, place } of parts) place.replaceChildren(draw(v));
    parts[1].place.parentNode.hidden = !v.shards.some(moves);
  }
  const [summary, ...rest] = parts.map((p) => p.place);
  const titles = ["What moves now", "Nodes", "NATS", "Shards"];
  const node = page("Cluster", "", summary, rest.map((place, i) => panel(titles[i], place)));
  await load();
  let events = 0;
  const status = () => {
    if (++events % 3 === 0) load().catch((error) => shared.fail(error, signal));
  };
  return { title: "Cluster", node, on: { status } };
}
