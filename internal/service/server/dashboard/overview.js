// The first page: is the crawl well, what needs attention, how fast is it, what is it waiting for.

import { get, post, query } from "./client.js";
import { attention } from "./attention.js";
import { chart } from "./chart.js";
import { command } from "./dialog.js";
import { bars, bytes, columns, count, duration, el, hostLink, page, panel, quiet, rate, refill, table, time } from "./dom.js";
import { fetchTable } from "./fetches.js";

// windows are the lengths of the past that the charts can show: name, seconds, and how the API calls it.
const windows = [["10 minutes", 600, "10m"], ["2 hours", 7200, "2h"], ["24 hours", 86400, "24h"]];

// tiles are the figures on top: name, how to read it from a status, and the page behind it. A tile without a value is hidden.
const tiles = [
  ["Pages a second", (s) => rate(s.pages_per_second)],
  ["Bytes a second", (s) => bytes(Math.round(s.bytes_per_second))],
  ["In flight", (s) => count(s.in_flight)],
  ["URLs waiting", (s) => count((s.urls.queued ?? 0) + (s.urls.retrying ?? 0)), "urls/state=queued"],
  ["Fetched", (s) => count(s.urls.fetched), "urls/state=fetched"],
  ["Failed", (s) => count(s.urls.failed), "urls/state=failed"],
  ["Hosts", (s) => count(s.hosts), "hosts"],
  ["Time to finish", (s) => (s.finish_seconds ? duration(s.finish_seconds) : "–")],
  ["Limit: requests/s", (s) => (s.limits?.max_rate ? String(s.limits.max_rate) : null)],
  ["Limit: bytes/s", (s) => (s.limits?.bandwidth ? bytes(s.limits.bandwidth) : null)],
  ["Limit: bytes/s a host", (s) => (s.limits?.host_bandwidth ? bytes(s.limits.host_bandwidth) : null)],
];

const sorted = (counts) => Object.entries(counts ?? {}).filter(([, n]) => n > 0).sort((a, b) => b[1] - a[1]);

// panels are those that a status fills: title, how to fill it, and when it is left out.
const panels = {
  states: ["Hosts by state", (s) => bars(sorted(s.host_states).map(([state, n]) => [state, n, `hosts/state=${state}`]))],
  slowest: ["Slowest hosts", (s) => table("At the delay in force", [
    { title: "Host", cell: (h) => hostLink(h.host) },
    { title: "Waiting", number: true, cell: (h) => count(h.urls) },
    { title: "Time", number: true, cell: (h) => duration(h.finish_seconds) },
  ], s.slowest_hosts ?? [])],
  statuses: ["Responses by status", (s) => bars(sorted(s.statuses).map(([status, n]) => [status, n, `urls/status=${status}`]), (status) => status >= "4")],
  failed: ["URLs given up in this run", (s) => bars(sorted(s.failed).map(([reason, n]) => [reason, n, failedPage(reason)]), () => true)],
  errors: ["Requests without a usable response", (s) => bars(sorted(s.errors), () => true)],
  gaps: ["Gaps between requests", (s) => gaps(s.pace)],
  robots: ["Hosts held back", (s) => bars([...sorted(s.held).map(([why, n]) => [`robots.txt: ${why}`, n, "hosts/state=held"]), ...sorted(s.walls).map(([kind, n]) => [`wall: ${kind}`, n, "hosts/state=walled"]), ...(s.parked_hosts ? [["parked", s.parked_hosts]] : [])])],
  fetchers: ["Fetchers", (s) => table("Outside of amble, in this run", [
    { title: "Fetcher", cell: (f) => f.name + (f.cut_off ? " (cut off)" : "") },
    { title: "Leases", number: true, cell: (f) => count(f.leases) },
    { title: "Reported", number: true, cell: (f) => count(f.reported) },
    { title: "Ran out", number: true, cell: (f) => count(f.ran_out) },
  ], s.fetchers ?? []), (s) => !s.fetchers?.length],
  slowdowns: ["Slower together", (s) => table("Hosts of one address that became slower together; nothing is done about it", [
    { title: "Address", cell: (x) => x.address }, { title: "Since", number: true, cell: (x) => time(x.since) }, { title: "Slower", number: true, cell: (x) => `${x.slow} of ${x.of}` },
    { title: "Times", number: true, cell: (x) => String(x.factor) }, { title: "Hosts", cell: (x) => x.hosts.map((name) => [hostLink(name), " "]) },
  ], s.slowdowns ?? []), (s) => !s.slowdowns?.length],
};

const failedPage = (reason) => `urls/${reason.startsWith("status ") ? query({ state: "failed", status: reason.slice(7) }) : query({ state: "failed", reason })}`;

