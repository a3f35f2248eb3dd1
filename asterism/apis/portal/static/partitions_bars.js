// Stored bytes: a bar for each physical partition, with its largest logical partitions inside.
import { bytes, count, percent } from "./format.js";
import { keyText, thinOut } from "./partitions_model.js";
import { h, svg } from "./ui.js";

// All bars together are about this high, within the bounds of a single bar.
const HEIGHT = 420;
const BAR_MIN = 4;
const BAR_MAX = 30;
const LABEL_LEFT = 44;
const LABEL_RIGHT = 76;
const CHARACTER_WIDTH = 7;
const TEXT_HEIGHT = 14;
// Parts that are thinner cannot be told apart, and join the others.
const PART_MIN = 3;
// The limit of a physical partition is drawn from this fraction of it on; before, bars would be invisible beside it.
const LIMIT_SHOWN_FROM = 0.2;
const LIMIT_NAMED_FROM = 0.0005;

export function mountBars(place) {
  const drawing = svg("svg", { class: "bars", role: "img" });
  const note = h("p.faint.small");
  place.append(drawing, note);
  let latest = null;
  let shown = "";
  function update(view) {
    latest = view;
    const { answer, selected } = view;
    const width = Math.floor(place.clientWidth);
    const parts = answer.partitions.map(({ id, bytes: size, largest }) => [id, size, largest]);
    const signature = JSON.stringify([width, selected, parts]);
    if (signature === shown || width === 0) return;
    shown = signature;
    draw(drawing, width, answer, selected);
    note.textContent = noteOf(answer);
  }
  new ResizeObserver(() => latest && update(latest)).observe(place);
  return update;
}

// The parts of a bar: logical partitions wide enough to be seen, then the others together.
export function partsOf(partition, scale) {
  const total = partition.bytes ?? 0;
  const seen = (partition.largest ?? []).filter((key) => key.bytes * scale >= PART_MIN);
  let from = 0;
  const parts = seen.map((key) => {
    const part = { text: keyText(key), bytes: key.bytes, items: key.items, from, isOthers: false };
    from += key.bytes;
    return part;
  });
  const rest = Math.max(0, total - from);
  if (rest > 0) parts.push({ text: othersText(partition, seen.length), bytes: rest, from, isOthers: true });
  return parts;
}

function othersText(partition, shown) {
  if (partition.logical_partitions === null || partition.logical_partitions === undefined) return "keys";
  const others = Math.max(0, partition.logical_partitions - shown);
  return `${count(others)}${partition.is_partial ? "+" : ""} other key${others === 1 ? "" : "s"}`;
}

function draw(drawing, width, answer, selected) {
  const { partitions, limits } = answer;
  const room = Math.max(40, width - LABEL_LEFT - LABEL_RIGHT);
  const largest = Math.max(1, ...partitions.map((partition) => partition.bytes ?? 0));
  const limit = limits.physical_partition_bytes_max;
  const hasLimit = largest >= LIMIT_SHOWN_FROM * limit;
  const scale = room / (hasLimit ? Math.max(limit, largest) : largest);
  const step = Math.min(BAR_MAX, Math.max(BAR_MIN, HEIGHT / Math.max(partitions.length, 1)));
  const gap = step >= 12 ? 4 : 1;
  const rows = partitions.map((partition, place) => ({ partition, top: place * step, height: step - gap }));
  // Bars too thin for their sizes have an axis instead.
  const isThin = step < TEXT_HEIGHT;
  const height = partitions.length * step + (hasLimit || isThin ? 18 : 2);
  drawing.setAttribute("viewBox", `0 0 ${width} ${height}`);
  drawing.setAttribute("height", height);
  drawing.setAttribute("aria-label", labelOf(answer));
  const labeled = new Set(thinOut(rows, (row) => row.top, TEXT_HEIGHT));
  drawing.replaceChildren(
    ...rows.map((row) => {
      const isSelected = row.partition.id === selected;
      return bar(row, { scale, room, isThin, isLabeled: labeled.has(row), isSelected });
    }),
    ...(isThin ? axis(room, scale, height) : []),
    ...(hasLimit ? limitLine(LABEL_LEFT + limit * scale, height, limit) : []),
  );
}

function axis(room, scale, height) {
  const ticks = Math.max(1, Math.min(4, Math.floor(room / 90)));
  return Array.from({ length: ticks + 1 }, (_, tick) => {
    const x = (room * tick) / ticks;
    return label("bar-size", LABEL_LEFT + x, height - 3, bytes(Math.round(x / scale)), tick === 0 ? "start" : "middle");
  });
}

