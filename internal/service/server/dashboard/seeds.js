// The seeds: what the crawl starts from, and more work for it.

import { del, lines, query, send } from "./client.js";
import { command } from "./dialog.js";
import { count, el, page, panel, refill, table, urlLink } from "./dom.js";

const shownAtOnce = 100;

// fields are what is said of a seed, as it is written behind its URL.
const names = ["scope", "include", "exclude", "max_depth", "max_pages", "hops", "links", "priority", "recrawl", "tags", "store"];
const fields = (s) => names.filter((name) => name in s).map((name) => `${name}=${Array.isArray(s[name]) ? s[name].join(",") : s[name]}`).join(" ");

const counts = (done) => ({ incomplete: done.incomplete, done: `Seeds: ${[["added", done.added], ["changed", done.changed], ["known before", done.known], ["removed", done.removed]].filter(([, n]) => n).map(([name, n]) => `${count(n)} ${name}`).join(", ") || "nothing changed"}` });

const add = (shared) => command(shared, "Add seeds", {
  title: "Add seeds to the crawl", text: "The scope of the crawl becomes that of these seeds, too. They are in their queues at once.",
  fields: [{
    name: "list", label: "One seed a line: a URL or a name of a host", lines: 8, required: true, placeholder: "www.example.com\nhttps://example.org/news/ scope=prefix tags=news",
    hint: "Behind the URL may stand scope=host|domain|prefix|any, max_depth=, max_pages=, hops=, links=all|sitemap|none, tags=, priority=, recrawl=, include=, exclude=, store=false. With a line that cannot be read, none is added.",
  }],
}, async ({ list }) => counts(await send("/api/v1/seeds", list)), "main");

export async function seeds(_, shared) {
  const { signal } = shared;
  const all = [];
  await lines("/api/v1/seeds", signal, (seed) => all.push(seed));
  const place = el("div");
  let [part, most] = ["", shownAtOnce];
  const more = el("button", { type: "button", click: () => { most += shownAtOnce; show(); } }, "More");
  const remove = (s) => command(shared, "Remove", {
    title: `Remove the seed ${s.url}?`, text: "URLs that wait and belong to no other seed are excluded. What was fetched stays.",
  }, async () => counts(await del(`/api/v1/seeds?${query({ url: s.url })}`)), "danger");
  function show() {
    const chosen = all.filter((s) => s.url.includes(part) || s.tags?.some((t) => t.includes(part)));
    const shown = chosen.slice(0, most);
    more.hidden = shown.length === chosen.length;
    refill(place, table(chosen.length ? `${count(shown.length)} of ${count(chosen.length)}` : "Seeds", [
      { title: "Seed", cell: (s) => urlLink(s.url) },
      { title: "Fields", cell: fields },
      { title: "From", cell: (s) => (s.of ? ["a redirect of ", urlLink(s.of)] : s.source) },
      { title: "Pages", cell: (s) => [el("a", { href: `#/urls/${query({ seed: s.of || s.url })}` }, "all"), " ", el("a", { href: `#/urls/${query({ seed: s.of || s.url, state: "failed" })}` }, "failed")] },
      { title: "Action", cell: (s) => (s.of ? "" : remove(s)) },
    ], shown));
  }
  show();
  const filter = el("label", {}, "Part of the URL or of a tag", el("input", { type: "search", name: "contains", input: (e) => { part = e.target.value.trim(); most = shownAtOnce; show(); } }));
  return { title: "Seeds", node: page("Seeds", add(shared), panel("List", el("div", { class: "list" }, el("div", { class: "tools" }, filter), place, more))), on: {} };
}