export async function overview(_, shared) {
  const wanting = attention(shared);
  const places = Object.fromEntries(Object.entries(panels).map(([name, [title]]) => {
    const place = el("div");
    return [name, { place, panel: panel(title, place) }];
  }));
  const values = tiles.map(([, , to]) => el(to ? "a" : "span", { href: to && `#/${to}` }, "–"));
  const figures = el("dl", { class: "tiles" }, tiles.map(([name], i) => el("div", {}, el("dt", {}, name), el("dd", {}, values[i]))));
  const controls = el("div", { class: "tools" });
  const past = history(shared);
  const live = el("div", { class: "fixed fetches" });

  function status(s) {
    tiles.forEach(([, read], i) => {
      const text = read(s);
      values[i].closest("div").hidden = text === null;
      values[i].textContent = text ?? "";
    });
    const shown = `${s.state} ${s.reason ?? ""}`;
    if (controls.dataset.shown !== shown) {
      controls.dataset.shown = shown;
      refill(controls, ...commands(s, shared), s.reason ? el("p", { class: "warn" }, s.reason) : "");
    }
    for (const [name, [, fill, hidden]] of Object.entries(panels)) {
      places[name].panel.hidden = Boolean(hidden?.(s));
      refill(places[name].place, fill(s));
    }
    wanting.status(s);
  }
  const of = (...names) => columns(names.map((name) => places[name].panel));
  const node = page("Overview", controls, figures, panel("Needs attention", wanting.node), past.node,
    of("slowest", "states"), of("statuses", "failed", "errors"), of("gaps", "robots"),
    places.fetchers.panel, places.slowdowns.panel, panel("Recent fetches", live));
  const showRecent = () => refill(live, fetchTable(shared.recent.slice(0, 12)));
  showRecent();
  return { title: "Overview", node, on: { status, fetches: showRecent, point: past.point } };
}

// history are the charts.
function history(shared) {
  const { signal } = shared;
  let shown = windows[0];
  const charts = [
    chart("Pages a second over time", 1, [{ label: "pages/s", key: "pages_per_second", format: rate }]),
    chart("Bytes a second over time", 1024, [{ label: "bytes/s", key: "bytes_per_second", format: bytes }]),
    chart("URLs known, waiting and fetched over time", 10, [
      { label: "known", key: "known", format: count }, { label: "waiting", key: "waiting", format: count }, { label: "fetched", key: "fetched", format: count },
    ]),
  ];
  async function load() {
    try {
      const columns = await get(`/api/v1/history?${query({ window: shown[2] })}`, signal);
      for (const each of charts) each.set(structuredClone(columns));
    } catch (error) {
      shared.fail(error, signal);
    }
  }
  const choice = el("select", { id: "window", "aria-label": "Time shown", change: (event) => { shown = windows[event.target.selectedIndex]; load(); } },
    windows.map(([name, , value]) => el("option", { value }, name)));
  queueMicrotask(load);
  const [pages, volume, growth] = charts.map((c) => c.node);
  return {
    node: el("section", { class: "panel" }, el("div", { class: "tools" }, el("h2", {}, "The last"), choice), columns(
      el("div", {}, el("h3", {}, "Pages"), pages), el("div", {}, el("h3", {}, "Bytes"), volume), el("div", {}, el("h3", {}, "Frontier"), growth))),
    point(p) { for (const each of charts) each.add(p, shown[1]); },
  };
}

// gaps is the distribution of gaps between requests to a host, as parts of the delay in force.
function gaps(pace) {
  if (!pace?.gaps) return quiet("none yet");
  return el("div", {},
    el("p", { class: pace.violations ? "bad" : "good" }, `${count(pace.violations)} gaps shorter than the delay in force, of ${count(pace.gaps)}`),
    bars(pace.buckets.map(({ label, count: n }) => [label, n]), (label) => label.startsWith("under")));
}

// commands are those for the crawl. A cluster has none that ends all of its processes.
function commands({ state, cluster }, shared) {
  if (state === "finished" || state === "stopping") return [];
  const crawl = (name) => () => post(`/api/v1/crawl/${name}`);
  return [
    state === "paused" || state === "draining"
      ? command(shared, "Resume", { title: "Resume the crawl?", text: "Hosts are fetched from again, each when its delay allows." }, crawl("resume"), "main")
      : command(shared, "Pause", { title: "Pause the crawl?", text: "No request begins until it is resumed, not even after a restart." }, crawl("pause")),
    ...(cluster ? [] : [
      command(shared, "Drain", { title: "End when all is done?", text: "No more URLs are taken from outside. Everything known is fetched, and the links found there; then the process exits. Resume undoes it." }, crawl("drain")),
      command(shared, "Stop", { title: "Stop the crawl?", text: "What is in flight ends, everything is committed, and the process exits. The next run continues the crawl." }, crawl("stop"), "danger"),
    ]),
  ];
}
