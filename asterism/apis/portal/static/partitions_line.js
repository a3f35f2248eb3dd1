// The line with its physical partitions, to scale. A listbox: arrow keys select a partition, as a click does.
import { count, percent } from "./format.js";
import { boundsOf, isOrdered, keyText, layoutLine, positionOf, thinOut } from "./partitions_model.js";
import { h, svg } from "./ui.js";

const TOP = 18;
const HEIGHT = 62;
const LABELS = 20;
const ID_WIDTH = 22;
const FACTS_WIDTH = 84;
// A boundary's label in the small font, with a gap behind it.
const LABEL_WIDTH = 58;
const STEPS = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };

export function mountLine(place, { onSelect }) {
  const drawing = svg("svg", { class: "line", role: "listbox", "aria-orientation": "horizontal" });
  const note = h("p.faint.small");
  place.append(drawing, note);
  let shown = "";
  let latest = null;
  function update(view) {
    latest = view;
    const width = Math.floor(place.clientWidth);
    const signature = JSON.stringify([width, view.selected, facts(view)]);
    if (signature === shown || width === 0) return;
    shown = signature;
    const hadFocus = drawing.contains(document.activeElement);
    draw(drawing, width, view, onSelect);
    note.textContent = noteOf(view);
    if (hadFocus) drawing.querySelector("[tabindex='0']")?.focus();
  }
  drawing.addEventListener("keydown", (event) => {
    const ids = latest.answer.partitions.map((partition) => partition.id);
    const next = nextId(ids, event.target.dataset.partition, event.key);
    if (next === null) return;
    event.preventDefault();
    onSelect(next);
    drawing.querySelector(`[data-partition="${CSS.escape(next)}"]`)?.focus();
  });
  new ResizeObserver(() => latest && update(latest)).observe(place);
  return update;
}

function nextId(ids, focused, key) {
  if (key === "Home") return ids[0];
  if (key === "End") return ids.at(-1);
  if (key === "Enter" || key === " ") return focused ?? null;
  if (!(key in STEPS) || focused === undefined) return null;
  return ids[Math.min(Math.max(ids.indexOf(focused) + STEPS[key], 0), ids.length - 1)];
}

// Everything that the drawing depends on, so that it is drawn again only when something has changed.
function facts({ answer, meter, isOnNodes }) {
  return [
    answer.partitions.map((partition) => [
      partition.id, partition.min, partition.max, partition.state, partition.job?.percent, partition.node,
      partition.ru_share, Math.round(100 * useOf(partition, meter)), isOnNodes,
    ]),
    answer.hottest.map((key) => key.effective_key),
  ];
}

function useOf(partition, meter) {
  const rate = meter.rateOf(partition.id);
  return rate === null || !partition.ru_share ? 0 : rate / partition.ru_share;
}

function draw(drawing, width, view, onSelect) {
  const { answer, selected } = view;
  const { partitions, partition_key: definition } = answer;
  const parts = layoutLine(partitions, definition).map((part) => {
    const left = part.from * width;
    return { ...part, left, width: Math.max(2, (part.to - part.from) * width) };
  });
  drawing.setAttribute("viewBox", `0 0 ${width} ${TOP + HEIGHT + LABELS}`);
  drawing.setAttribute("height", TOP + HEIGHT + LABELS);
  const order = isOrdered(definition) ? "keys" : "hashes";
  drawing.setAttribute("aria-label", `Physical partitions in the order of the ${order}`);
  const focusable = partitions.some((partition) => partition.id === selected) ? selected : partitions[0]?.id;
  drawing.replaceChildren(
    ...parts.map((part) => {
      const { id } = part.partition;
      return segment(part, view, { isSelected: id === selected, isFocusable: id === focusable, onSelect });
    }),
    ...narrowIds(parts),
    ...boundaryLabels(parts, definition, width),
    ...pins(answer, parts, width),
  );
}

function segment({ partition, left, width }, view, { isSelected, isFocusable, onSelect }) {
  const use = useOf(partition, view.meter);
  const level = Math.min(1, use) * HEIGHT;
  const inner = Math.max(1, width - 2);
  const changing = partition.job ?? (partition.state !== "online" ? partition : null);
  const box = (kind, y, height) =>
    svg("rect", { class: kind, x: left + 1, y, width: inner, height, rx: Math.min(3, inner / 4) });
  const text = segmentText(partition, view, use);
  const group = svg(
    "g",
    {
      class: isSelected ? "segment selected" : "segment",
      role: "option",
      tabindex: isFocusable ? 0 : -1,
      "aria-selected": isSelected,
      "aria-label": text,
      "data-partition": partition.id,
    },
    svg("title", {}, text),
    box("segment-box", TOP, HEIGHT),
    box(use >= 1 ? "segment-level over" : "segment-level", TOP + HEIGHT - level, level),
    ...(changing ? [movingStripes(partition, left, inner)] : []),
    ...labels(partition, view, left + width / 2, width),
  );
  group.addEventListener("click", () => onSelect(partition.id));
  return group;
}

