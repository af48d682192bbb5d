// Find: a host, a URL, or a part of either.

import { get, query } from "./client.js";
import { el, page, panel } from "./dom.js";
import { hostColumns } from "./hosts.js";
import { list } from "./list.js";
import { urlColumns } from "./urls.js";

// wanted is the address of the page for a text that was typed: a whole URL has a page, and everything else is looked for.
export function wanted(text) {
  return /^[a-z]+:\/\//i.test(text) ? `#/url/${encodeURIComponent(text)}` : `#/find/${encodeURIComponent(text)}`;
}

// known reports whether there is a host of exactly this name: it comes first of those under the name.
async function known(name, signal) {
  if (!/^[^/?#:\s]+$/.test(name)) return false;
  const { hosts } = await get(`/api/v1/hosts?${query({ under: name, limit: 1 })}`, signal);
  return hosts[0]?.host === name;
}

export async function find(text, shared) {
  const name = text.toLowerCase();
  if (await known(name, shared.signal)) {
    location.replace(`#/hosts/${encodeURIComponent(name)}`);
    return { title: text, node: page(text, ""), on: {} };
  }
  const few = (all, ...titles) => all.filter((c) => titles.includes(c.title));
  const [hosts, urls] = await Promise.all([
    list(shared, { path: "/api/v1/hosts", rows: "hosts", csv: "/api/v1/export/hosts", wanted: { contains: name, sort: "name" }, columns: few(hostColumns, "Host", "State", "Why", "Waiting", "URLs", "Failed") }),
    list(shared, { path: "/api/v1/urls", rows: "urls", csv: "/api/v1/export", wanted: { contains: text }, slow: true, columns: few(urlColumns, "URL", "State", "Why", "Status") }),
  ]);
  const node = page(`Found for “${text}”`, "",
    panel("Hosts with this in their name", hosts),
    panel("URLs with this in them", urls, el("p", {}, el("a", { href: `#/urls/${query({ contains: text })}` }, "Narrow these, or act on them"))));
  return { title: `Find ${text}`, node, on: {} };
}
