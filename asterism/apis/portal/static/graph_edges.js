// Shapes of edges: straight between two vertices, bent where there are several, a loop on one vertex.
import { svg } from "./ui.js";

const BEND = 26;
const LOOP = 26;

// The heads of arrows, which edges name by their ids: small ones where there are many.
export function arrowShape() {
  const head = () => svg("path", { d: "M0,0 L8,3.5 L0,7 Z", class: "arrow" });
  const frame = { viewBox: "0 0 8 7", refX: 8, refY: 3.5, orient: "auto", markerUnits: "userSpaceOnUse" };
  return svg(
    "defs",
    {},
    svg("marker", { ...frame, id: "arrow", markerWidth: 8, markerHeight: 7 }, head()),
    svg("marker", { ...frame, id: "small-arrow", markerWidth: 5, markerHeight: 4.4 }, head()),
  );
}

// Give each edge its bend: 0 for one alone, others to both sides of the line.
export function spread(edges) {
  const bundles = new Map();
  for (const edge of edges) {
    const ends = [edge.source.number, edge.target.number].sort((a, b) => a - b).join(" ");
    bundles.set(ends, [...(bundles.get(ends) ?? []), edge]);
  }
  for (const bundle of bundles.values()) {
    bundle.forEach((edge, place) => {
      const side = place - (bundle.length - 1) / 2;
      // The line is drawn from the source, so the other direction has its bend on the other side.
      edge.bend = edge.source === edge.target ? place : edge.source.number < edge.target.number ? side : -side;
    });
  }
}

function controlOf(edge, from, to) {
  const length = Math.max(Math.hypot(to.x - from.x, to.y - from.y), 1);
  return {
    x: (from.x + to.x) / 2 + ((from.y - to.y) / length) * edge.bend * BEND,
    y: (from.y + to.y) / 2 + ((to.x - from.x) / length) * edge.bend * BEND,
  };
}

// From border to border of the two circles.
export function pathOf(edge, from, to, radius) {
  if (edge.source === edge.target) {
    const reach = LOOP + edge.bend * 10;
    const [x, y] = [from.x, from.y - radius];
    return `M${x - radius / 2},${y} C${x - reach},${y - reach} ${x + reach},${y - reach} ${x + radius / 2},${y}`;
  }
  const control = edge.bend ? controlOf(edge, from, to) : null;
  const start = border(from, control ?? to, radius);
  const end = border(to, control ?? from, radius + 1);
  const middle = control ? `Q${text(control)} ` : "L";
  return `M${text(start)} ${middle}${text(end)}`;
}

export function middleOf(edge, from, to) {
  if (edge.source === edge.target) return { x: from.x, y: from.y - LOOP - edge.bend * 10 };
  const control = controlOf(edge, from, to);
  return { x: (from.x + to.x) / 4 + control.x / 2, y: (from.y + to.y) / 4 + control.y / 2 };
}

function border(center, towards, radius) {
  const length = Math.max(Math.hypot(towards.x - center.x, towards.y - center.y), 1);
  return {
    x: center.x + ((towards.x - center.x) / length) * radius,
    y: center.y + ((towards.y - center.y) / length) * radius,
  };
}

const text = ({ x, y }) => `${x.toFixed(1)},${y.toFixed(1)}`;
