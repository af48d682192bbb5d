// One host: its state and why, its requests, and every command for it.

import { get, post, query } from "./client.js";
import { list } from "./list.js";
import { actions, urlColumns } from "./urls.js";
import { command } from "./dialog.js";
import { bars, bytes, clock, count, duration, el, facts, panel, table, time, urlLink } from "./dom.js";

export async function host(name, shared) {
  const path = `/api/v1/hosts/${encodeURIComponent(name)}`;
  const parts = { facts: el("div"), polite: el("div"), urls: el("div"), live: el("div") };
  const story = await get(path, shared.signal);

  function show(h) {
    parts.facts.replaceChildren(facts([
      ["State", [h.state, h.place && ` (${h.place})`]], ["Why", h.reason], ["Next request", time(h.next)], ["In flight", count(h.in_flight)], ["Address", h.address], ["Slower", h.slowdown], ["Group", h.group], ["Opted out", h.opt_out],
      ["URLs waiting", count(h.waiting)], ["Time to finish", h.waiting ? duration(h.finish_seconds) : "nothing waits"], ["Requests", count(h.requests)], ["Received", bytes(h.bytes)],
    ]));
    const p = h.politeness;
    parts.polite.replaceChildren(
      el("p", {}, p.text),
      facts([
        ["Delay in force", duration(p.delay_seconds)], ["Demanded by", p.delay_reason], ["Where", p.delay_source], ["Waits for", p.reason], ["Where", p.source === p.delay_source ? "" : p.source],
        ["Since", time(p.since)], ["Until", time(p.until)], ["Backoff level", p.backoff || ""], ["Failing since", time(p.trouble_since)], ["Last failure", h.trouble], ["Parked", p.parked ? "yes" : ""],
        ["Wall", h.wall && [h.wall.suspected ? "suspected: " : "", h.wall.kind]], ["Evidence", h.wall?.evidence],
      ]));
    parts.urls.replaceChildren(bars(Object.entries(h.urls).sort((a, b) => b[1] - a[1]), (state) => state === "failed"));
  }
  show(story);

  const timeline = (list) => parts.live.replaceChildren(el("ol", { class: "timeline" },
    list.length ? list.map((f) => el("li", {}, clock(f.at), " ", el("span", { class: f.error || f.status >= 400 ? "bad" : "good" }, f.error || String(f.status)), " ", urlLink(f.url), " ",
      el("span", { class: "quiet" }, `${bytes(f.bytes)} in ${duration(f.seconds)}`)))
      : el("li", { class: "quiet" }, "no request since this page was opened")));
  const seen = shared.recent.filter((f) => f.host === name);
  timeline(seen);

  const urls = await list(shared, {
    path: "/api/v1/urls", rows: "urls", csv: "/api/v1/export", wanted: { host: name }, columns: urlColumns, actions: actions(shared),
    filters: [{ key: "state", label: "State", options: ["", ...Object.keys(story.urls)].map((s) => [s, s || "all"]) }, { key: "contains", label: "Part of the URL" }],
  });
  const node = el("div", {},
    el("div", { class: "tools" }, el("h1", {}, name), commands(path, name, story, shared)),
    el("div", { class: "columns" }, panel("Now", parts.facts), panel("Politeness", parts.polite)),
    el("div", { class: "columns" }, panel("URLs by state", parts.urls), panel("Timeline", el("div", { class: "fixed" }, parts.live))),
    story.origins.map((o) => origin(o, shared)),
    story.traps?.length ? panel("Traps", table("URLs that were refused", [
      { title: "Trap", cell: (t) => t.reason }, { title: "Refused", number: true, cell: (t) => count(t.refused) },
      { title: "Samples", cell: (t) => el("ul", {}, t.samples.map((s) => el("li", {}, s))) },
    ], story.traps)) : "",
    panel("URLs", urls));
  node.style.display = "contents";

  let shown = 0;
  return {
    title: name, node,
    on: {
      fetches(list) {
        const own = list.filter((f) => f.host === name);
        if (own.length) timeline((seen.unshift(...own), seen.splice(100), seen));
      },
      async status() {
        if (Date.now() - shown < 2000) return;
        shown = Date.now();
        try {
          show(await get(path, shared.signal));
        } catch (error) {
          if (!shared.signal.aborted) shared.say(error.message);
        }
      },
    },
  };
}

