// The first page: is the crawl well, how fast is it, what is it waiting for.

import { get, post, query } from "./client.js";
import { chart } from "./chart.js";
import { command } from "./dialog.js";
import { bars, bytes, count, duration, el, hostLink, panel, rate, renew, table, time } from "./dom.js";
import { fetchTable } from "./fetches.js";

// windows are the lengths of the past that the charts can show: name, seconds, and how the API calls it.
const windows = [["10 minutes", 600, "10m"], ["2 hours", 7200, "2h"], ["24 hours", 86400, "24h"]];

// tiles are the figures on top: name, how to read it from a status, and when it is bad. A tile without a value is hidden.
const tiles = [
  ["Pages a second", (s) => rate(s.pages_per_second)],
  ["Bytes a second", (s) => bytes(s.bytes_per_second)],
  ["In flight", (s) => count(s.in_flight)],
  ["URLs waiting", (s) => count((s.urls.queued ?? 0) + (s.urls.retrying ?? 0))],
  ["Fetched", (s) => count(s.urls.fetched)],
  ["Hosts", (s) => count(s.hosts)],
  ["Time to finish", (s) => (s.finish_seconds ? duration(s.finish_seconds) : "–")],
  ["Limit: requests/s", (s) => (s.limits?.max_rate ? String(s.limits.max_rate) : null)],
  ["Limit: bytes/s", (s) => (s.limits?.bandwidth ? bytes(s.limits.bandwidth) : null)],
  ["Limit: bytes/s a host", (s) => (s.limits?.host_bandwidth ? bytes(s.limits.host_bandwidth) : null)],
  ["Gaps too short", (s) => count(s.pace?.violations ?? 0), (s) => s.pace?.violations > 0],
];

