// Partition keys with rules of synthetic keys, as containers declare them: which properties they read, and the items
// that people write. No rule is applied here: the server does that.
import { namesOfPath } from "./items_model.js";
import { parseJson, printJson } from "./json_text.js";

const SAMPLE_TIME = "2026-01-31T09:30:00Z";

// The parts of a rule as objects, and the source of a hashed suffix behind them.
function sourceParts(rule) {
  const parts = rule.parts.map((part) => (typeof part === "string" ? { path: part } : part));
  return rule.suffix?.path === undefined ? parts : [...parts, { path: rule.suffix.path }];
}

// The paths that a rule reads.
export function sourcesOf(rule) {
  return sourceParts(rule).map((part) => part.path);
}

// The paths that a rule of the key reads.
export function sourcePaths(partitionKey) {
  return Object.values(partitionKey?.synthetic ?? {}).flatMap(sourcesOf);
}

// The key of an item that is saved, as JSON texts: a person may leave out what the server computes, which stays then.
export function keptKey(key, stored, { paths, synthetic }) {
  return key.map((value, place) => (value === "{}" && synthetic?.[paths[place]] ? stored[place] : value));
}

// The beginning of a new item: its id, and the properties that its key is, or is made of. `key` is the chosen one, null
// for none; one with a value for each source of a synthetic key names them.
export function newItemText({ paths, synthetic }, key, id) {
  const item = { id };
  paths.forEach((path, place) => {
    const rule = synthetic?.[path];
    if (rule === undefined) {
      if (key?.[place] !== "{}") put(item, path, JSON.parse(key?.[place] ?? '""'));
      return;
    }
    const sources = sourcesOf(rule);
    const isOfSources = paths.length === 1 && key !== null && key.length === sources.length && key.length > 1;
    sources.forEach((source, order) => put(item, source, isOfSources ? JSON.parse(key[order]) : ""));
  });
  return JSON.stringify(item, null, 2);
}

// The text of a copy: under another id, and without what the server computes.
export function copyText(text, id, { synthetic }) {
  let item = parseJson(text);
  for (const path of Object.keys(synthetic ?? {})) item = without(item, namesOfPath(path));
  const isId = ([name]) => name === "id";
  const renamed = ["id", { kind: "string", text: JSON.stringify(id) }];
  const entries = item.entries.some(isId)
    ? item.entries.map((entry) => (isId(entry) ? renamed : entry))
    : [renamed, ...item.entries];
  return printJson({ kind: "object", entries });
}

function without(value, [name, ...inner]) {
  if (value.kind !== "object") return value;
  const entries = inner.length
    ? value.entries.map(([key, held]) => [key, key === name ? without(held, inner) : held])
    : value.entries.filter(([key]) => key !== name);
  return { ...value, entries };
}

// An item to try rules on, with a value for each property that they read, and for the other levels of the key.
export function sampleItem({ paths, synthetic }) {
  const item = { id: "1" };
  for (const path of paths) {
    if (synthetic[path] === undefined) put(item, path, sampleValue({ path }));
    else for (const part of sourceParts(synthetic[path])) put(item, part.path, sampleValue(part));
  }
  return item;
}

function sampleValue(part) {
  if (part.bucket !== undefined || part.format !== undefined)
    return part.unit === "ms" ? Date.parse(SAMPLE_TIME) : SAMPLE_TIME;
  if (part.digits !== undefined) return 42;
  if (part.decimals !== undefined) return 9.5;
  return `${namesOfPath(part.path).at(-1) ?? "value"}-1`;
}

// Put a value at a path of an item that has none there; not below a value that is no object.
export function put(item, path, value) {
  const names = namesOfPath(path).filter((name) => name !== "");
  let inner = item;
  for (const name of names.slice(0, -1)) {
    inner = inner[name] ??= {};
    if (typeof inner !== "object") return;
  }
  if (names.length) inner[names.at(-1)] ??= value;
}
