// Results as tables: columns, cells, and files to download. Values are those of json_text.js.
import { SYSTEM_PROPERTIES } from "./items_model.js";
import { compactJson, printJson, stringOf } from "./json_text.js";

// The name of the column for results that are no objects.
export const VALUE_COLUMN = "value";

// The union of the properties, in the order in which they appear; those of the server last.
export function columnsOf(rows) {
  const names = new Set();
  let hasOther = false;
  for (const row of rows) {
    if (row.kind === "object") for (const [name] of row.entries) names.add(name);
    else hasOther = true;
  }
  if (hasOther) names.add(VALUE_COLUMN);
  const isSystem = (name) => SYSTEM_PROPERTIES.includes(name);
  return [...[...names].filter((name) => !isSystem(name)), ...[...names].filter(isSystem)];
}

// The values of a row by their columns. A map, because an item may have tens of thousands of properties.
export function cellsOf(row) {
  return new Map(row.kind === "object" ? row.entries : [[VALUE_COLUMN, row]]);
}

// Texts without quotes, everything else as JSON.
export function cellText(value) {
  return value === undefined ? "" : (stringOf(value) ?? compactJson(value));
}

export function csvOf(rows) {
  const columns = columnsOf(rows);
  const head = columns.map((name) => csvField(harmless(name)));
  const lines = rows.map((row) => {
    const cells = cellsOf(row);
    return columns.map((column) => csvCell(cells.get(column)));
  });
  return [head, ...lines].map((fields) => `${fields.join(",")}\r\n`).join("");
}

function csvCell(value) {
  return csvField(value?.kind === "string" ? harmless(cellText(value)) : cellText(value));
}

// A spreadsheet runs a text that begins so as a formula; numbers, true and JSON cannot be one.
function harmless(text) {
  return /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
}

function csvField(text) {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export function jsonOf(rows) {
  return `${printJson({ kind: "array", values: rows })}\n`;
}

// Offer a text as a file.
export function download(text, name, type) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  // The browser reads the file after this function has ended.
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
