// Items and their partition keys, as texts: no request and no element here.
import { compactJson, parseJson, printJson, property, stringOf, valueAt } from "./json_text.js";

// Written by the server with each change; an editor that showed them would suggest that they can be edited.
export const SYSTEM_PROPERTIES = ["_rid", "_self", "_etag", "_attachments", "_ts"];

// "/address/city" and "/\"a b\"/c" as lists of names.
export function namesOfPath(path) {
  const names = [];
  for (const [, quoted, plain] of path.matchAll(/\/(?:"((?:[^"\\]|\\.)*)"|([^/"]*))/g)) {
    names.push(quoted === undefined ? plain : quoted.replace(/\\(.)/g, "$1"));
  }
  return names;
}

// The key of an item as JSON texts, one for each path; an absent value is {} in the protocol.
export function keyOfItem(item, paths) {
  return paths.map((path) => {
    const value = valueAt(item, namesOfPath(path));
    return value === undefined ? "{}" : compactJson(value);
  });
}

// Headers carry ASCII only.
export function keyHeader(key) {
  return `[${key.join(",")}]`.replace(
    /[\u007f-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

// A key as people read it.
export function keyLabel(key) {
  return key.map((value) => (value === "{}" ? "(no value)" : value)).join(", ");
}

// What a person wrote for a value of the key: JSON, or else a text without quotes. Null for nothing.
export function keyValueOf(written) {
  const text = written.trim();
  if (text === "") return null;
  try {
    return compactJson(parseJson(text));
  } catch {
    return JSON.stringify(text);
  }
}

// The values of a key from the address, ?key=["a",1] or ?key="a"; null if it cannot be read.
export function keyOfAddress(text) {
  try {
    const value = parseJson(text);
    return value.kind === "array" ? value.values.map(compactJson) : [compactJson(value)];
  } catch {
    return null;
  }
}

export function idOf(item) {
  return stringOf(property(item, "id"));
}

export function systemOf(item) {
  const found = SYSTEM_PROPERTIES.map((name) => [name, property(item, name)]).filter(
    ([, value]) => value !== undefined,
  );
  return Object.fromEntries(found.map(([name, value]) => [name, stringOf(value) ?? value.text]));
}

// The text to edit: the item without what the server writes.
export function editableText(item) {
  return printJson({ kind: "object", entries: item.entries.filter(([name]) => !SYSTEM_PROPERTIES.includes(name)) });
}