function bar({ partition, top, height }, { scale, room, isThin, isLabeled, isSelected }) {
  const middle = top + height / 2 + 4;
  const parts = partsOf(partition, scale);
  return svg(
    "g",
    { class: isSelected ? "bar-row selected" : "bar-row" },
    svg("title", {}, barText(partition)),
    ...(isLabeled ? [label("bar-id", LABEL_LEFT - 8, middle, partition.id, "end")] : []),
    svg("rect", { class: "bar-base", x: LABEL_LEFT, y: top, width: 1, height }),
    ...parts.flatMap((part, place) => barPart(part, place, { top, height, middle, scale })),
    ...(isThin ? [] : [sizeLabel(partition, parts, { middle, scale, room })]),
  );
}

function label(kind, x, y, text, anchor = "start") {
  return svg("text", { class: kind, x, y, "text-anchor": anchor }, text);
}

function fits(part, scale) {
  return part.text.length * CHARACTER_WIDTH + 10 <= part.bytes * scale;
}

function barPart(part, place, { top, height, middle, scale }) {
  const x = LABEL_LEFT + part.from * scale;
  const width = Math.max(0.5, part.bytes * scale - (part.isOthers ? 0 : 1));
  const kind = part.isOthers ? "part others" : `part rank-${Math.min(place, 5)}`;
  const isNamed = height >= TEXT_HEIGHT && fits(part, scale);
  return [
    svg("rect", { class: kind, x, y: top, width, height }, svg("title", {}, `${part.text}: ${bytes(part.bytes)}`)),
    ...(isNamed ? [label(part.isOthers ? "part-text others" : "part-text", x + 5, middle, part.text)] : []),
  ];
}

// The size behind the bar, with the name of a key that has the bar to itself but not the room inside it.
function sizeLabel(partition, parts, { middle, scale, room }) {
  const end = (partition.bytes ?? 0) * scale + 7;
  const size = partition.bytes === null ? "unreachable" : bytes(partition.bytes);
  const key = parts[0] && !parts[0].isOthers && !fits(parts[0], scale) ? parts[0].text : "";
  const named = `${size} · ${key}`;
  const hasRoom = key !== "" && parts.length <= 2 && end + named.length * CHARACTER_WIDTH <= room + LABEL_RIGHT;
  return label("bar-size", LABEL_LEFT + end, middle, hasRoom ? named : size);
}

function limitLine(x, height, limit) {
  return [
    svg("line", { class: "limit", x1: x, x2: x, y1: 0, y2: height - 16 }),
    svg("text", { class: "bar-size", x, y: height - 3, "text-anchor": "end" }, `limit of a partition: ${bytes(limit)}`),
  ];
}

function barText(partition) {
  const keys = (partition.largest ?? []).slice(0, 3).map((key) => `${keyText(key)} ${bytes(key.bytes)}`);
  const inside = keys.length ? `; largest keys: ${keys.join(", ")}` : "";
  return `Partition ${partition.id}: ${bytes(partition.bytes)}, ${count(partition.items)} items${inside}`;
}

function labelOf({ partitions, totals }) {
  const fuller = (most, next) => ((next.bytes ?? 0) > (most.bytes ?? 0) ? next : most);
  const fullest = partitions.reduce(fuller, partitions[0]);
  if (!fullest) return "Stored bytes by physical partition";
  const share = totals.bytes ? `, ${percent(fullest.bytes / totals.bytes)} of all` : "";
  const most = `The fullest is ${fullest.id} with ${bytes(fullest.bytes)}${share}.`;
  return `Stored bytes of ${partitions.length} physical partitions. ${most}`;
}

// How near the largest are to their limits, where that says something.
function noteOf({ partitions, largest, limits, totals }) {
  const fullest = Math.max(0, ...partitions.map((partition) => partition.bytes ?? 0));
  const whole = partOf(fullest, limits.physical_partition_bytes_max);
  const notes = [`The fullest partition has ${whole} that one may hold.`];
  const key = largest?.[0];
  if (key && limits.logical_partition_bytes_max) {
    const part = partOf(key.bytes, limits.logical_partition_bytes_max);
    notes.push(`The largest key, ${keyText(key)}, has ${part} that one key may.`);
  }
  if (totals.is_partial) notes.push("There are too many keys to look at all: the largest are those of a part.");
  return notes.join(" ");
}

function partOf(size, limit) {
  const share = size / limit;
  return `${share < LIMIT_NAMED_FROM ? "less than 0.1 %" : percent(share)} of the ${bytes(limit)}`;
}
