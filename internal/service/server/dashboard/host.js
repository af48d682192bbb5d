// One host: its state and why, its requests, and every command for it.

import { get, lines, post, query } from "./client.js";
import { command, served } from "./dialog.js";
import { bars, bytes, clock, columns, count, duration, el, facts, page, panel, refill, table, time, urlLink } from "./dom.js";
import { result } from "./fetches.js";
import { list } from "./list.js";
import { actions, urlColumns } from "./urls.js";

const refreshEvery = 2000; // milliseconds between two looks at the host
const mostRequests = 200; // in the timeline

export async function host(name, shared) {
  const { signal } = shared;
  const path = `/api/v1/hosts/${encodeURIComponent(name)}`;
  const parts = { facts: el("div"), polite: el("div"), urls: el("div"), failures: el("div"), tools: el("div", { class: "tools" }) };
  const story = await get(path, signal);

  let [latest, paused] = [story, null];
  function show(h) {
    latest = h;
    const p = h.politeness;
    if (isPaused(h) !== paused) {
      paused = isPaused(h);
      refill(parts.tools, ...commands(path, name, paused, () => latest, shared));
    }
    parts.facts.replaceChildren(facts([
      ["State", [h.state, h.suspected && ", wall suspected", h.place && h.place !== h.state && ` (${h.place})`]], ["Why", h.reason], ["Last failure", h.trouble], ["Failing since", time(h.trouble_since)],
      ["Wall", h.wall && [h.wall.suspected && "suspected: ", [h.wall.kind, h.wall.maker].filter(Boolean).join(" by ")]], ["Evidence", h.wall?.evidence],
      ["Next request", time(h.next)], ["In flight", count(h.in_flight)], ["Address", h.address], ["Slower", h.slowdown], ["Group", h.group], ["Opted out", h.opt_out],
      ["URLs waiting", count(h.waiting)], ["Time to finish", h.waiting ? duration(h.finish_seconds) : ""], ["Requests", count(h.requests)], ["Received", bytes(h.bytes)],
    ]));
    parts.polite.replaceChildren(
      el("p", {}, p.text),
      facts([
        ["Delay in force", duration(p.delay_seconds)], ["Demanded by", p.delay_reason], ["Where", p.delay_source], ["Waits for", p.reason], ["Where", p.source === p.delay_source ? "" : p.source],
        ["Since", time(p.since)], ["Until", time(p.until)], ["Backoff level", p.backoff || ""], ["Parked", p.parked && "yes"],
      ]));
    const sorted = (counts) => Object.entries(counts ?? {}).sort((a, b) => b[1] - a[1]);
    refill(parts.urls, bars(sorted(h.urls).map(([state, n]) => [state, n, `urls/${query({ host: name, state })}`]), (state) => state === "failed"));
    refill(parts.failures, bars(sorted(h.errors), () => true));
  }
  show(story);

  const [live, timeline] = requests(name, shared);
  const urls = await list(shared, {
    path: "/api/v1/urls", rows: "urls", csv: "/api/v1/export", wanted: { host: name }, columns: urlColumns, name: (u) => u.url, actions: actions(shared, false),
    filters: [{ key: "state", label: "State", options: ["", ...Object.keys(story.urls)].map((s) => [s, s || "all"]) }, { key: "contains", label: "Part of the URL" }],
  });
  const node = page(name, parts.tools,
    columns(panel("Now", parts.facts), panel("Politeness", parts.polite)),
    columns(panel("URLs by state", parts.urls), panel("Failed requests", parts.failures)),
    panel("Requests", timeline),
    story.origins.map((o) => origin(o, signal)),
    story.traps?.length && panel("Traps", table("URLs that were refused", [
      { title: "Trap", cell: (t) => t.reason }, { title: "Refused", number: true, cell: (t) => count(t.refused) },
      { title: "Samples", cell: (t) => el("ul", {}, t.samples.map((s) => el("li", {}, s))) },
    ], story.traps)),
    panel("URLs", urls));

  let shown = Date.now();
  async function status() {
    if (Date.now() - shown < refreshEvery) return;
    shown = Date.now();
    try {
      show(await get(path, signal));
    } catch (error) {
      shared.fail(error, signal);
    }
  }
  return { title: name, node, on: { fetches: live, status } };
}

