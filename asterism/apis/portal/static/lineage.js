// The lineage of partitions: splits, merges and moves as a tree that grows to the right, and the same as a table.
import { count, moment } from "./format.js";
import { secondText } from "./partitions_model.js";
import { h, svg } from "./ui.js";

// Older events stand in the table only: a tree of hundreds of columns shows nothing any more.
const EVENTS_DRAWN = 40;
const COLUMN = 96;
const ROW = 30;
const NODE_WIDTH = 40;
const NODE_HEIGHT = 22;
const MARGIN = 8;
const AXIS = 22;
// Times are wider than the nodes above them.
const RIGHT = 28;

// Nodes and edges of the tree. A node is a partition from the event that made it on; it has a place on the vertical
// axis, within that of its parents, so that the right edge shows the partitions in the order of the line.
export function layoutLineage(events, currentIds) {
  const weights = weightsOf(events);
  const places = new Map();
  const nodes = [];
  const edges = [];
  const newest = new Map();
  const addNode = (id, column, place, event) => {
    const node = { id, column, event, ...place, isCurrent: false };
    places.set(id, place);
    newest.set(id, node);
    nodes.push(node);
    return node;
  };
  let top = 0;
  for (const id of rootsOf(events, currentIds)) {
    const size = weights.get(id) ?? 1;
    addNode(id, 0, { top, size }, null);
    top += size;
  }
  events.forEach((event, index) => {
    const sources = event.sources.map((id) => newest.get(id)).filter(Boolean);
    if (!sources.length) return;
    const from = Math.min(...sources.map((node) => node.top));
    const room = sources.reduce((sum, node) => sum + node.size, 0);
    const wanted = event.targets.reduce((sum, id) => sum + (weights.get(id) ?? 1), 0);
    let next = from;
    for (const id of event.targets) {
      const size = (room * (weights.get(id) ?? 1)) / wanted;
      const target = addNode(id, index + 1, { top: next, size }, event);
      edges.push(...sources.map((source) => ({ source, target, kind: event.kind })));
      next += size;
    }
  });
  const current = new Set(currentIds);
  for (const [id, node] of newest) node.isCurrent = current.has(id);
  const smallest = Math.min(1, ...nodes.map((node) => node.size));
  return { nodes, edges, height: top, smallest };
}

// The room that a partition needs for all that comes of it: the latest events first.
function weightsOf(events) {
  const weights = new Map();
  const weightOf = (id) => weights.get(id) ?? 1;
  for (const event of [...events].reverse()) {
    const wanted = event.targets.reduce((sum, id) => sum + weightOf(id), 0);
    for (const id of event.sources) weights.set(id, Math.max(1, wanted / event.sources.length));
  }
  return weights;
}

// The partitions with which the drawn history begins, in the order of the line: that of what became of them.
function rootsOf(events, currentIds) {
  const made = new Set();
  const roots = [];
  for (const event of events) {
    roots.push(...event.sources.filter((id) => !made.has(id) && !roots.includes(id)));
    event.targets.forEach((id) => made.add(id));
  }
  const order = new Map(currentIds.map((id, place) => [id, place]));
  for (const event of [...events].reverse()) {
    const first = Math.min(...event.targets.map((id) => order.get(id) ?? Infinity));
    event.sources.forEach((id, place) => order.set(id, Math.min(order.get(id) ?? Infinity, first + place / 1024)));
  }
  return roots.sort((one, other) => order.get(one) - order.get(other));
}

export function mountLineage(place) {
  const jobs = h("div.jobs", { "aria-live": "polite" });
  const drawing = svg("svg", { class: "lineage", role: "img" });
  const frame = h("div.scroll", { tabindex: 0, role: "region", "aria-label": "Lineage drawing" }, drawing);
  const none = h("p.faint", {}, "No partition was split, merged or moved yet.");
  const body = h("tbody");
  const heads = ["When", "Kind", "From", "To", "Reason", "Entries copied", "Sealed"];
  const table = h("details.as-table", {}, h("summary", {}, "The lineage as a table"),
    h("div.scroll", {}, h("table", { "aria-label": "Lineage" },
      h("thead", {}, h("tr", {}, ...heads.map((head) => h("th", { scope: "col" }, head)))), body)));
  place.append(jobs, none, frame, table);
  let shown = "";
  return ({ answer, history, jobs: running }) => {
    jobs.replaceChildren(...running.map(jobRow));
    const ids = answer.partitions.map((partition) => partition.id);
    const signature = JSON.stringify([ids, history.length]);
    const isEmpty = history.length === 0;
    none.hidden = !isEmpty || running.length > 0;
    frame.hidden = table.hidden = isEmpty;
    if (signature === shown || isEmpty) return;
    shown = signature;
    const recent = history.slice(-EVENTS_DRAWN);
    draw(drawing, recent, ids);
    body.replaceChildren(...[...history].reverse().map(eventRow));
    frame.scrollLeft = frame.scrollWidth;
  };
}

