// A change as a row shows it: what happened to which item, when.
import { compactJson, parseJson, property, stringOf, valueAt } from "./json_text.js";

// Names on the way to a property: "/address/city" has two; names with other characters stand in quotes.
export function namesOfPath(path) {
  return [...path.matchAll(/\/(?:"((?:[^"\\]|\\.)*)"|([^/]*))/g)].map((found) => found[1] ?? found[2]);
}

// { text, operation, id, key, wallSeconds }; `key` is the partition key as JSON, with commas between its levels.
export function describeChange(text, paths) {
  const change = parseJson(text);
  const metadata = property(change, "metadata");
  const isVersion = property(change, "current") !== undefined && property(metadata, "operationType") !== undefined;
  if (!isVersion) return { text, operation: "change", ...describeItem(change, paths) };
  const operation = stringOf(property(metadata, "operationType"));
  const image = operation === "delete" ? property(change, "previous") : property(change, "current");
  return {
    text,
    operation: property(metadata, "timeToLiveExpired")?.text === "true" ? "expired" : operation,
    ...describeItem(image, paths),
    wallSeconds: Number(property(metadata, "crts")?.text ?? 0),
  };
}

function describeItem(item, paths) {
  const levels = paths.map((path) => valueAt(item, namesOfPath(path)));
  return {
    id: stringOf(property(item, "id")) ?? "",
    key: levels.map((level) => (level === undefined ? "–" : (stringOf(level) ?? compactJson(level)))).join(", "),
    wallSeconds: Number(property(item, "_ts")?.text ?? 0),
  };
}
