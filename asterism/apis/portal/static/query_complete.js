// Completion of queries: keywords, functions, and the properties seen in items and results.
import { FUNCTIONS, KEYWORDS, LITERALS } from "./query_words.js";

const DEPTH_MAX = 6;
// Of a page so many items are looked at: properties repeat.
const ITEMS_MAX = 200;
const PATHS_MAX = 2000;

// Names of properties by the path above them: "" is the item, "address" its property, "lines[]" a value of its array.
const known = new Map();

export function learnProperties(items, found = known) {
  for (const item of items.slice(0, ITEMS_MAX)) learn(item, "", 0, found);
}

function learn(value, path, depth, found) {
  if (depth > DEPTH_MAX || found.size > PATHS_MAX) return;
  if (value.kind === "array") {
    for (const inner of value.values.slice(0, 10)) learn(inner, `${path}[]`, depth + 1, found);
  } else if (value.kind === "object") {
    if (!found.has(path)) found.set(path, new Map());
    for (const [name, inner] of value.entries) {
      found.get(path).set(name, inner.kind === "word" ? (inner.text === "null" ? "null" : "boolean") : inner.kind);
      learn(inner, path ? `${path}.${name}` : name, depth + 1, found);
    }
  }
}

// The names that stand for items or parts of them: { c: "", line: "lines[]" }.
export function aliasesOf(text) {
  const aliases = { c: "", root: "" };
  const from =
    /\bFROM\s+([A-Za-z_]\w*)(?:\s+(?:AS\s+)?(?!(?:WHERE|ORDER|GROUP|JOIN|OFFSET|IN|AS)\b)([A-Za-z_]\w*))?/i.exec(text);
  if (from) {
    delete aliases.c;
    aliases[from[2] ?? from[1]] = "";
  }
  for (const [, alias, path] of text.matchAll(/\b(?:JOIN|FROM)\s+([A-Za-z_]\w*)\s+IN\s+([A-Za-z_][\w.[\]]*)/gi)) {
    const inner = pathOf(path, aliases);
    if (inner !== null) aliases[alias] = `${inner}[]`;
  }
  return aliases;
}

function pathOf(chain, aliases) {
  const [root, ...steps] = chain
    .replace(/\[[^\]]*\]/g, "[]")
    .replaceAll("[]", ".[]")
    .split(".");
  if (!(root in aliases)) return null;
  let path = aliases[root];
  for (const step of steps) path = step === "[]" ? `${path}[]` : path ? `${path}.${step}` : step;
  return path;
}

// What fits at the cursor, as editor.js asks for it.
export function completeQuery({ before, text, isAsked }, found = known) {
  const aliases = aliasesOf(text);
  const chain = /([A-Za-z_]\w*(?:\.[A-Za-z_]\w*|\[[^\]]*\])*)\.(\w*)$/.exec(before);
  if (chain) {
    const path = pathOf(chain[1], aliases);
    const names = path === null ? undefined : found.get(path);
    if (!names) return null;
    // Other names need brackets: c["first name"].
    const plain = [...names].filter(([name]) => /^[A-Za-z_]\w*$/.test(name));
    return {
      from: before.length - chain[2].length,
      options: plain.map(([label, detail]) => ({ label, type: "property", detail })),
    };
  }
  const word = /[A-Za-z_]\w*$/.exec(before);
  if ((!word && !isAsked) || /(?:^|[^\\])@\w*$/.test(before)) return null;
  const options = [
    ...Object.keys(aliases)
      .filter((name) => name !== "root")
      .map((label) => ({ label, type: "variable", detail: "item", boost: 2 })),
    ...`${KEYWORDS} ${LITERALS}`.split(" ").map((label) => ({ label, type: "keyword", boost: 1 })),
    ...FUNCTIONS.split(" ").map((label) => ({
      label: `${label}()`,
      apply: `${label}(`,
      type: "function",
      detail: "function",
    })),
  ];
  return { from: before.length - (word?.[0].length ?? 0), options };
}
