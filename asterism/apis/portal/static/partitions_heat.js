// The heat map of a container in its page: the map, its legend, and a read-out of the cell under pointer or keyboard.
import { count, percent } from "./format.js";
import { cellAt, drawHeatMap, drawLegend, scaleFor } from "./heatmap.js";
import { heatColors, onTheme } from "./partitions_colors.js";
import { secondText } from "./partitions_model.js";
import { throttledIn } from "./partitions_verdict.js";
import { h } from "./ui.js";

const MOVES = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
const NO_HISTORY = "The server keeps no history of the usage. Start it with another --metrics-history to see the past.";

// The scale of one map, or of several that are compared: all have that of the hottest.
export class HeatScale {
  #maxima = new Map();
  #redraws = new Set();

  // `redraw` is called when another map changes the scale.
  join(redraw) {
    this.#redraws.add(redraw);
  }

  // Maps of shares and maps of plain RU/s cannot have the same scale.
  report(redraw, max, hasShares) {
    const before = JSON.stringify(this.scale(hasShares));
    this.#maxima.set(redraw, { max, hasShares });
    if (JSON.stringify(this.scale(hasShares)) === before) return;
    for (const other of this.#redraws) if (other !== redraw) other();
  }

  scale(hasShares) {
    const maxima = [...this.#maxima.values()].filter((entry) => entry.hasShares === hasShares);
    return scaleFor(Math.max(0, ...maxima.map((entry) => entry.max)), hasShares);
  }
}

// Rows for the map: the partitions that exist, then those that are gone but were used in the window.
export function heatRows(usage, hasGone) {
  const share = usage.ru_share;
  const unit = usage.step_seconds * (share || 1);
  return usage.partitions
    .filter(({ is_current, ru }) => is_current || (hasGone && ru.some((used) => used > 0)))
    .map(({ id, is_current, ru, throttled }) => ({
      id,
      label: is_current ? id : `(${id})`,
      isCurrent: is_current,
      values: ru.map((used) => used / unit),
      throttled,
    }));
}

export function mountHeat(place, { scale, hasGone }) {
  const canvas = h("canvas.heat", { role: "img", tabindex: 0 });
  const readOut = h("p.small.read-out", { "aria-live": "polite" });
  const strip = h("canvas.legend-strip", { width: 160, height: 12, "aria-hidden": true });
  const low = h("span");
  const high = h("span");
  const gone = h("span.gone", { hidden: true }, "(n): split or merged meanwhile");
  const marked = h("span.marked", {}, h("span.mark-429"), "429s");
  const legend = h("div.row.small.faint.legend", {}, low, strip, high, marked, gone);
  place.append(canvas, legend, readOut);
  let data = null;
  let layout = null;
  let usage = null;

  function redraw() {
    if (data === null || canvas.clientWidth === 0) return;
    data.scale = scale.scale(data.hasShares);
    const colors = heatColors();
    layout = drawHeatMap(canvas, data, colors);
    drawLegend(strip, colors, data.scale);
    low.textContent = data.hasShares ? "0 %" : "0";
    high.textContent = highText(data);
    gone.hidden = data.rows.every((row) => row.isCurrent);
    const text = cellText(data);
    if (readOut.textContent !== text) readOut.textContent = text;
  }

  function point(cell) {
    if (data === null || JSON.stringify(cell) === JSON.stringify(data.cell)) return;
    data.cell = cell;
    redraw();
  }

  canvas.addEventListener("pointermove", ({ offsetX, offsetY }) => layout && point(cellAt(layout, offsetX, offsetY)));
  canvas.addEventListener("pointerleave", () => document.activeElement !== canvas && point(null));
  canvas.addEventListener("blur", () => point(null));
  canvas.addEventListener("keydown", (event) => {
    if (event.key === "Escape") point(null);
    if (!(event.key in MOVES) || data === null || !layout?.columns) return;
    event.preventDefault();
    point(moved(data.cell, MOVES[event.key], data.rows.length, layout.columns));
  });
  scale.join(redraw);
  onTheme(redraw);
  new ResizeObserver(redraw).observe(place);

  return ({ usage: fresh }) => {
    if (fresh === null || fresh === usage) return;
    usage = fresh;
    canvas.hidden = legend.hidden = usage.history_seconds === 0;
    if (usage.history_seconds === 0) {
      readOut.textContent = NO_HISTORY;
      return;
    }
    const rows = heatRows(usage, hasGone);
    const max = rows.reduce((most, { values }) => values.reduce((a, b) => Math.max(a, b), most), 0);
    const hasShares = Boolean(usage.ru_share);
    const kept = data?.cell ?? null;
    const cell = kept && kept.row < rows.length && kept.column < rows[0].values.length ? kept : null;
    const { from, step_seconds: stepSeconds, ru_share: share } = usage;
    data = { rows, from, stepSeconds, share, hasShares, cell, scale: null };
    scale.report(redraw, max, hasShares);
    canvas.setAttribute("aria-label", labelOf(data, max, usage));
    redraw();
  };
}

function moved(cell, [rows, columns], rowCount, columnCount) {
  if (cell === null) return { row: 0, column: columnCount - 1 };
  const within = (value, size) => Math.min(Math.max(value, 0), size - 1);
  return { row: within(cell.row + rows, rowCount), column: within(cell.column + columns, columnCount) };
}

function highText({ scale, hasShares }) {
  if (!hasShares) return `${count(scale.max)} RU/s`;
  return scale.isShare ? "100 % of the partition's share, and above" : `${percent(scale.max)} of the partition's share`;
}

function cellText({ rows, cell, from, stepSeconds, share, hasShares }) {
  if (cell === null) return "Point at a cell, or focus the map and use the arrow keys, to read its figures.";
  const { id, isCurrent, values, throttled } = rows[cell.row];
  const value = values[cell.column];
  const rate = value * (share || 1);
  const refused = throttled[cell.column];
  const name = `Partition ${id}${isCurrent ? "" : " (gone)"} at ${secondText(from + cell.column * stepSeconds)}`;
  const use = hasShares ? `, ${percent(value)} of its ${count(Math.round(share))} RU/s` : "";
  return `${name}: ${count(Math.round(rate * 10) / 10)} RU/s${use}${refused ? `, ${count(refused)} × 429` : ""}.`;
}

function labelOf({ rows, hasShares }, max, usage) {
  const hottest = rows.find(({ values }) => values.includes(max));
  const most = hasShares ? `${percent(max)} of its share` : `${count(Math.round(max))} RU/s`;
  const peak = max > 0 && hottest ? ` The hottest is partition ${hottest.id} with ${most}.` : " There was no load.";
  const refused = `${count(throttledIn(usage))} requests got 429.`;
  return `Heat map of the consumed RU of ${rows.length} partitions over time.${peak} ${refused}`;
}
