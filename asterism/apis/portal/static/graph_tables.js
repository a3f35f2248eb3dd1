// The elements of a drawing as tables, for people who do not see it, and for many elements.
import { factsOf, nameOf, textOf } from "./graph_model.js";
import { count } from "./format.js";
import { h } from "./ui.js";

const ROWS_MAX = 2000;

// `onChoose` gets { vertex } or { edge }.
export function elementTables(graph, onChoose) {
  const { vertices, edges, keyProperty } = graph;
  const found = edges.filter((edge) => !edge.isImplied);
  return [
    h("h3", {}, `${count(vertices.length)} ${vertices.length === 1 ? "vertex" : "vertices"}`),
    tableOf(
      ["id", "label", ...(keyProperty ? [keyProperty] : []), "properties"],
      vertices.map((vertex) => [
        button(vertex.id, `Choose the vertex ${nameOf(vertex)}`, () => onChoose({ vertex })),
        vertex.label ?? "",
        ...(keyProperty ? [vertex.key === undefined ? "" : textOf(vertex.key)] : []),
        factsText(vertex.element, keyProperty),
      ]),
    ),
    h("h3", {}, `${count(found.length)} edge${found.length === 1 ? "" : "s"}`),
    tableOf(
      ["id", "label", "from", "to", "properties"],
      found.map((edge) => [
        button(edge.element.id, `Choose the edge ${edge.element.id}`, () => onChoose({ edge })),
        edge.label,
        edge.source.id,
        edge.target.id,
        factsText(edge.element, ""),
      ]),
    ),
    cutNote(graph.left),
  ];
}

export function cutNote(left) {
  return left ? h("p.faint.small", {}, `${count(left)} further elements are not drawn; the JSON has all of them.`) : "";
}

function factsText(element, keyProperty) {
  return factsOf(element)
    .filter(([name]) => name !== keyProperty)
    .map(([name, text]) => `${name}: ${text}`)
    .join(", ");
}

function button(text, label, onclick) {
  return h("button.link", { type: "button", "aria-label": label, onclick }, text);
}

function tableOf(columns, rows) {
  if (!rows.length) return h("p.faint", {}, "None.");
  return h(
    "table",
    {},
    h("thead", {}, h("tr", {}, ...columns.map((name) => h("th", { scope: "col" }, name)))),
    h("tbody", {}, ...rows.slice(0, ROWS_MAX).map((cells) => h("tr", {}, ...cells.map((cell) => h("td", {}, cell))))),
  );
}
