// Lets wabac.js open a WACZ file from a server, as ReplayWeb.page does, and read captures of it.
// Arguments: the file, then a timestamp and a URL for each capture. Prints an object of JSON.
import "fake-indexeddb/auto";
import { createHash } from "node:crypto";
import fs from "node:fs";
import http from "node:http";

const [file, ...captures] = process.argv.slice(2);
const size = fs.statSync(file).size;
const server = http.createServer((request, response) => {
  const range = /bytes=(\d*)-(\d*)/.exec(request.headers.range || "");
  let start = 0, end = size - 1;
  if (range && range[1] === "") {
    start = size - Number(range[2]);
  } else if (range) {
    start = Number(range[1]);
    end = range[2] === "" ? end : Math.min(Number(range[2]), end);
  }
  const header = { "Content-Length": end - start + 1, "Accept-Ranges": "bytes" };
  if (range) {
    header["Content-Range"] = `bytes ${start}-${end}/${size}`;
  }
  response.writeHead(range ? 206 : 200, header);
  if (request.method === "HEAD") {
    response.end();
  } else {
    fs.createReadStream(file, { start, end }).pipe(response);
  }
}).listen(0, "127.0.0.1");
await new Promise((done) => server.once("listening", done));
const url = `http://127.0.0.1:${server.address().port}/all.wacz`;

// What a worker of a browser has.
globalThis.self = globalThis;
self.location = new URL(url);
self.addEventListener ||= () => {};
self.postMessage ||= () => {};
const print = console.log;
console.log = console.error;

const { WorkerLoader, ArchiveRequest } = await import("@webrecorder/wabac/swlib");
const loader = new WorkerLoader(self);
await loader.addCollection({ name: "all", file: { sourceUrl: url } }, () => {});
const { store } = await loader.loadColl("all");
const read = [];
for (let i = 0; i < captures.length; i += 2) {
  const request = new ArchiveRequest(`${captures[i]}mp_/${captures[i + 1]}`, new Request("http://replay.test/"));
  const found = await store.getResource(request, "http://replay.test/", { waitUntil() {} }, { noRedirect: true });
  const body = found && (await found.getBuffer());
  read.push({ status: found ? found.status : 0, digest: createHash("sha256").update(body || "").digest("hex") });
}
print(JSON.stringify({ pages: (await store.getAllPages()).length, read }));
process.exit(0);
