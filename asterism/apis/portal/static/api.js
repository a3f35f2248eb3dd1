// Requests to the doors of the server, through the portal. No request of a page goes anywhere else.
import { showBanner, hideBanner } from "./ui.js";

const CSRF = document.querySelector("meta[name=csrf]")?.content ?? "";

export class ApiError extends Error {
  constructor(status, code, message, reply, headers) {
    super(message);
    this.name = "ApiError";
    this.status = status;
    this.code = code;
    this.reply = reply;
    this.headers = headers;
  }
}

// The server could not be reached at all.
export class Unreachable extends Error {
  constructor() {
    super("The server does not answer. It may be restarting; this page tries again.");
    this.name = "Unreachable";
  }
}

export function encodePath(path) {
  return path.split("/").map(encodeURIComponent).join("/");
}

// Send a request; the answer is { status, headers, body, text }. `body` is JSON where the answer is.
// `path` is not encoded. Refusals throw ApiError, except those in `accept`.
export async function ask(method, account, target, path, options = {}) {
  const { query, headers = {}, body, signal, accept = [] } = options;
  const search = query ? `?${new URLSearchParams(query)}` : "";
  const address = `/api/${encodeURIComponent(account)}/${target}/${encodePath(path)}${search}`;
  const sent = { ...headers };
  if (method !== "GET") sent["x-csrf-token"] = CSRF;
  if (body !== undefined && sent["content-type"] === undefined) sent["content-type"] = "application/json";
  let response;
  try {
    response = await fetch(address, {
      method,
      headers: sent,
      body: body === undefined || typeof body === "string" ? body : JSON.stringify(body),
      signal,
      cache: "no-store",
      credentials: "same-origin",
    });
  } catch (problem) {
    if (problem.name === "AbortError") throw problem;
    showBanner("The server does not answer. It may be restarting; this page tries again.");
    throw new Unreachable();
  }
  hideBanner();
  const text = await response.text();
  let reply = null;
  if ((response.headers.get("content-type") ?? "").includes("json") && text) {
    try {
      reply = JSON.parse(text);
    } catch {
      reply = null;
    }
  }
  if (response.ok || response.status === 304 || accept.includes(response.status)) {
    return { status: response.status, headers: response.headers, body: reply, text };
  }
  if (response.status === 401 && reply?.code === "SignedOut") {
    const next = encodeURIComponent(location.pathname + location.search);
    showBanner(reply.message, { label: "Sign in", address: `/sign-in?next=${next}` });
  }
  throw new ApiError(response.status, codeOf(reply, response), messageOf(reply, response), reply, response.headers);
}

// GET of the operator's door: admin("asterism", "partitions", { database, container }).
export async function admin(account, name, query = {}, options = {}) {
  return (await ask("GET", account, "admin", name, { ...options, query })).body;
}

export async function adminPost(account, name, body, options = {}) {
  return (await ask("POST", account, "admin", name, { ...options, body })).body;
}

function codeOf(reply, response) {
  return reply?.code ?? reply?.["odata.error"]?.code ?? String(response.status);
}

function messageOf(reply, response) {
  const ofTable = reply?.["odata.error"]?.message?.value;
  const message = reply?.message ?? ofTable ?? `The server answered ${response.status}.`;
  // The service's messages end with an activity id on lines of their own.
  return String(message).split(/\r?\nActivityId|, ?\r?\nRequest|\nRequestId/)[0];
}
