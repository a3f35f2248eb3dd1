// Facts about a container or a table that cannot be changed here.
import { bytes, count } from "./format.js";
import { h } from "./ui.js";

// Properties of the definition that have a card of their own, or a line among the facts.
const SHOWN_ELSEWHERE = new Set(["id", "indexingPolicy", "defaultTtl", "partitionKey", "uniqueKeyPolicy"]);
const KINDS = { Hash: "hashed", MultiHash: "hashed, hierarchical", Range: "in order" };

// The facts that are shown: they are put in again only when they differ, so that a selection in them survives.
function putFacts(elements) {
  const place = document.getElementById("facts");
  const held = h("dl", {}, ...elements);
  if (place.textContent !== held.textContent) place.replaceChildren(...held.childNodes);
}

function fact(label, ...content) {
  return [h("dt", {}, label), h("dd", {}, ...content)];
}

function paths(list) {
  return list.flatMap((path, place) => (place === 0 ? [h("code", {}, path)] : [", ", h("code", {}, path)]));
}

function sizes(partitions, things) {
  return [
    ...fact(things, count(partitions.totals.items)),
    ...fact("Stored", bytes(partitions.totals.bytes)),
    ...fact("Physical partitions", count(partitions.partitions.length)),
  ];
}

export function showFacts(definition, partitions) {
  const key = definition.partitionKey ?? partitions.partition_key;
  const uniqueKeys = definition.uniqueKeyPolicy?.uniqueKeys ?? [];
  putFacts([
    ...fact("Partition key", ...paths(key.paths), ` (${KINDS[key.kind] ?? key.kind})`),
    ...fact(
      "Unique keys",
      ...(uniqueKeys.length ? uniqueKeys.map((unique) => h("div", {}, ...paths(unique.paths))) : ["none"]),
    ),
    ...sizes(partitions, "Items"),
  ]);
  const others = Object.entries(definition).filter(([name]) => !SHOWN_ELSEWHERE.has(name));
  const place = document.getElementById("policies");
  place.hidden = others.length === 0;
  const text = JSON.stringify(Object.fromEntries(others), null, 2);
  const shown = place.querySelector("pre");
  // Untouched while it is the same, so that a selection in it survives.
  if (shown.textContent !== text) shown.textContent = text;
}

export function showTableFacts(partitions) {
  const { mode, ru } = partitions.throughput;
  putFacts([
    ...fact(
      "Partition key",
      ...paths(partitions.partition_key.paths),
      ` (${KINDS[partitions.partition_key.kind] ?? ""})`,
    ),
    ...sizes(partitions, "Entities"),
    ...fact(
      "Throughput",
      ru === null ? "not limited: a table has no throughput of its own" : `${count(ru)} RU/s (${mode})`,
    ),
  ]);
}
