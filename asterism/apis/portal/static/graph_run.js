// A traversal on its way to the Gremlin door, and its reply.
import { ApiError, ask } from "./api.js";
import { parseJson, property } from "./json_text.js";

// Run a text. Returns { results, rows, charge, milliseconds }; `rows` are the results as json_text.js reads them, which
// keeps numbers as they were written. A refusal is an ApiError with a sentence.
export async function runTraversal(about, text, { signal } = {}) {
  const answer = await send(about, { gremlin: text, bindings: {}, language: "gremlin-groovy" }, signal);
  const attributes = answer.body?.status?.attributes ?? {};
  const data = property(property(parseJson(answer.text), "result") ?? {}, "data");
  return {
    results: answer.body.result?.data ?? [],
    rows: data?.kind === "array" ? data.values : [],
    charge: Number(attributes["x-ms-total-request-charge"] ?? 0),
    milliseconds: Number(attributes["x-ms-total-server-time-ms"] ?? 0),
  };
}

async function send(about, body, signal) {
  try {
    return await ask("POST", about.account, "gremlin", `dbs/${about.database}/colls/${about.name}`, { body, signal });
  } catch (error) {
    const status = error.name === "ApiError" ? error.reply?.status : null;
    if (typeof status?.code !== "number") throw error;
    // The door words its refusals in its own reply, whatever the status of HTTP is.
    const attributes = status.attributes ?? {};
    const code = attributes["x-ms-status-code"] ?? status.code;
    throw new ApiError(code, String(code), sentenceOfReply(status.message ?? ""), waitOf(attributes), error.headers);
  }
}

// The sentence of a refusal, without the lines that the service puts around it.
export function sentenceOfReply(message) {
  const found = /ExceptionMessage : \s*([\s\S]*?)\s*(?:\n\s*GremlinRequestId|$)/.exec(message);
  const sentence = (found ? found[1] : message).replace(/\s+/g, " ").trim();
  return sentence || "The server gave no reason.";
}

// "00:00:00.0330000" as the reply of a throttled request that trouble.js knows.
function waitOf(attributes) {
  const parts = /^(\d+):(\d+):([\d.]+)$/.exec(attributes["x-ms-retry-after-ms"] ?? "");
  return parts ? { retry_after_seconds: Number(parts[1]) * 3600 + Number(parts[2]) * 60 + Number(parts[3]) } : {};
}

// The text with the step that profiles it, in the place of a last call that asks for results.
export function withProfile(text) {
  const stripped = text.trim().replace(/[;\s]+$/, "");
  return `${stripped.replace(/\.\s*(?:executionProfile|next|toList|iterate)\s*\(\s*\)\s*$/i, "")}.executionProfile()`;
}

// The profile in the results, or null.
export function profileIn(results) {
  const first = results[0];
  return first !== null && typeof first === "object" && Array.isArray(first.metrics) ? first : null;
}
