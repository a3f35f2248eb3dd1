// The chosen vertex or edge: its properties, and the ways on from it.
import { factsOf, nameOf, textOf, traversalTo } from "./graph_model.js";
import { whileDisabled } from "./trouble.js";
import { h } from "./ui.js";

// A super-node has more neighbors than a drawing can show.
export const NEIGHBORS_MAX = 100;

// One traversal that names partition key and id, and has the edges and the vertices behind them.
export function neighborsOf(vertex, direction) {
  const step = direction === "out" ? "outE" : "bothE";
  const edges = `${traversalTo(vertex)}.${step}().limit(${NEIGHBORS_MAX})`;
  return `${edges}.as('edge').otherV().as('vertex').select('edge', 'vertex')`;
}

export function traversalOf(vertex) {
  return traversalTo(vertex);
}

// Show what was chosen in `place`; `run` runs a traversal and adds its result to the drawing.
export function showElement(place, found, { keyProperty, run }) {
  if (!found) {
    place.replaceChildren();
    return;
  }
  place.replaceChildren(...(found.vertex ? vertexParts(found.vertex, keyProperty, run) : edgeParts(found.edge)));
}

function vertexParts(vertex, keyProperty, run) {
  const act = (label, text, title) => {
    const button = h("button", { type: "button", title }, label);
    button.addEventListener("click", () => whileDisabled(button, () => run(text)));
    return button;
  };
  const isLoaded = vertex.element !== null;
  const ways = [
    act("Outgoing neighbors", neighborsOf(vertex, "out"), "Edges lie with their source: this asks few partitions."),
    act(
      "All neighbors",
      neighborsOf(vertex, "both"),
      "Incoming edges are looked for in every partition, unless the graph keeps reverse entries.",
    ),
  ];
  if (!isLoaded) ways.unshift(act("Load properties", traversalOf(vertex), "Only its id is known so far."));
  return [
    h("h3", {}, nameOf(vertex)),
    facts([
      ["id", vertex.id],
      ["label", vertex.label ?? ""],
      ...(keyProperty && vertex.key !== undefined ? [[keyProperty, textOf(vertex.key)]] : []),
      ...factsOf(vertex.element).filter(([name]) => name !== keyProperty),
    ]),
    h("p.faint.small", {}, h("code.wrap", {}, traversalOf(vertex))),
    h("div.row", {}, ...ways),
  ];
}

function edgeParts(edge) {
  return [
    h("h3", {}, edge.label),
    facts([
      ["id", edge.element.id],
      ["from", `${edge.source.label ?? ""} ${edge.source.id}`.trim()],
      ["to", `${edge.target.label ?? ""} ${edge.target.id}`.trim()],
      ...factsOf(edge.element),
    ]),
  ];
}

function facts(pairs) {
  return h("dl.facts.small", {}, ...pairs.flatMap(([name, text]) => [h("dt", {}, name), h("dd", {}, text)]));
}
