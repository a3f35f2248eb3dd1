// Items through the NoSQL door. Answers are read as texts, so that numbers stay as they are stored.
import { ask } from "./api.js";
import { parseJson, property } from "./json_text.js";
import { keyHeader } from "./items_model.js";
import { collection } from "./ui.js";

const about = collection();

function send(method, path, key, options = {}) {
  const headers = { ...options.headers };
  if (key !== null) headers["x-ms-documentdb-partitionkey"] = keyHeader(key);
  return ask(method, about.account, "nosql", path, { ...options, headers });
}

// A page of a logical partition, or with key null of the whole container: { items, continuation, charge }.
export async function readPage(key, { continuation = null, size, signal }) {
  const headers = { "x-ms-max-item-count": String(size) };
  if (continuation !== null) headers["x-ms-continuation"] = continuation;
  const answer = await send("GET", `${about.link}/docs`, key, { headers, signal });
  return {
    items: property(parseJson(answer.text), "Documents").values,
    continuation: answer.headers.get("x-ms-continuation"),
    charge: chargeOf(answer),
  };
}

export async function readItem(id, key) {
  return written(await send("GET", `${about.link}/docs/${id}`, key));
}

export async function replaceItem(id, key, text, etag) {
  return written(await send("PUT", `${about.link}/docs/${id}`, key, { body: text, headers: { "if-match": etag } }));
}

export async function createItem(key, text, { isUpsert }) {
  const headers = isUpsert ? { "x-ms-documentdb-is-upsert": "true" } : {};
  return written(await send("POST", `${about.link}/docs`, key, { body: text, headers }));
}

export async function deleteItem(id, key, etag) {
  await send("DELETE", `${about.link}/docs/${id}`, key, { headers: { "if-match": etag } });
}

function written(answer) {
  return { item: parseJson(answer.text), etag: answer.headers.get("etag"), charge: chargeOf(answer) };
}

function chargeOf(answer) {
  return Number(answer.headers.get("x-ms-request-charge") ?? 0);
}
