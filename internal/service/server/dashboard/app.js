// The frame around the pages: which one is shown, what state the crawl is in, the live stream, and the search box.

import { el } from "./dom.js";
import { overview } from "./overview.js";
import { fetches } from "./fetches.js";
import { hosts } from "./hosts.js";
import { optouts } from "./optouts.js";
import { cluster } from "./cluster.js";
import { host } from "./host.js";
import { url } from "./url.js";
import { urls } from "./urls.js";

// A page is a function (argument, shared) that returns {title, node, on} where on has a function for each kind of event it wants.
const pages = { "": overview, hosts: (name, shared) => (name && !name.includes("=") ? host(name, shared) : hosts(name, shared)), urls, fetches, optouts, cluster, url };

const main = document.getElementById("main");
const badge = document.getElementById("state");
const notice = document.getElementById("notice");

// shared is what all pages know: the last status and the fetches that were seen, and a signal that ends with the page.
const shared = { status: null, recent: [], signal: null, lost: false, refresh: show, say, later };
let page = { on: {} };
let incomplete = false; // the last status was
let leave = new AbortController();

function say(text) {
  notice.className = "";
  notice.hidden = !text;
  notice.textContent = text ?? "";
}

// later says what a command has done, when the page shows it.
let done = "";
function later(text) {
  done = text;
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
    if (link.getAttribute("href") === `#/${name}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  try {
    const next = await (pages[name] ?? overview)(argument, shared);
    if (signal.aborted) return;
    page = next;
    document.title = `${page.title} · amble`;
    main.replaceChildren(page.node);
    if (shared.status) page.on.status?.(shared.status);
    say(done);
    if (done) notice.className = "done";
    done = "";
  } catch (error) {
    if (signal.aborted) return;
    page = { on: {} };
    main.replaceChildren(el("section", { class: "panel" }, el("h1", {}, "This cannot be shown"), el("p", {}, error.message)));
  }
}

const on = {
  status(status) {
    shared.status = status;
    badge.className = `badge ${status.state}`;
    if (badge.textContent !== status.state) badge.textContent = status.state;
    badge.title = status.reason ?? "";
    document.getElementById("cluster").hidden = !status.cluster;
    if (status.incomplete) say(`Not all of the cluster has answered: ${status.incomplete.why.join("; ")}`);
    else if (incomplete) say();
    incomplete = Boolean(status.incomplete);
  },
  fetches(list) {
    shared.recent = [...list.reverse(), ...shared.recent].slice(0, 200);
  },
};

// listen follows the live stream. The browser takes it up again by itself when it breaks.
function listen() {
  const stream = new EventSource("/api/v1/events");
  for (const type of ["status", "fetches", "point"]) {
    stream.addEventListener(type, (event) => {
      const data = JSON.parse(event.data);
      if (data === null) return;
      contact(true);
      on[type]?.(data);
      page.on[type]?.(data);
    });
  }
  stream.addEventListener("error", () => {
    badge.className = "badge lost";
    badge.textContent = "no contact";
    contact(false);
  });
}

// contact marks figures that are of the past, and keeps buttons from doing nothing.
function contact(there) {
  shared.lost = !there;
  main.classList.toggle("stale", shared.lost);
}

document.getElementById("search").addEventListener("submit", (event) => {
  event.preventDefault();
  const wanted = document.getElementById("query").value.trim();
  if (!wanted) return;
  location.hash = /^[a-z]+:\/\//i.test(wanted) ? `#/url/${encodeURIComponent(wanted)}`
    : wanted.includes("/") ? `#/url/${encodeURIComponent(`https://${wanted}`)}`
      : `#/hosts/${encodeURIComponent(wanted.toLowerCase())}`;
});

addEventListener("hashchange", async () => {
  await show();
  main.focus({ preventScroll: true });
  scrollTo(0, 0);
});
show();
listen();
