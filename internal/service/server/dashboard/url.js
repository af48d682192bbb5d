// One URL: where it was found, what became of it and why, and what would become of it now.

import { get, query } from "./client.js";
import { bytes, count, duration, el, facts, hostLink, panel, time, urlLink } from "./dom.js";

export async function url(address, shared) {
  const s = await get(`/api/v1/url?${query({ url: address })}`, shared.signal);
  const v = s.robots;
  const node = el("div", {},
    el("h1", {}, s.url),
    el("div", { class: "columns" },
      panel("State", facts([
        ["State", s.state], ["Why", s.reason], ["Status", s.status || ""], ["Failed attempts in a row", s.attempts || ""], ["Next", time(s.due)],
        ["Found", time(s.first_seen)], ["Fetched", time(s.last_fetched)], ["Judged", time(s.judged)], ["Size", s.bytes ? bytes(s.bytes) : ""], ["Digest", s.digest], ["ETag", s.etag], ["Note", s.note], ["Last-Modified", s.last_modified],
      ])),
      panel("Where it was found", facts([
        ["On", s.via ? urlLink(s.via) : s.seed ? "a seed" : ""], ["Depth", count(s.depth)], ["Redirects that led here", s.redirects || ""], ["Priority", s.priority || ""],
        ["Scope", s.scope?.reason],
      ])),
      s.usage ? panel("What it may be used for", facts(Object.entries(s.usage).sort().map(([use, u]) => [use, `${u.preference === "n" ? "no" : "yes"}, by ${u.from}`]))) : ""),
    el("div", { class: "columns" },
      panel("robots.txt", facts([
        ["Verdict", v.record?.class === "never fetched" ? "not known yet" : el("span", { class: v.allowed ? "good" : "bad" }, v.allowed ? "allowed" : "not allowed")], ["Why", v.reason], ["Line", v.line ? `${v.line}: ${v.rule}` : ""],
        ["File", v.record?.class], ["Fetched", time(v.record?.fetched)],
      ])),
      s.host ? panel("Its host", facts([
        ["Host", hostLink(s.host.host)], ["State", s.host.state], ["Why", s.host.reason], ["Next request", time(s.host.next)], ["Delay", duration(s.host.delay_seconds)], ["URLs waiting", count(s.host.waiting)],
      ])) : ""));
  node.style.display = "contents";
  return { title: s.url, node, on: {} };
}
