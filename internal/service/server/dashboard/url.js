// One URL: where it was found, what became of it and why, what would become of it now, and what can be done.

import { get, query } from "./client.js";
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

export async function url(address, shared) {
  const s = await get(`/api/v1/url?${query({ url: address })}`, shared.signal);
  const v = s.robots;
  const host = s.host?.known ? s.host : null;
  const node = page(s.url, actions(s, shared),
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
