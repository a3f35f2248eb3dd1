// A query on its way: requests to the operator's door, which merges all partitions, and what comes back, page by page.
import { ask } from "./api.js";
import { JsonProblem, compactJson, parseJson, property, stringOf } from "./json_text.js";

// Parameters as a person writes them, {"@city": "Oslo"} or the protocol's list, as the protocol's list. Texts, because
// their numbers are to arrive as they were written.
export function parametersText(written) {
  if (!written.trim()) return "[]";
  const value = parseJson(written);
  if (value.kind === "array") return compactJson(value);
  if (value.kind !== "object")
    throw new JsonProblem('Parameters are an object such as {"@city": "Oslo"}.', value.from, value.to);
  const rows = value.entries.map(
    ([name, inner]) =>
      `{"name":${JSON.stringify(name.startsWith("@") ? name : `@${name}`)},"value":${compactJson(inner)}}`,
  );
  return `[${rows.join(",")}]`;
}

// Offsets of the server count characters, those of the browser units of UTF-16.
export function browserOffset(text, characters) {
  let offset = 0;
  for (let left = characters; left > 0 && offset < text.length; left -= 1)
    offset += text.codePointAt(offset) > 0xffff ? 2 : 1;
  return offset;
}

// `settings`: { query, parameters (text of the list), pageSize }.
export async function runPage(about, settings, continuation, signal) {
  const fixed = JSON.stringify({
    database: about.database,
    container: about.name,
    query: settings.query,
    max_items: settings.pageSize,
    continuation,
    explain: true,
  });
  const body = `${fixed.slice(0, -1)},"parameters":${settings.parameters}}`;
  const answer = await ask("POST", about.account, "admin", "query", { body, signal });
  const reply = parseJson(answer.text);
  return {
    rows: property(reply, "results").values,
    continuation: stringOf(property(reply, "continuation")) ?? null,
    charge: answer.body.charge,
    explanation: answer.body.explanation,
  };
}

// All pages so far as one: rows one after the other, counts added up.
export function addPage(before, page) {
  if (before === null) return { ...page, pages: 1 };
  const [old, added] = [before.explanation, page.explanation];
  return {
    rows: [...before.rows, ...page.rows],
    continuation: page.continuation,
    charge: before.charge + page.charge,
    pages: before.pages + 1,
    explanation: {
      ...added,
      partitions: [...new Set([...old.partitions, ...added.partitions])],
      indexes: [...new Set([...old.indexes, ...added.indexes])],
      scan: old.scan || added.scan,
      index_lookups: old.index_lookups + added.index_lookups,
      items_loaded: old.items_loaded + added.items_loaded,
      bytes_loaded: old.bytes_loaded + added.bytes_loaded,
      results: old.results + added.results,
    },
  };
}
