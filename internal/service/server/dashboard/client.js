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
    return new Problem(response.status, body.detail || body.title);
  } catch {
    return new Problem(response.status, response.statusText);
  }
}

async function request(method, path, body, signal) {
  const headers = body === undefined ? {} : { "Content-Type": "application/json" };
  const response = await fetch(path, { method, headers, signal, body: body === undefined ? undefined : JSON.stringify(body) });
  if (!response.ok) throw await problem(response);
  const text = await response.text();
  return text ? JSON.parse(text.trimEnd().split("\n").at(-1)) : null; // of reports the last one
}

export const get = (path, signal) => request("GET", path, undefined, signal);
export const post = (path, body) => request("POST", path, body);
export const del = (path) => request("DELETE", path);

export const query = (values) => new URLSearchParams(Object.entries(values).filter(([, v]) => v !== "" && v !== undefined)).toString();
