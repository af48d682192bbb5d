// A fetcher for amble that drives a real browser: it reports pages as they are after their scripts
// have run. Sub-requests that leave the host of the page are asked for, and blocked if amble does
// not allow them now. Needs Node.js, playwright-core and Chromium.
//
// Usage: AMBLE_SERVER_FETCH_TOKEN=... node browser.mjs http://127.0.0.1:8377 NAME [IDLE_SECONDS]
import { chromium } from "playwright-core";

const [base, name, idle = "Infinity"] = process.argv.slice(2);
const api = (path, body) => fetch(base + "/api/v1" + path, {
  method: "POST", body: JSON.stringify({ fetcher: name, ...body }),
  headers: { "Content-Type": "application/json", Authorization: `Bearer ${process.env.AMBLE_SERVER_FETCH_TOKEN ?? ""}` },
});

// take returns the next leases; it waits for up to 20 seconds if none is due. null: the crawl has
// ended.
async function take() {
  const answer = await api("/leases", { n: 4, wait: Math.min(20, Number(idle)), seconds: 90 }).catch(() => null);
  if (!answer) return null;
  if (answer.status === 503) { // the crawl is starting or ending
    await new Promise((done) => setTimeout(done, 1000));
    return [];
  }
  if (!answer.ok) throw new Error(`leases: ${answer.status} ${await answer.text()}`);
  return (await answer.text()).split("\n").filter(Boolean).map((line) => JSON.parse(line))
    .map((lease) => ({ ...lease, ends: performance.now() + lease.seconds * 1000 }));
}

// What archives get of a page and of what it requests is at most so many bytes of bodies, before base64.
const CAPTURED = 3 << 20;

// capture returns a request and its response for web archives; null: the response is too large.
async function capture(request, response, most) {
  const body = await response.body();
  if (body.length > most) return null;
  return { url: request.url(), request_headers: request.headers(), status: response.status(),
    headers: response.headers(), body_base64: body.toString("base64") };
}

// A page may take so many milliseconds. It is opened only if so much of its lease is left, and a little more.
const PAGE = 45_000, LEAST = PAGE + 10_000;

// mayRequest asks whether a request that leaves the host of its page may be made now.
async function mayRequest(url) {
  if (!/^https?:/.test(url)) return false;
  const answer = await fetch(base + "/api/v1/check", {
    method: "POST", body: JSON.stringify({ urls: [url], take: true }),
    headers: { "Content-Type": "application/json", Authorization: `Bearer ${process.env.AMBLE_SERVER_FETCH_TOKEN ?? ""}` },
  });
  return answer.ok && (await answer.json()).results[0].may;
}

// visit opens the page of a lease, and returns its report. If the browser fails, the lease is given back.
async function visit(browser, lease) {
  if (lease.ends - performance.now() < LEAST) return { id: lease.id, not_done: true };
  const host = new URL(lease.url).host;
  const { "User-Agent": userAgent, ...headers } = lease.headers;
  const context = await browser.newContext({ userAgent, extraHTTPHeaders: headers, serviceWorkers: "block" })
    .catch((e) => console.error(`no window for ${lease.url}: ${e.message}`));
  if (!context) return { id: lease.id, not_done: true };
  const started = performance.now();
  const report = { id: lease.id, captures: [] };
  let first = true, failure, left = CAPTURED;
  try {
    const page = await context.newPage();
    // One request for one lease: what the page loads from its own host would come without a delay.
    await page.route("**/*", async (route) => {
      const url = route.request().url();
      const isPage = first && route.request().isNavigationRequest() && url === lease.url;
      first &&= !isPage;
      try {
        if (!isPage && (new URL(url).host === host || !await mayRequest(url))) return await route.abort();
        const response = await route.fetch({ maxRedirects: 0, timeout: 30_000 });
        if (isPage) Object.assign(report, { status: response.status(), headers: response.headers() });
        const captured = await capture(route.request(), response, left);
        if (captured && report.captures.length < 256) {
          report.captures.push(captured);
          left -= captured.body_base64.length * 3 / 4;
        }
        await (response.status() >= 300 && response.status() < 400 ? route.abort() : route.fulfill({ response }));
      } catch (e) {
        if (isPage) failure = e;
        await route.abort().catch(() => {}); // the page may be closed
      }
    });
    await page.goto(lease.url, { waitUntil: "load", timeout: PAGE });
    Object.assign(report, { body: await page.content(), title: (await page.title()).slice(0, 500) });
    report.headers["content-type"] = "text/html; charset=utf-8"; // of what the browser made of the page
  } catch (e) {
    if (!browser.isConnected() || /crash/i.test(e.message)) {
      console.error(`the browser failed at ${lease.url}: ${e.message}`);
      return { id: lease.id, not_done: true, sent: true };
    }
    if (!report.status) report.error = /timeout/i.test((failure ?? e).message) ? "header_timeout" : "reset";
  } finally {
    report.took = (performance.now() - started) / 1000;
    await context.close().catch(() => {}); // it is, if the browser failed
  }
  return report;
}

// The browser itself reaches nothing, since its proxy does not exist: not for icons, redirects, sockets and guesses of
// its own, which no handler sees. What may be requested is requested by route.fetch, which does not use that proxy.
const launch = () => chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--proxy-server=127.0.0.1:9", "--proxy-bypass-list=<-loopback>",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    ...(process.env.CHROMIUM_ARGS ?? "").split(" ").filter(Boolean)],
});
let browser;
try {
  for (let last = performance.now(); performance.now() - last < Number(idle) * 1000;) {
    if (!browser?.isConnected()) browser = await launch();
    const leases = await take();
    if (!leases) break;
    await Promise.all(leases.map(async (lease) => {
      const report = await visit(browser, lease);
      last = performance.now();
      const answer = await api("/leases/" + report.id, report).catch((e) => ({ status: e.message }));
      console.log(answer.status, report.status ?? report.error ?? "not done", report.id);
    }));
  }
} catch (e) {
  console.error(`browser.mjs: ${e.message}`);
  process.exitCode = 1;
} finally {
  await browser?.close();
}