export async function overview(_, shared) {
  let shown = windows[0];
  const speed = chart("Pages a second over time", [{ label: "pages/s", key: "pages_per_second", format: rate }]);
  const volume = chart("Bytes a second over time", [{ label: "bytes/s", key: "bytes_per_second", format: bytes }]);
  const growth = chart("URLs known, waiting and fetched over time", [
    { label: "known", key: "known", format: count },
    { label: "waiting", key: "waiting", format: count },
    { label: "fetched", key: "fetched", format: count },
  ]);
  const charts = [speed, volume, growth];
  async function load() {
    const columns = await get(`/api/v1/history?${query({ window: shown[2] })}`, shared.signal);
    for (const each of charts) each.set(structuredClone(columns));
  }
  const choice = el("select", { id: "window", change: (event) => { shown = windows[event.target.selectedIndex]; load().catch((e) => shared.say(e.message)); } },
    windows.map(([name, , value]) => el("option", { value }, name)));

  const values = tiles.map(() => el("dd", {}, "–"));
  const figures = el("dl", { class: "tiles" }, tiles.map(([name], i) => el("div", {}, el("dt", {}, name), values[i])));
  const controls = el("div", { class: "tools" });
  const places = { states: el("div"), slowest: el("div"), statuses: el("div"), errors: el("div"), gaps: el("div"), robots: el("div"), slowdowns: el("div"), fetchers: el("div"), live: el("div", { class: "fixed" }) };
  const slowdowns = panel("Slower together", places.slowdowns);
  const fetchers = panel("Fetchers", places.fetchers);
  let shownState = null;

  function status(s) {
    tiles.forEach(([, read, bad], i) => {
      const text = read(s);
      values[i].parentElement.hidden = text === null;
      values[i].textContent = text ?? "";
      values[i].className = bad?.(s) ? "bad" : "";
    });
    if (s.state !== shownState) {
      shownState = s.state;
      controls.replaceChildren(...orders(s.state, shared), s.reason ? el("span", { class: "warn" }, s.reason) : "");
    }
    const named = (counts) => Object.entries(counts ?? {}).filter(([, n]) => n > 0).sort((a, b) => b[1] - a[1]);
    places.states.replaceChildren(bars(named(s.places)));
    renew(places.slowest, table("At the delay in force", [
      { title: "Host", cell: (h) => hostLink(h.host) },
      { title: "Waiting", number: true, cell: (h) => count(h.urls) },
      { title: "Time", number: true, cell: (h) => duration(h.finish_seconds) },
    ], s.slowest_hosts ?? []));
    slowdowns.hidden = !s.slowdowns?.length;
    places.slowdowns.replaceChildren(table("Hosts of one address that became slower together; nothing is done about it", [
      { title: "Address", cell: (x) => x.address }, { title: "Since", cell: (x) => time(x.since) }, { title: "Slower", number: true, cell: (x) => `${x.slow} of ${x.of}` },
      { title: "Times", number: true, cell: (x) => String(x.factor) }, { title: "Hosts", cell: (x) => x.hosts.map((name) => [hostLink(name), " "]) },
    ], s.slowdowns ?? []));
    places.statuses.replaceChildren(bars(named(s.statuses), (name) => name[0] >= "4"));
    places.errors.replaceChildren(bars(named(s.errors), () => true));
    places.gaps.replaceChildren(gaps(s.pace));
    places.robots.replaceChildren(bars([["URLs denied", s.urls.denied ?? 0], ...named(s.held).map(([why, n]) => [`hosts held: ${why}`, n]), ...named(s.walls).map(([kind, n]) => [`hosts behind a wall: ${kind}`, n]), ["hosts parked", s.parked_hosts ?? 0]]));
    fetchers.hidden = !s.fetchers?.length;
    places.fetchers.replaceChildren(table("Outside of amble, in this run", [
      { title: "Fetcher", cell: (f) => f.name + (f.cut_off ? " (cut off)" : "") },
      { title: "Leases", number: true, cell: (f) => count(f.leases) },
      { title: "Reported", number: true, cell: (f) => count(f.reported) },
      { title: "Ran out", number: true, cell: (f) => count(f.ran_out) },
    ], s.fetchers ?? []));
  }

  const node = el("div", { class: "columns-of-panels" },
    el("div", { class: "tools" }, el("h1", {}, "Overview"), controls),
    figures,
    el("div", { class: "tools" }, el("label", { for: "window" }, "Time shown ", choice)),
    el("div", { class: "columns" }, panel("Pages", speed.node), panel("Bytes", volume.node), panel("Frontier", growth.node)),
    el("div", { class: "columns" }, panel("Hosts by state", places.states), panel("Slowest hosts", places.slowest)),
    el("div", { class: "columns" }, panel("Responses by status", places.statuses), panel("Errors", places.errors, el("p", {}, el("a", { href: "#/urls/state=failed" }, "URLs that failed"), " · ", el("a", { href: "#/hosts/state=walled&sort=waiting" }, "hosts behind a wall"), " · ", el("a", { href: "#/hosts/sort=failures" }, "hosts by share of failures")))),
    el("div", { class: "columns" }, panel("Politeness", places.gaps), panel("robots.txt", places.robots)),
    fetchers,
    slowdowns,
    panel("Recent fetches", places.live));
  node.style.display = "contents";

  const showRecent = () => renew(places.live, fetchTable(shared.recent.slice(0, 12)));
  showRecent();
  queueMicrotask(() => load().catch((e) => !shared.signal.aborted && shared.say(e.message)));
  return {
    title: "Overview", node,
    on: { status, fetches: showRecent, point(point) { for (const each of charts) each.add(point, shown[1]); } },
  };
}

// gaps is the distribution of gaps between requests to a host, as parts of the delay in force.
function gaps(pace) {
  if (!pace) return el("p", { class: "quiet" }, "nothing yet");
  return el("div", {},
    el("p", { class: pace.violations ? "bad" : "good" }, `${count(pace.violations)} gaps shorter than the delay in force, of ${count(pace.gaps)}`),
    bars(pace.buckets.map(({ label, count: n }) => [label, n]), (label) => label.startsWith("under")));
}

// A cluster has no command that ends all of its processes.
function orders(state, shared) {
  if (state === "finished" || state === "stopping") return [];
  const crawl = (name) => () => post(`/api/v1/crawl/${name}`);
  return [
    state === "paused" || state === "draining"
      ? command(shared, "Resume", { title: "Resume the crawl?", text: "Hosts are fetched from again, each when its delay allows." }, crawl("resume"), "main")
      : command(shared, "Pause", { title: "Pause the crawl?", text: "No request begins until it is resumed, not even after a restart." }, crawl("pause")),
    ...(shared.status?.cluster ? [] : [
      command(shared, "Drain", { title: "End when all is done?", text: "No more URLs are taken from outside. Everything known is fetched, and the links found there; then the process exits. Resume undoes it." }, crawl("drain")),
      command(shared, "Stop", { title: "Stop the crawl?", text: "What is in flight ends, everything is committed, and the process exits. The next run continues the crawl." }, crawl("stop"), "danger"),
    ]),
  ];
}
