// Stored procedures, triggers and functions of a container: read, written and run through the doors.
import { ask } from "./api.js";

// The three feeds of a container: the path's segment, the name in answers, and words for people.
export const KINDS = {
  sprocs: { envelope: "StoredProcedures", noun: "stored procedure", plural: "Stored procedures" },
  triggers: { envelope: "Triggers", noun: "trigger", plural: "Triggers" },
  udfs: { envelope: "UserDefinedFunctions", noun: "function", plural: "Functions" },
};
const CONTINUATION = "x-ms-continuation";

export async function listScripts({ account, link }, kind) {
  const found = [];
  let continuation = null;
  do {
    const headers = continuation === null ? {} : { [CONTINUATION]: continuation };
    const answer = await ask("GET", account, "nosql", `${link}/${kind}`, { headers });
    found.push(...answer.body[KINDS[kind].envelope]);
    continuation = answer.headers.get(CONTINUATION);
  } while (continuation);
  return found;
}

export async function readScript({ account, link }, kind, id) {
  return (await ask("GET", account, "nosql", `${link}/${kind}/${id}`)).body;
}

export async function createScript({ account, link }, kind, script) {
  return (await ask("POST", account, "nosql", `${link}/${kind}`, { body: script })).body;
}

export async function replaceScript({ account, link }, kind, script, etag) {
  const headers = { "if-match": etag };
  return (await ask("PUT", account, "nosql", `${link}/${kind}/${script.id}`, { body: script, headers })).body;
}

export async function deleteScript({ account, link }, kind, id) {
  await ask("DELETE", account, "nosql", `${link}/${kind}/${id}`);
}

// Run a stored procedure; { text, log, charge }. A refusal's error carries the log as `log`.
export async function runProcedure({ account, link }, id, { keyHeader, parameters, signal }) {
  const headers = { "x-ms-documentdb-script-enable-logging": "true" };
  if (keyHeader !== null) headers["x-ms-documentdb-partitionkey"] = keyHeader;
  try {
    const answer = await ask("POST", account, "nosql", `${link}/sprocs/${id}`, {
      headers,
      body: parameters,
      signal,
    });
    return {
      text: answer.text,
      log: logOf(answer.headers),
      charge: Number(answer.headers.get("x-ms-request-charge") ?? 0),
    };
  } catch (error) {
    error.log = logOf(error.headers);
    throw error;
  }
}

function logOf(headers) {
  return decodeURIComponent(headers?.get("x-ms-documentdb-script-log-results") ?? "");
}

// Call a function in a query of one line; `argumentsText` is a list in the query language.
export async function tryFunction(subject, id, { argumentsText, signal }) {
  const name = /^[A-Za-z_]\w*$/.test(id) ? `udf.${id}` : `udf[${JSON.stringify(id)}]`;
  const body = { ...subject.names, query: `SELECT VALUE ${name}(${argumentsText})` };
  const answer = await ask("POST", subject.account, "admin", "query", { body, signal });
  return { text: JSON.stringify(answer.body.results[0] ?? null, null, 2), log: "", charge: answer.body.charge };
}
