// Results of a query as a table, as JSON, as a tree, and the plan by which they were found.
import { bytes, count } from "./format.js";
import { SYSTEM_PROPERTIES, idOf, keyOfItem, namesOfPath } from "./items_model.js";
import { property, valueAt } from "./json_text.js";
import { cellText, cellsOf, columnsOf, jsonOf } from "./query_export.js";
import { h } from "./ui.js";

// Beyond these a browser slows down; the downloads have everything.
const ROWS_MAX = 2000;
const COLUMNS_MAX = 100;
const JSON_CHARACTERS_MAX = 1_000_000;
const CELL_CHARACTERS_MAX = 200;

// The item that a row shows, { id, key }, or null: the row must have the id and the values of the key. Of an item as it
// is stored, which its _rid shows, a missing value is an absent one.
export function itemOfRow(row, paths) {
  const id = idOf(row);
  if (!id) return null;
  const isWhole = property(row, "_rid") !== undefined;
  const hasKey = paths.every((path) => valueAt(row, namesOfPath(path)) !== undefined);
  return isWhole || hasKey ? { id, key: keyOfItem(row, paths) } : null;
}

export function tableOf(rows, { paths, onOpen, hasSystem }) {
  const columns = columnsOf(rows).filter((name) => hasSystem || !SYSTEM_PROPERTIES.includes(name));
  const shown = columns.slice(0, COLUMNS_MAX);
  const line = (row) => {
    const cells = cellsOf(row);
    return h(
      "tr",
      {},
      ...shown.map((column) => cellElement(cells.get(column), column === "id" ? itemOfRow(row, paths) : null, onOpen)),
    );
  };
  const table = h(
    "table",
    {},
    h("thead", {}, h("tr", {}, ...shown.map((name) => h("th", { scope: "col" }, name)))),
    h("tbody", {}, ...rows.slice(0, ROWS_MAX).map(line)),
  );
  return [cutNote(rows.length, ROWS_MAX, "rows"), cutNote(columns.length, COLUMNS_MAX, "columns"), table];
}

function cellElement(value, item, onOpen) {
  const full = cellText(value);
  const text = full.length > CELL_CHARACTERS_MAX ? `${full.slice(0, CELL_CHARACTERS_MAX)}…` : full;
  const open = () => onOpen(item);
  const content = item
    ? h("button.link", { type: "button", "aria-label": `Open the item ${item.id}`, onclick: open }, text)
    : text;
  return h(
    value?.kind === "number" ? "td.number" : "td",
    { title: full.length > 20 ? full.slice(0, 2000) : null },
    content,
  );
}

export function jsonView(rows) {
  const text = jsonOf(rows);
  return [
    cutNote(text.length, JSON_CHARACTERS_MAX, "characters"),
    h("pre", { tabindex: "0" }, text.slice(0, JSON_CHARACTERS_MAX)),
  ];
}

// Nested details: they open and close with keys and tell screen readers their state. Inner values are made when opened.
export function treeView(rows) {
  const branches = rows.slice(0, ROWS_MAX).map((row, place) => branch(idOf(row) ?? String(place), row));
  return [cutNote(rows.length, ROWS_MAX, "rows"), ...branches];
}

function branch(name, value) {
  const children =
    value.kind === "object"
      ? value.entries
      : value.kind === "array"
        ? value.values.map((inner, place) => [String(place), inner])
        : null;
  if (children === null) {
    return h(
      "div.leaf",
      {},
      h("span.name", {}, name),
      h(`span.${value.kind}`, {}, value.text.slice(0, JSON_CHARACTERS_MAX)),
    );
  }
  const size = value.kind === "array" ? `[${children.length}]` : `{${children.length}}`;
  const details = h("details", {}, h("summary", {}, h("span.name", {}, name), h("span.faint", {}, size)));
  details.addEventListener(
    "toggle",
    () => details.append(...children.slice(0, ROWS_MAX).map(([inner, child]) => branch(inner, child))),
    { once: true },
  );
  return details;
}

export function planView({ explanation, charge, pages }) {
  const { partitions, of_partitions: all, indexes, scan } = explanation;
  const facts = {
    Charge: `${count(charge)} RU in ${pages} page${pages === 1 ? "" : "s"}`,
    "Logical partitions read": logicalText(explanation),
    "Physical partitions read": `${partitions.length} of ${all}: ${partitions.join(", ") || "none"}`,
    Indexes: indexes.length ? indexes.join(", ") : "none",
    Scan: scan ? "yes: items were read one after the other" : "no",
    "Index lookups": count(explanation.index_lookups),
    "Items loaded": `${count(explanation.items_loaded)} (${bytes(explanation.bytes_loaded)})`,
    Results: count(explanation.results),
    Execution: explanation.kind,
  };
  return h(
    "dl.facts",
    {},
    ...Object.entries(facts).flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]),
  );
}

// How many logical partitions a query reads, by its filter; all of them where that fixes no key.
export function logicalText({ logical_partitions: read }) {
  return read === null || read === undefined ? "all" : count(read);
}

function cutNote(length, most, noun) {
  return length > most
    ? h(
        "p.faint.small",
        {},
        `The first ${count(most)} of ${count(length)} ${noun} are shown. The downloads have all of them.`,
      )
    : "";
}
