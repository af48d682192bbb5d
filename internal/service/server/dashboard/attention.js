// What needs attention: alarms, hosts that do not get on and URLs that failed, each with the list of them.

import { alarms } from "./alarms.js";
import { get, query } from "./client.js";
import { count, el, quiet, refill } from "./dom.js";

const lookEvery = 5; // statuses between two looks at what a status does not have

// kinds are states of hosts that need attention, and what they mean. A status counts the hosts of each, but for suspected.
const kinds = [
  ["walled", "behind a wall: refusals or challenges stand in place of their pages"],
  ["suspected", "with a wall suspected"],
  ["failing", "failing: they wait after failures"],
  ["held", "held: their robots.txt disallows everything or cannot be read"],
  ["paused", "paused by the operator"],
];

export function attention(shared) {
  const node = el("div");
  const { signal } = shared;
  let suspected = 0;
  let raised = "";
  let statuses = 0;

  async function look() {
    raised = await alarms(signal);
    suspected = (await get(`/api/v1/hosts?${query({ state: "suspected", limit: 1 })}`, signal)).matching;
  }
  function show(s) {
    const hosts = { ...s.host_states, suspected };
    const rows = [
      ...kinds.map(([state, text]) => [hosts[state], "host", text, `hosts/${query({ state, sort: "waiting" })}`]),
      [s.urls.failed, "URL", "given up", `urls/${query({ state: "failed" })}`],
      [s.urls.denied, "URL", "denied by robots.txt", `urls/${query({ state: "denied" })}`],
      [s.pace?.violations, "gap", "shorter than the delay in force", ""],
    ].filter(([n]) => n > 0);
    refill(node, raised, rows.length
      ? el("ul", { class: "attention" }, rows.map(([n, what, text, to]) => el("li", {}, el(to ? "a" : "span", { href: to && `#/${to}` }, `${count(n)} ${what}${n === 1 ? "" : "s"}`), el("span", {}, text))))
      : s.hosts ? quiet("nothing: no host is blocked, and no URL failed") : el("p", {}, "There is nothing to crawl yet: ", el("a", { href: "#/seeds" }, "add seeds"), "."));
  }
  return {
    node,
    async status(s) {
      show(s);
      if (statuses++ % lookEvery) return;
      try {
        await look();
        show(s);
      } catch (error) {
        shared.fail(error, signal);
      }
    },
  };
}
