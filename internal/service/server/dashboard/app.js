// The frame around the pages: which one is shown, what state the crawl is in, the live stream, and the search box.

import { clockText, count, el, page as pageOf, panel } from "./dom.js";
import { cluster } from "./cluster.js";
import { fetches } from "./fetches.js";
import { find, wanted } from "./find.js";
import { host } from "./host.js";
import { hosts } from "./hosts.js";
import { optouts } from "./optouts.js";
import { overview } from "./overview.js";
import { seeds } from "./seeds.js";
import { url } from "./url.js";
import { urls } from "./urls.js";

// A page is a function (argument, shared) that returns {title, node, on} where on has a function for each kind of event it wants.
const pages = { "": overview, hosts: (name, shared) => (name && !name.includes("=") ? host : hosts)(name, shared), urls, seeds, fetches, optouts, cluster, url, find };

const main = document.getElementById("main");
const badge = document.getElementById("state");
const notice = document.getElementById("notice");
const now = document.getElementById("clock");

// shared is what all pages know: the last status, the fetches that were seen, whether there is contact, and a signal that ends with
// the page. say shows a text above the page, fail that of an error, and refresh the page again, with a text.
const shared = { status: null, recent: [], signal: null, lost: false, refresh, say, fail };
let page = { on: {} };
let incomplete = false; // the last status was
let leave = new AbortController();
let away = null; // what is said as long as there is no contact: {text, good}

function say(text, good) {
  const shown = [text, away?.text].filter(Boolean).join(" ");
  notice.className = (away ?? { good }).good ? "done" : "";
  notice.hidden = !shown;
  notice.textContent = shown;
}

// fail says what went wrong for a page, unless it was left, or there is no contact, which the frame says.
function fail(error, signal, what = "") {
  if (!signal.aborted && error.status !== 0) say(what + error.message);
}

function parts() {
  const [name = "", argument = ""] = location.hash.replace(/^#\/?/, "").split(/\/(.*)/s);
  try {
    return [name, decodeURIComponent(argument)];
  } catch {
    return [name, argument];
  }
}

async function show() {
  leave.abort();
  leave = new AbortController();
  const { signal } = leave;
  shared.signal = signal;
  const [name, argument] = parts();
  for (const link of document.querySelectorAll("nav a")) {
    if (link.getAttribute("href") === `#/${name === "url" ? "urls" : name}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  main.setAttribute("aria-busy", "true");
  try {
    const next = await (pages[name] ?? overview)(argument, shared);
    if (signal.aborted) return;
    page = next;
    document.title = `${page.title} · amble`;
    main.replaceChildren(page.node);
    if (shared.status) page.on.status?.(shared.status);
  } catch (error) {
    if (signal.aborted) return;
    page = { on: {} };
    document.title = "amble";
    main.replaceChildren(pageOf("This cannot be shown", "", panel("Why", el("p", {}, error.message))));
  }
  main.dataset.page = location.hash;
  main.removeAttribute("aria-busy");
}

async function refresh(text, good) {
  await show();
  say(text, good);
}

const on = {
  status(status) {
    shared.status = status;
    badge.className = `badge ${status.state}`;
    if (badge.textContent !== status.state) badge.textContent = status.state;
    badge.title = status.reason ?? "";
    now.textContent = `${clockText(new Date(status.at))} UTC`;
    document.getElementById("cluster").hidden = !status.cluster;
    if (status.incomplete) say(`Not all of the cluster has answered: ${status.incomplete.why.join("; ")}`);
    else if (incomplete) say();
    incomplete = Boolean(status.incomplete);
  },
  fetches(list) {
    shared.recent = [...list.reverse(), ...shared.recent].slice(0, 200);
  },
};

// listen follows the live stream. The browser takes it up again by itself, but not when it was refused.
function listen() {
  const stream = new EventSource("/api/v1/events");
  for (const type of ["status", "fetches", "point"]) {
    stream.addEventListener(type, (event) => {
      const data = JSON.parse(event.data);
      if (shared.lost) contact(true);
      on[type]?.(data);
      page.on[type]?.(data);
    });
  }
  stream.addEventListener("error", () => {
    if (!shared.lost) contact(false);
    if (stream.readyState === EventSource.CLOSED) setTimeout(listen, 3000);
  });
}

// contact marks figures that are of the past. What the crawl said last tells an end from a loss.
function contact(there) {
  shared.lost = !there;
  main.classList.toggle("stale", shared.lost);
  away = there ? null : absence(shared.status);
  say();
  if (there && shared.status) refresh();
}

// ends are the reasons why a run ends that want words; those of docs/OPERATING.md.
const ends = { done: "all is done or postponed", stopped: "it was stopped", max_pages: "crawl.max_pages is reached", max_bytes: "crawl.max_bytes is reached", max_time: "crawl.max_time is over", no_seed: "no seed could be fetched" };

function absence(last) {
  const at = last && `${clockText(new Date(last.at))} UTC`;
  if (last?.state === "finished" || last?.state === "stopping") {
    badge.textContent = "ended";
    const { fetched = 0, failed = 0, queued = 0, retrying = 0 } = last.urls;
    return { good: true, text: `The crawl has ended at ${at}${ends[last.end] ? `: ${ends[last.end]}` : ""}. ${count(fetched)} URLs fetched, ${count(failed)} failed, ${count(queued + retrying)} waiting. These are its last figures; this page goes on when it is started again.` };
  }
  badge.className = "badge lost";
  badge.textContent = "no contact";
  return { text: `There is no contact with the crawl${last ? ` since ${at}: these figures are of then` : ""}. Trying again.` };
}

document.getElementById("search").addEventListener("submit", (event) => {
  event.preventDefault();
  const text = document.getElementById("query").value.trim();
  if (text) location.hash = wanted(text);
});

addEventListener("hashchange", async () => {
  document.getElementById("dialog").close();
  say();
  await show();
  main.focus({ preventScroll: true });
  scrollTo(0, 0);
});
show();
listen();
