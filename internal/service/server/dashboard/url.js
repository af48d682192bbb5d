// One URL: where it was found, what became of it and why, what would become of it now, and what can be done.

import { get, post, query, serves } from "./client.js";
import { command } from "./dialog.js";
import { bytes, columns, count, duration, el, facts, hostLink, page, panel, time, urlLink } from "./dom.js";
import { addURLs, canPutBack } from "./urls.js";

// verdict says what robots.txt says. Before it was read nothing is allowed or forbidden.
function verdict(v) {
  if (v.record?.class === "never fetched") return "not known yet";
  return el("span", { class: v.allowed ? "good" : "bad" }, v.allowed ? "allowed" : "not allowed");
}

// actions are the commands that fit its state.
function actions(s, shared) {
  const put = async () => addURLs(s.url, true);
  if (canPutBack.includes(s.state)) {
    return command(shared, "Retry", { title: "Put this URL back into its queue?", text: "It is due at once. The delay of its host and its robots.txt apply as usual." }, put, "main");
  }
  if (!s.known && s.scope?.in) return command(shared, "Add to the crawl", { title: "Add this URL to the crawl?", text: "It is fetched when its turn comes." }, put, "main");
  return "";
}

// fetchNow is a command with which the URL is fetched outside the crawl; the page shows what came of it.
const fetchNow = (s, shared) => command(shared, "Fetch now", {
  title: "Fetch this URL now, to look at it?", text: "Within politeness: it has the next turn of its host, if robots.txt allows it. What comes does not belong to the crawl, and its links are not followed. This may take some time.",
}, async () => {
  shared.fetched = { of: s.url, ...(await post("/api/v1/fetch", { url: s.url })) };
  return { done: `The outcome: ${[shared.fetched.outcome, shared.fetched.reason].filter(Boolean).join(": ")}` };
});

// fetched shows what came of fetchNow.
function fetched(f) {
  const r = f.response;
  return panel("Fetched now",
    columns(
      facts([
        ["Outcome", f.outcome], ["Why", f.reason], ["Until", time(f.until)], ["At", time(f.request?.at)], ["robots.txt", f.robots?.verdict], ["Line", f.robots?.line ? `${f.robots.line}: ${f.robots.rule}` : f.robots?.why],
        ["Delay", f.request && `${duration(f.request.delay)}, demanded by: ${f.request.delay_reason ?? ""}`],
      ]),
      r && facts([
        ["Status", String(r.status)], ["Protocol", r.protocol], ["First byte after", duration(r.first_byte_ms / 1000)], ["Took", duration(r.duration_ms / 1000)], ["Received", bytes(r.received)], ["Size", bytes(r.bytes)],
        ["Wall", r.wall], ["Title", f.page?.title], ["Links", f.links && count(f.links.length)], ["Needs a browser", f.page?.needs_browser && "yes"],
      ])),
    r && el("details", {}, el("summary", {}, "Header"), el("pre", { tabindex: "0" }, Object.entries(r.header).map(([name, values]) => values.map((v) => `${name}: ${v}\n`)))));
}

// requisites shows how much of what a page is made of is stored.
async function requisites(s, signal) {
  if (s.state !== "fetched" || !(await serves("/api/v1/requisites"))) return "";
  const p = await get(`/api/v1/requisites?${query({ url: s.url })}`, signal);
  if (!p.named) return "";
  return panel("What it is made of",
    facts([
      ["Requisites", count(p.named)], ["Stored", p.complete ? "all" : count(p.stored)], ["Waiting", p.waiting ? count(p.waiting) : ""],
      ["Missing", Object.entries(p.missing).sort(([, a], [, b]) => b - a).map(([why, n]) => `${count(n)} ${why}`).join(", ")],
    ]),
    p.requisites.length > 0 && el("details", {}, el("summary", {}, "Those that are not stored"), el("ul", {}, p.requisites.map((part) => el("li", {}, urlLink(part.url), ` ${part.reason ?? part.state}`)))));
}

export async function url(address, shared) {
  const s = await get(`/api/v1/url?${query({ url: address })}`, shared.signal);
  const v = s.robots;
  const host = s.host?.known ? s.host : null;
  const node = page(s.url, [actions(s, shared), (await serves("/api/v1/fetch")) && fetchNow(s, shared)],
    shared.fetched?.of === s.url && fetched(shared.fetched),
    columns(
      panel("State", facts([
        ["State", s.known ? s.state : "unknown: it is not in the crawl"], ["Why", s.reason], ["Status", s.status || ""], ["Note", s.note], ["Failed attempts in a row", s.attempts || ""], ["Due", time(s.due)],
        ["Not before", time(s.earliest)], ["Found", time(s.first_seen)], ["Fetched", time(s.last_fetched)], ["Judged", time(s.judged)], ["Size", s.bytes ? bytes(s.bytes) : ""], ["Digest", s.digest], ["ETag", s.etag], ["Last-Modified", s.last_modified],
      ])),
      panel("Where it was found", facts([
        ["On", s.via ? urlLink(s.via) : s.seed ? "a seed" : ""], ["Depth", s.known ? count(s.depth) : ""], ["Redirects that led here", s.redirects || ""], ["Priority", s.priority || ""],
        ["Scope", s.scope?.reason], ["Expensive endpoint", s.expensive && `${s.expensive.class} of ${s.expensive.product}, line ${s.expensive.line}`],
        ["Way from the seed", s.chain?.length > 1 && el("ol", { class: "way" }, [...s.chain].reverse().map((step) => el("li", {}, urlLink(step.url), step.state && ` (${step.state})`)))],
      ])),
      await requisites(s, shared.signal),
      s.usage && panel("What it may be used for", facts(Object.entries(s.usage).sort().map(([use, u]) => [use, `${u.preference === "n" ? "no" : "yes"}, by ${u.from}`])))),
    columns(
      panel("robots.txt", facts([
        ["Verdict", verdict(v)], ["Why", v.reason], ["Line", v.line ? `${v.line}: ${v.rule}` : ""], ["File", v.record?.class], ["Fetched", time(v.record?.fetched)],
      ])),
      host && panel("Its host", facts([
        ["Host", hostLink(host.host)], ["State", host.state], ["Why", [host.reason, host.trouble].filter(Boolean).join(": ")], ["Next request", time(host.next)], ["Delay", duration(host.delay_seconds)], ["URLs waiting", count(host.waiting)],
      ]))));
  return { title: s.url, node, on: {} };
}
