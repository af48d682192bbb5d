// The API. If a token is needed the browser prompts for it, as the password of Basic authentication.

export class Problem extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

async function problem(response) {
  try {
    const body = await response.json();
    const places = (body.errors ?? []).map((e) => e.message).filter(Boolean);
    return new Problem(response.status, [body.detail || body.title, ...places].join("; "));
  } catch {
    return new Problem(response.status, response.statusText);
  }
}

async function request(method, path, { body, type, signal } = {}) {
  let response;
  try {
    response = await fetch(path, { method, headers: type ? { "Content-Type": type } : {}, signal, body });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, "there is no contact with the crawl; nothing is known of what it did");
  }
  if (!response.ok) throw await problem(response);
  return response;
}

// last is the object of a response or, of reports, the last one.
async function last(response) {
  const text = await response.text();
  return text ? JSON.parse(text.trimEnd().split("\n").at(-1)) : null;
}

export const get = async (path, signal) => last(await request("GET", path, { signal }));
export const post = async (path, body) => last(await request("POST", path, body === undefined ? {} : { body: JSON.stringify(body), type: "application/json" }));
export const del = async (path) => last(await request("DELETE", path));

// send posts lines of text.
export const send = async (path, text) => last(await request("POST", path, { body: text, type: "text/plain" }));

// lines calls each with every object of a response of JSON lines, as they come.
export async function lines(path, signal, each) {
  const response = await request("GET", path, { signal });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const parts = (rest + value).split("\n");
    rest = parts.pop();
    for (const part of parts) if (part) each(JSON.parse(part));
  }
}

export const query = (values) => new URLSearchParams(Object.entries(values).filter(([, v]) => v !== "" && v !== undefined && v !== null)).toString();

// serves reports whether the program has an operation: those of modules may be missing.
let described = null;
export async function serves(path) {
  described ??= get("/api/v1/openapi.json").catch((error) => {
    described = null;
    throw error;
  });
  return path in (await described).paths;
}