function draw(drawing, events, ids) {
  const { nodes, edges, height, smallest } = layoutLineage(events, ids);
  const unit = ROW / smallest;
  const width = MARGIN + events.length * COLUMN + NODE_WIDTH + RIGHT;
  const total = height * unit + AXIS + MARGIN;
  const x = (column) => MARGIN + column * COLUMN;
  const y = (node) => MARGIN + (node.top + node.size / 2) * unit;
  for (const [name, value] of [["viewBox", `0 0 ${width} ${total}`], ["width", width], ["height", total]]) {
    drawing.setAttribute(name, value);
  }
  const latest = events.slice(-3).map(eventText).join("; ");
  drawing.setAttribute("aria-label", `${events.length} changes of the partitions, the latest: ${latest}`);
  const timeLabel = (event, index) => {
    const place = { x: x(index + 1) + NODE_WIDTH / 2, y: total - 5, "text-anchor": "middle" };
    return svg("text", { class: "boundary", ...place }, secondText(event.finished_at));
  };
  drawing.replaceChildren(
    ...edges.map(({ source, target, kind }) =>
      edge(x(source.column) + NODE_WIDTH, y(source), x(target.column), y(target), kind)),
    ...nodes.map((node) => nodeBox(node, x(node.column), y(node))),
    ...events.map(timeLabel),
  );
}

function edge(fromX, fromY, toX, toY, kind) {
  const middle = toX - COLUMN / 3;
  const bend = Math.max(fromX, toX - COLUMN / 1.6);
  const path = `M${fromX} ${fromY} H${bend} C${middle} ${fromY} ${middle} ${toY} ${toX} ${toY}`;
  return svg("path", { class: `edge ${kind}`, d: path });
}

function nodeBox({ id, event, isCurrent }, x, y) {
  const kind = isCurrent ? "lineage-node current" : "lineage-node";
  return svg("g", { class: kind },
    svg("title", {}, event ? eventText(event) : `Partition ${id}`),
    svg("rect", { x, y: y - NODE_HEIGHT / 2, width: NODE_WIDTH, height: NODE_HEIGHT, rx: 5 }),
    svg("text", { x: x + NODE_WIDTH / 2, y: y + 4.5, "text-anchor": "middle" }, id));
}

export function eventText(event) {
  const names = { split: "Split", merge: "Merge", move: "Move" };
  const sources = event.sources.join(" and ");
  const change = event.kind === "move" ? sources : `${sources} into ${event.targets.join(" and ")}`;
  const work = `${count(event.entries_copied)} entries copied, sealed for ${count(event.sealed_ms)} ms`;
  return `${names[event.kind] ?? event.kind} of ${change} (${event.reason}): ${work}`;
}

function eventRow(event) {
  const cells = [
    moment(event.finished_at), event.kind, event.sources.join(", "), event.targets.join(", "), event.reason,
    count(event.entries_copied), `${count(event.sealed_ms)} ms`,
  ];
  return h("tr", {}, ...cells.map((text) => h("td", {}, text)));
}

function jobRow(job) {
  const label = `${job.kind} of partition ${job.ranges.join(" and ")}`;
  const share = job.percent ?? null;
  return h("div.job", { "data-job": job.id },
    h("div.row.between", {},
      h("span", {}, h("span.tag.warn", {}, job.kind), ` partition ${job.ranges.join(" and ")}: ${job.step}`),
      h("span.small.faint", {}, `${count(job.entries_copied)} entries copied${share === null ? "" : `, ${share} %`}`)),
    h("progress", { max: 100, "aria-label": label, ...(share === null ? {} : { value: share }) }),
    job.trouble ? h("p.problem", {}, job.trouble) : null);
}