function origin(o, shared) {
  const r = o.robots;
  const text = el("pre", {});
  const before = el("div", {});
  const file = el("details", {
    async toggle() {
      if (!file.open) return;
      try {
        const now = await get(`/api/v1/robots?${query({ origin: o.origin })}`, shared.signal);
        text.textContent = now.text || "It is empty.";
        before.replaceChildren(...now.earlier.map(earlier));
      } catch (error) {
        text.textContent = error.message;
      }
    },
  }, el("summary", {}, "robots.txt in force"), text, before);
  return panel(o.origin,
    el("div", { class: "columns" },
      facts([
        ["robots.txt", r.class], ["Status", r.status || ""], ["Failure", r.failure], ["Failures in a row", r.failures || ""], ["Fetched", time(r.fetched)], ["Expires", time(r.expires)],
        ["Unreachable since", time(r.first_unreachable)], ["Redirected to", r.final_url === `${o.origin}/robots.txt` ? "" : r.final_url], ["Pages", r.standing], ["Until", time(r.until)],
      ]),
      facts([
        ["Group", r.group], ["Rules", count(r.rules)], ["Crawl-delay", r.crawl_delay_seconds === null ? "" : duration(r.crawl_delay_seconds)], ["Line", r.crawl_delay_line ? `${r.crawl_delay_line}: ${r.crawl_delay_text}` : ""],
        ["Disallows all", r.disallows_all ? "yes" : ""], ["Queued", count(o.queued)], ["Due", count(o.due)],
      ])),
    file);
}

// earlier is a version that was in force before.
function earlier(v) {
  return el("details", {},
    el("summary", {}, "Until ", time(v.replaced), v.text || v.too_long ? `: ${bytes(v.bytes)}` : `: ${v.class}`, v.confirmed ? [", confirmed ", time(v.confirmed)] : ""),
    el("pre", {}, v.text || (v.too_long ? "It was too long to keep." : "It was empty.")));
}

function commands(path, name, story, shared) {
  const send = (action) => (answer) => post(`${path}/${action}`, answer);
  const paused = story.politeness.reason === "pause";
  return [
    paused
      ? command(shared, "Resume", { title: `Resume ${name}?`, text: "Its other holds stay." }, () => send("resume")({}), "main")
      : command(shared, "Pause", { title: `Pause ${name}?`, text: "No request to it begins until it is resumed." }, () => send("pause")({})),
    command(shared, "Block until", { title: `Send no request to ${name} before`, fields: [{ name: "until", label: "Time", type: "datetime-local", required: true }] },
      ({ until }) => send("pause")({ until: new Date(until).toISOString() })),
    command(shared, "Set delay", { title: `Delay of ${name}`, text: "Least seconds between requests; 0 restores the settings. A longer crawl delay of its robots.txt stays in force.",
      fields: [{ name: "seconds", label: "Seconds", type: "number", min: 0, step: "any", required: true, placeholder: `in force: ${duration(story.politeness.delay_seconds)}` }] },
    ({ seconds }) => send("delay")({ seconds: Number(seconds) })),
    command(shared, "Forget", { title: `Forget what was learned about ${name}?`, text: "Its robots.txt is fetched again, its errors and backoff are dropped. Its URLs stay." }, () => send("forget")({})),
    command(shared, "Drop queue", { title: `Drop the queue of ${name}?`, text: `${count(story.waiting)} URLs will not be fetched. This cannot be undone.` }, () => send("drop")({}), "danger"),
  ];
}
