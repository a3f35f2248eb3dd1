// Entities between the Table door's JSON and a grid of texts. A value stays the text that the door wrote, so that an
// Int64 or 1.0 is the same after editing.
import { parseJson, property, stringOf } from "./json_text.js";

export const TYPES = ["String", "Int32", "Int64", "Double", "Boolean", "DateTime", "Guid", "Binary"];
const ANNOTATION = "@odata.type";
const SYSTEM = new Set(["PartitionKey", "RowKey", "Timestamp"]);

// Entities of an answer: { partitionKey, rowKey, timestamp, etag, properties: [{ name, type, text }] }.
export function readEntities(text) {
  return property(parseJson(text), "value").values.map(readEntity);
}

export function readOneEntity(text) {
  return readEntity(parseJson(text));
}

function readEntity(value) {
  const types = new Map(
    value.entries
      .filter(([name]) => name.endsWith(ANNOTATION))
      .map(([name, type]) => [name.slice(0, -ANNOTATION.length), stringOf(type).replace(/^Edm\./, "")]),
  );
  const properties = value.entries
    .filter(([name]) => !name.startsWith("odata.") && !name.includes("@") && !SYSTEM.has(name))
    .map(([name, held]) => ({ name, type: types.get(name) ?? typeOf(held), text: stringOf(held) ?? held.text }));
  return {
    partitionKey: stringOf(property(value, "PartitionKey")),
    rowKey: stringOf(property(value, "RowKey")),
    timestamp: stringOf(property(value, "Timestamp")),
    etag: stringOf(property(value, "odata.etag")),
    properties,
  };
}

// Without an annotation the JSON value says the type; a Double is written with a point or an exponent.
function typeOf({ kind, text }) {
  if (kind === "string") return "String";
  if (kind === "word") return "Boolean";
  return /[.eE]/.test(text) ? "Double" : "Int32";
}

// The body of a write: every value as text beside its type, which the door reads as that type.
export function entityBody({ partitionKey, rowKey, properties }) {
  const body = { PartitionKey: partitionKey, RowKey: rowKey };
  for (const { name, type, text } of properties) {
    body[`${name}${ANNOTATION}`] = `Edm.${type}`;
    body[name] = type === "String" ? text : text.trim();
  }
  return body;
}

// The sentence that refuses a grid before it is sent; null if it can be sent.
export function problemOf(properties) {
  const names = properties.map((held) => held.name);
  if (names.some((name) => name === "")) return "A property has no name. Give it one, or remove it.";
  const twice = names.find((name, place) => names.indexOf(name) !== place);
  if (twice !== undefined) return `There are two properties ${twice}. Remove one of them.`;
  const system = names.find((name) => SYSTEM.has(name));
  return system === undefined ? null : `${system} is a system property. Choose another name.`;
}

// The path of an entity: a quote in a key is doubled. Keys never hold a slash, which the door refuses.
export function entityPath(table, { partitionKey, rowKey }) {
  return `${table}(PartitionKey=${quoted(partitionKey)},RowKey=${quoted(rowKey)})`;
}

export function quoted(text) {
  return `'${text.replaceAll("'", "''")}'`;
}

// The filter of a request: the visitor's own first, so that positions in refusals are nearly its own.
export function filterOf(partitionKey, own) {
  const ofKey = partitionKey === null ? null : `PartitionKey eq ${quoted(partitionKey)}`;
  const given = own.trim() === "" ? null : own.trim();
  if (ofKey === null || given === null) return ofKey ?? given;
  return `(${given}) and ${ofKey}`;
}