// requests is the timeline of a host: what was seen since the dashboard was opened and, when it is asked for, what the request log has
// of the last day.
function requests(name, shared) {
  const place = el("div");
  const { signal } = shared;
  let seen = shared.recent.filter((f) => f.host === name);
  const row = (f) => el("li", {}, clock(f.at), " ", result(f), " ", urlLink(f.url), " ", el("span", { class: "quiet" }, `${bytes(f.bytes)} in ${duration(f.seconds)}`));
  const show = () => refill(place, seen.length ? el("ol", { class: "timeline" }, seen.map(row)) : el("p", { class: "quiet" }, "none since this page was opened"));
  const started = (f) => Date.parse(f.at) - 1000 * f.seconds;
  async function earlier() {
    button.disabled = true;
    try {
      const before = seen.length ? started(seen.at(-1)) - 1 : Infinity;
      let found = [];
      await lines(`/api/v1/audit?${query({ host: name, since: new Date(Date.now() - 86400e3).toISOString() })}`, signal, (q) => {
        if (Date.parse(q.at) >= before) return;
        found.push({ at: q.at, url: q.url, status: q.status, error: q.no_end ? "no end" : q.failure, bytes: q.bytes, seconds: q.seconds });
        if (found.length > 2 * mostRequests) found = found.slice(-mostRequests);
      });
      seen = [...seen, ...found.reverse()].slice(0, mostRequests);
      show();
      button.replaceWith(el("p", { class: "quiet" }, `The newest ${count(seen.length)} of the last 24 hours, by the request log.`));
    } catch (error) {
      shared.fail(error, signal, "The request log: ");
      button.disabled = false;
    }
  }
  const button = el("button", { type: "button", click: earlier }, "Earlier requests");
  served(shared, "/api/v1/audit", button);
  show();
  return [(list) => {
    const own = list.filter((f) => f.host === name);
    if (!own.length) return;
    seen = [...own, ...seen].slice(0, mostRequests);
    show();
  }, el("div", { class: "list" }, el("div", { class: "fixed" }, place), button)];
}

function origin(o, signal) {
  const r = o.robots;
  const text = el("pre", { tabindex: "0" });
  const before = el("div", {});
  const file = r.class === "never fetched" ? "" : el("details", {
    async toggle() {
      if (!file.open) return;
      try {
        const now = await get(`/api/v1/robots?${query({ origin: o.origin })}`, signal);
        text.textContent = now.text || "It is empty.";
        before.replaceChildren(...now.earlier.map(earlierVersion));
      } catch (error) {
        text.textContent = error.message;
      }
    },
  }, el("summary", {}, "robots.txt in force"), text, before);
  return panel(o.origin,
    columns(
      facts([
        ["robots.txt", r.class], ["Status", r.status || ""], ["Failure", r.failure], ["Failures in a row", r.failures || ""], ["Fetched", time(r.fetched)], ["Expires", time(r.expires)],
        ["Unreachable since", time(r.first_unreachable)], ["Redirected to", r.final_url === `${o.origin}/robots.txt` ? "" : r.final_url], ["Pages", { ask: "by its rules", hold: "held", fetch: "after it was fetched" }[r.standing] ?? r.standing], ["Until", time(r.until)],
      ]),
      facts([
        ["Group", r.group], ["Rules", count(r.rules)], ["Crawl delay", r.crawl_delay_seconds === null ? "" : duration(r.crawl_delay_seconds)], ["Line", r.crawl_delay_line ? `${r.crawl_delay_line}: ${r.crawl_delay_text}` : ""],
        ["Disallows all", r.disallows_all ? "yes" : ""], ["Queued", count(o.queued)], ["Due", count(o.due)], ["Next", o.next?.length > 0 && el("ol", { class: "way" }, o.next.slice(0, 5).map((u) => el("li", {}, urlLink(u))))],
      ])),
    file);
}

// earlierVersion is a robots.txt that was in force before.
function earlierVersion(v) {
  return el("details", {},
    el("summary", {}, "Until ", time(v.replaced), v.text || v.too_long ? `: ${bytes(v.bytes)}` : `: ${v.class}`, v.confirmed ? [", confirmed ", time(v.confirmed)] : ""),
    el("pre", { tabindex: "0" }, v.text || (v.too_long ? "It was too long to keep." : "It was empty.")));
}

const isPaused = (h) => Boolean(h.politeness.paused || h.politeness.reason === "pause");

// commands are those for a host; latest returns what was last known of it.
function commands(path, name, paused, latest, shared) {
  const does = (action) => (answer) => post(`${path}/${action}`, answer);
  return [
    paused
      ? command(shared, "Resume", { title: `Resume ${name}?`, text: "Its other holds stay." }, () => does("resume")({}), "main")
      : command(shared, "Pause", { title: `Pause ${name}?`, text: "No request to it begins until it is resumed." }, () => does("pause")({})),
    command(shared, "Pause until", { title: `Send no request to ${name} before`, fields: [{ name: "until", label: "Time, in UTC", type: "datetime-local", required: true }] },
      ({ until }) => does("pause")({ until: new Date(`${until}Z`).toISOString() })),
    command(shared, "Set delay", () => ({
      title: `Delay of ${name}`, text: "The least seconds between two requests; 0 restores the settings. A longer crawl delay of its robots.txt stays in force.",
      fields: [{ name: "seconds", label: "Seconds", type: "number", min: 0, step: "any", required: true, hint: `In force now: ${duration(latest().politeness.delay_seconds)}, demanded by: ${latest().politeness.delay_reason}` }],
    }), ({ seconds }) => does("delay")({ seconds: Number(seconds) })),
    command(shared, "Forget", { title: `Forget what was learned about ${name}?`, text: "Its robots.txt is fetched again; its failures, its backoff and its wall are dropped. Its URLs stay." }, () => does("forget")({})),
    served(shared, "/api/v1/hosts/{host}/drop", command(shared, "Drop queue", () => ({ title: `Drop the queue of ${name}?`, text: `${count(latest().waiting)} URLs will not be fetched. This cannot be undone.` }), () => does("drop")({}), "danger")),
  ];
}
