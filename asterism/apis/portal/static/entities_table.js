// A page of entities as a table. The type of a property stands below its name, or beside values that differ from it.
import { h } from "./ui.js";

// Longer values are cut; the whole value is in the dialog.
const CHARACTERS_MAX = 120;

export function entitiesTable(entities, open) {
  const columns = columnsOf(entities);
  return h(
    "table",
    { "aria-label": "Entities" },
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        ...["PartitionKey", "RowKey"].map((name) => head(name, "String")),
        ...columns.map(({ name, type }) => head(name, type)),
        head("Timestamp", "DateTime"),
      ),
    ),
    h("tbody", {}, ...entities.map((entity) => row(entity, columns, open))),
  );
}

// All properties, in the order in which they are first seen, with the type of the first.
export function columnsOf(entities) {
  const columns = new Map();
  for (const { properties } of entities) {
    for (const { name, type } of properties) if (!columns.has(name)) columns.set(name, { name, type });
  }
  return [...columns.values()];
}

const isNumber = (type) => ["Int32", "Int64", "Double"].includes(type);

function head(name, type) {
  return h(isNumber(type) ? "th.number" : "th", { scope: "col" }, name, h("span.type", {}, type));
}

function row(entity, columns, open) {
  const held = new Map(entity.properties.map((property) => [property.name, property]));
  const label = `Open entity ${entity.partitionKey}, ${entity.rowKey}`;
  return h(
    "tr",
    {},
    h("td", {}, entity.partitionKey),
    h(
      "td",
      {},
      h(
        "button.quiet.link",
        { type: "button", "aria-label": label, onclick: () => open(entity) },
        entity.rowKey === "" ? "(empty)" : entity.rowKey,
      ),
    ),
    ...columns.map(({ name, type }) => cell(held.get(name), type)),
    h("td.faint", {}, entity.timestamp),
  );
}

function cell(property, columnType) {
  if (property === undefined) return h("td", {});
  const text = property.text.length > CHARACTERS_MAX ? `${property.text.slice(0, CHARACTERS_MAX)} …` : property.text;
  const type = property.type === columnType ? null : h("span.type", {}, property.type);
  return h(isNumber(property.type) ? "td.number" : "td", {}, text, type);
}
