// Parts that the pages of hubs and of queues share: tables, bars, moments.
import { h, svg } from "./ui.js";

// Columns are [heading, cell of a row, class]; a cell is a text or an element.
export function tableOf(label, columns, rows, { isStacked = true } = {}) {
  const tag = (name, kind) => (kind ? `${name}.${kind}` : name);
  return h(
    isStacked ? "table.stacked" : "table",
    { "aria-label": label },
    h("thead", {}, h("tr", {}, ...columns.map(([name, , kind]) => h(tag("th", kind), { scope: "col" }, name)))),
    h(
      "tbody",
      {},
      ...rows.map((row) =>
        h("tr", {}, ...columns.map(([name, cell, kind]) => h(tag("td", kind), { "data-label": textOf(name) }, cell(row) ?? ""))),
      ),
    ),
  );
}

function textOf(name) {
  return typeof name === "string" ? name : name.getAttribute("aria-label") ?? name.textContent;
}

// A bar of a share between 0 and 1; the figure stands beside it as text.
export function bar(share) {
  const width = Math.round(Math.max(0, Math.min(1, share)) * 100);
  return svg(
    "svg",
    { viewBox: "0 0 100 8", preserveAspectRatio: "none", "aria-hidden": "true" },
    svg("rect", { class: "fill-back", width: 100, height: 8, rx: 2 }),
    svg("rect", { class: "fill", width, height: 8, rx: 2 }),
  );
}

export function momentOf(milliseconds) {
  return milliseconds === null || milliseconds === undefined ? "–" : new Date(milliseconds).toLocaleString();
}

export function valueText(value) {
  if (value === null || value === undefined) return "–";
  return typeof value === "string" ? value : JSON.stringify(value);
}

export function pairsOf(values) {
  return Object.entries(values)
    .map(([name, value]) => `${name}=${valueText(value)}`)
    .join(", ");
}
