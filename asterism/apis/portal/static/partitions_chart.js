// Request units over time: a line for each partition, and 429s of all as bars.
import uPlot from "./libraries/uplot.js";
import { count } from "./format.js";
import { chartColors, onTheme, SERIES_COLORS, seriesColors } from "./partitions_colors.js";
import { minuteText, secondText } from "./partitions_model.js";
import { throttledIn } from "./partitions_verdict.js";
import { h } from "./ui.js";

const HEIGHT = 220;

export function mountChart(place) {
  const frame = h("div.chart", { role: "img" });
  const note = h("p.small.faint");
  place.append(frame, note);
  let chart = null;
  let shownSeries = "";
  let usage = null;

  function draw() {
    if (usage === null || frame.clientWidth === 0) return;
    const lines = usage.partitions.filter((partition) => partition.is_current);
    const data = chartData(lines, usage);
    const series = JSON.stringify(lines.map((line) => line.id));
    if (chart !== null && series === shownSeries) {
      chart.setData(data);
      return;
    }
    shownSeries = series;
    chart?.destroy();
    chart = new uPlot(optionsOf(lines, frame.clientWidth), data, frame);
  }

  onTheme(() => {
    shownSeries = "";
    draw();
  });
  new ResizeObserver(() => {
    if (chart === null) draw();
    else chart.setSize({ width: Math.max(frame.clientWidth, 120), height: HEIGHT });
  }).observe(frame);

  return ({ usage: fresh, span }) => {
    if (fresh === null || fresh === usage) return;
    usage = fresh;
    frame.hidden = usage.history_seconds === 0;
    note.hidden = !frame.hidden;
    if (frame.hidden) {
      note.textContent = "Without a history there are no lines.";
      return;
    }
    draw();
    frame.setAttribute("aria-label", labelOf(usage, span.text));
    const lines = usage.partitions.filter((partition) => partition.is_current).length;
    note.textContent = lines > SERIES_COLORS ? `${count(lines)} partitions, a line each; the heat map names them.` : "";
    note.hidden = note.textContent === "";
  };
}

// Columns for the library: times, RU/s of each partition, 429s of all partitions, those that are gone included.
export function chartData(lines, usage) {
  const steps = usage.partitions[0]?.ru.length ?? 0;
  const times = Array.from({ length: steps }, (_, step) => usage.from + step * usage.step_seconds);
  const refused = times.map((_, step) => usage.partitions.reduce((sum, { throttled }) => sum + throttled[step], 0));
  const rates = lines.map(({ ru }) => ru.map((used) => used / usage.step_seconds));
  return [times, ...rates, refused.map((number) => number || null)];
}

function optionsOf(lines, width) {
  const colors = chartColors();
  const palette = seriesColors();
  const thin = { stroke: colors.grid, width: 1 };
  const axis = { stroke: colors.text, grid: thin, ticks: thin };
  const value = (_, number) => (number === null || number === undefined ? "–" : count(Math.round(number * 10) / 10));
  return {
    width: Math.max(width, 120),
    height: HEIGHT,
    legend: { show: lines.length <= SERIES_COLORS },
    cursor: { drag: { x: false, y: false } },
    scales: {
      x: { time: true },
      y: { range: (_, __, max) => [0, Math.max(max * 1.05, 1)] },
      // Bars of at most a quarter of the height leave the lines readable.
      refused: { range: (_, __, max) => [0, Math.max(max * 4, 8)] },
    },
    series: [
      { label: "Time", value: (_, seconds) => (seconds === null ? "–" : secondText(seconds)) },
      ...lines.map(({ id }, place) => ({
        label: `Partition ${id}`,
        stroke: palette[place % SERIES_COLORS],
        width: lines.length > SERIES_COLORS ? 1 : 1.75,
        points: { show: false },
        value,
      })),
      {
        label: "429s",
        scale: "refused",
        stroke: colors.throttled,
        fill: colors.throttled,
        alpha: 0.5,
        paths: uPlot.paths.bars({ size: [0.6, 10] }),
        points: { show: false },
        value,
      },
    ],
    axes: [
      { ...axis, space: 60, values: (_, times) => times.map(minuteText) },
      { ...axis, size: 56, values: (_, numbers) => numbers.map((number) => count(number)) },
    ],
  };
}

function labelOf(usage, words) {
  const peaks = usage.partitions.map(({ id, ru }) => ({ id, rate: Math.max(0, ...ru) / usage.step_seconds }));
  const most = peaks.reduce((highest, next) => (next.rate > highest.rate ? next : highest), { id: null, rate: 0 });
  const rate = count(Math.round(most.rate));
  const peak = most.id === null ? "no load" : `the most is ${rate} RU/s of partition ${most.id}`;
  return `RU/s of each partition ${words}: ${peak}; ${count(throttledIn(usage))} requests got 429.`;
}