// Stripes that move: a dashed line as thick as the segment is high.
function movingStripes(partition, left, width) {
  const middle = TOP + HEIGHT / 2;
  const kind = partition.state === "unreachable" ? "stripes still" : "stripes";
  const ends = { x1: left + 1, x2: left + 1 + width, y1: middle, y2: middle };
  return svg("line", { class: kind, ...ends, "stroke-width": HEIGHT });
}

function labels(partition, { isOnNodes }, middle, width) {
  if (width < ID_WIDTH) return [];
  const lines = [[partition.id, "segment-id"]];
  if (width >= FACTS_WIDTH) {
    if (partition.ru_share) lines.push([`${count(Math.round(partition.ru_share))} RU/s`, "segment-fact"]);
    const state = stateText(partition);
    if (state !== "online") lines.push([state, "segment-fact strong"]);
    else if (isOnNodes) lines.push([partition.node, "segment-fact"]);
  }
  const first = TOP + HEIGHT / 2 - (lines.length - 1) * 8 + 5;
  return lines.map(([text, kind], place) =>
    svg("text", { class: kind, x: middle, y: first + place * 16, "text-anchor": "middle" }, text));
}

// Ids of segments that are too narrow for theirs: some of them, with room between.
function narrowIds(parts) {
  const narrow = thinOut(parts, (part) => part.left + part.width / 2, ID_WIDTH).filter((part) => part.width < ID_WIDTH);
  const y = TOP + HEIGHT / 2 + 4;
  return narrow.map(({ partition, left, width }) =>
    svg("text", { class: "narrow-id", x: left + width / 2, y, "text-anchor": "middle" }, partition.id));
}

export function stateText({ state, job }) {
  if (!job) return state;
  const words = { split: "splitting", merge: "merging", move: "moving" };
  const share = job.percent === null || job.percent === undefined ? "" : ` ${job.percent} %`;
  return `${words[job.kind] ?? job.kind}${share}`;
}

function segmentText(partition, { answer, meter, isOnNodes }, use) {
  const [from, to] = boundsOf(partition, answer.partition_key);
  const rate = meter.rateOf(partition.id);
  const whole = count(Math.round(partition.ru_share ?? 0));
  const share = partition.ru_share ? `, ${count(Math.round(rate ?? 0))} of ${whole} RU/s (${percent(use)})` : "";
  const node = isOnNodes ? `, on node ${partition.node}` : "";
  return `Partition ${partition.id}, ${stateText(partition)}, from ${from} to ${to}${share}${node}`;
}

function boundaryLabels(parts, definition, width) {
  if (!parts.length) return [];
  const y = TOP + HEIGHT + 15;
  // The label of the end stands at the right edge, and has its room.
  const hasRoom = (part) => part === parts[0] || part.left < width - 1.5 * LABEL_WIDTH;
  const starts = thinOut(parts, (part) => part.left, LABEL_WIDTH).filter(hasRoom);
  const room = width / Math.max(starts.length, 1);
  const label = (x, anchor, text) =>
    svg("text", { class: "boundary", x, y, "text-anchor": anchor }, fitted(text, room));
  return [
    ...starts.map((part) => label(part.left + 1, "start", boundsOf(part.partition, definition)[0])),
    label(width - 1, "end", boundsOf(parts.at(-1).partition, definition)[1]),
  ];
}

// Characters of the small font are about 7 pixels wide.
function fitted(text, room) {
  const most = Math.max(6, Math.floor(room / 7) - 2);
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

// The hottest logical partitions as pins, at the place of their hash; on an ordered line in their order, with equal
// distances within their partition.
function pins(answer, parts, width) {
  const { hottest, partition_key: definition } = answer;
  const most = hottest[0]?.request_units ?? 0;
  return hottest.map((key) => {
    const part = parts.find(({ partition }) => partition.id === key.partition);
    const beside = hottest.filter(({ partition }) => partition === key.partition).map((other) => other.effective_key);
    const place = (beside.sort().indexOf(key.effective_key) + 1) / (beside.length + 1);
    const inOrder = part ? part.left + part.width * place : 0;
    const x = isOrdered(definition) ? inOrder : positionOf(key.effective_key, definition.version) * width;
    const radius = 2.5 + 3.5 * Math.sqrt(most ? key.request_units / most : 0);
    const title = svg("title", {}, `${keyText(key)}: ${count(key.request_units)} RU`);
    return svg("circle", { class: "pin", cx: x, cy: TOP - 8, r: radius }, title);
  });
}

function noteOf({ answer }) {
  const how = isOrdered(answer.partition_key)
    ? "Keys are in order. Text has no scale, so all partitions are drawn equally wide."
    : "The line of hashes from 00 to FF; widths are to scale.";
  return `${how} The level shows the RU/s in use, dots the hottest keys. Select a partition to see more.`;
}
