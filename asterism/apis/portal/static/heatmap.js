// The heat map: rows are partitions, columns are steps of time, colors are the use of a partition's share.
import { minuteText } from "./partitions_model.js";

// Where the colors of the palette stand: a partition that uses its whole share is at 1.
const WARM = 0.7;
const PALETTE_SIZE = 256;
const LEFT = 40;
const BOTTOM = 20;
const HEIGHT = 320;
const ROW_MIN = 3;
const ROW_MAX = 36;
const ROW_LABEL_HEIGHT = 13;
const TIME_LABEL_WIDTH = 64;
// Below this use of the share a map of shares would be blank: it is scaled to its own maximum instead.
const FULL_SCALE_FROM = 0.25;
const NICE = [1, 2, 2.5, 5, 10];

// The scale of a map: `isShare` if the end of the scale is the share of a partition, with warm and hot colors near it.
export function scaleFor(max, hasShares) {
  if (hasShares && max >= FULL_SCALE_FROM) return { max: 1, isShare: true };
  return { max: hasShares ? Math.max(niceAbove(max), 0.01) : Math.max(niceAbove(max), 1), isShare: false };
}

export function niceAbove(value) {
  if (value <= 0) return 0;
  const power = 10 ** Math.floor(Math.log10(value));
  return power * NICE.find((factor) => factor * power >= value * 0.999999);
}

// The place of a value in the palette, from 0 to 1.
function heatOf(value, scale) {
  return Math.min(1, (value / scale.max) * (scale.isShare ? 1 : WARM));
}

// Colors as [red, green, blue] for every heat from 0 to 1.
export function paletteOf({ cold, warm, hot, over }) {
  // Short ways between the last colors, since the mixtures of blue and orange look like neither.
  const stops = [[0, cold], [WARM, warm], [0.78, hot], [0.96, hot], [1, over]];
  return Array.from({ length: PALETTE_SIZE }, (_, place) => {
    const heat = place / (PALETTE_SIZE - 1);
    const after = Math.max(1, stops.findIndex(([at]) => at >= heat));
    const [fromAt, from] = stops[after - 1];
    const [toAt, to] = stops[after];
    const part = (heat - fromAt) / (toAt - fromAt);
    return from.map((channel, index) => Math.round(channel + (to[index] - channel) * part));
  });
}

// The layout for a width in CSS pixels.
export function heatLayout(data, width) {
  const rowHeight = Math.min(ROW_MAX, Math.max(ROW_MIN, HEIGHT / Math.max(data.rows.length, 1)));
  const columns = data.rows[0]?.values.length ?? 0;
  const height = rowHeight * data.rows.length;
  const columnWidth = (width - LEFT) / Math.max(columns, 1);
  return { left: LEFT, rowHeight, columns, columnWidth, mapHeight: height, width, height: height + BOTTOM };
}

// Draw `data`: { rows: [{ label, values, throttled, isCurrent }], from, stepSeconds, scale, cell }, where `cell` is
// { row, column } or null, with `colors` from the style sheet. Cells become the pixels of a
// small image, which one call stretches to the map.
export function drawHeatMap(canvas, data, colors) {
  // Only the last drawing is kept: a page that stays open for days would collect them.
  performance.clearMeasures("heat-map");
  performance.clearMarks("heat-map-begin");
  performance.clearMarks("heat-map-end");
  performance.mark("heat-map-begin");
  const layout = heatLayout(data, canvas.clientWidth || canvas.width);
  const ratio = globalThis.devicePixelRatio || 1;
  canvas.width = Math.round(layout.width * ratio);
  canvas.height = Math.round(layout.height * ratio);
  canvas.style.height = `${layout.height}px`;
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, layout.width, layout.height);
  if (layout.columns > 0) {
    drawCells(context, data, colors, layout);
    drawThrottled(context, data, colors, layout);
    drawLabels(context, data, colors, layout);
    if (data.cell) drawCursor(context, data.cell, colors, layout);
  }
  performance.mark("heat-map-end");
  performance.measure("heat-map", "heat-map-begin", "heat-map-end");
  return layout;
}

function drawCells(context, data, colors, layout) {
  const { rows, scale } = data;
  const palette = paletteOf(colors);
  const cells = new OffscreenCanvas(layout.columns, rows.length);
  const cellContext = cells.getContext("2d");
  const image = cellContext.createImageData(layout.columns, rows.length);
  let pixel = 0;
  for (const { values } of rows) {
    for (let column = 0; column < layout.columns; column += 1) {
      const color = palette[Math.round(heatOf(values[column] ?? 0, scale) * (PALETTE_SIZE - 1))];
      image.data[pixel] = color[0];
      image.data[pixel + 1] = color[1];
      image.data[pixel + 2] = color[2];
      image.data[pixel + 3] = 255;
      pixel += 4;
    }
  }
  cellContext.putImageData(image, 0, 0);
  context.imageSmoothingEnabled = false;
  context.drawImage(cells, layout.left, 0, layout.width - layout.left, layout.mapHeight);
  if (layout.rowHeight < 6) return;
  context.fillStyle = colors.gap;
  for (let row = 1; row < rows.length; row += 1) {
    context.fillRect(layout.left, row * layout.rowHeight - 0.5, layout.width - layout.left, 1);
  }
}

// A mark at the foot of each cell with 429s, in the color of text: it stands out from every heat.
function drawThrottled(context, { rows }, colors, layout) {
  const height = Math.max(1.5, Math.min(4, layout.rowHeight / 4));
  context.fillStyle = colors.text;
  rows.forEach(({ throttled }, row) => {
    const y = (row + 1) * layout.rowHeight - height - (layout.rowHeight >= 6 ? 1.5 : 0);
    throttled.forEach((number, column) => {
      if (number === 0) return;
      context.fillRect(layout.left + column * layout.columnWidth, y, Math.max(1.5, layout.columnWidth - 0.5), height);
    });
  });
}

function drawLabels(context, { rows, from, stepSeconds }, colors, layout) {
  context.font = colors.font;
  context.textBaseline = "middle";
  context.textAlign = "right";
  let lastY = -Infinity;
  rows.forEach(({ label, isCurrent }, row) => {
    const y = Math.max((row + 0.5) * layout.rowHeight, ROW_LABEL_HEIGHT / 2);
    if (y - lastY < ROW_LABEL_HEIGHT) return;
    lastY = y;
    context.fillStyle = isCurrent ? colors.text : colors.faint;
    context.fillText(label, layout.left - 6, y);
  });
  context.fillStyle = colors.faint;
  const ticks = Math.max(2, Math.floor((layout.width - layout.left) / (TIME_LABEL_WIDTH * 1.6)));
  for (let tick = 0; tick < ticks; tick += 1) {
    const column = Math.round((tick * layout.columns) / (ticks - 1));
    context.textAlign = tick === 0 ? "left" : tick === ticks - 1 ? "right" : "center";
    const x = layout.left + column * layout.columnWidth;
    context.fillText(minuteText(from + column * stepSeconds), x, layout.mapHeight + BOTTOM / 2 + 2);
  }
}

function drawCursor(context, { row, column }, colors, layout) {
  context.strokeStyle = colors.text;
  context.lineWidth = 2;
  const width = Math.max(6, layout.columnWidth);
  const height = Math.max(6, layout.rowHeight);
  const x = layout.left + (column + 0.5) * layout.columnWidth - width / 2;
  const y = (row + 0.5) * layout.rowHeight - height / 2;
  context.strokeRect(x, y, width, height);
}

// The cell under a point of the canvas; null beside the map.
export function cellAt(layout, x, y) {
  const column = Math.floor((x - layout.left) / layout.columnWidth);
  const row = Math.floor(y / layout.rowHeight);
  const isInside = column >= 0 && column < layout.columns && y >= 0 && y < layout.mapHeight;
  return isInside ? { row, column } : null;
}

// The palette as a strip, for the legend.
export function drawLegend(canvas, colors, scale) {
  const palette = paletteOf(colors);
  const context = canvas.getContext("2d");
  for (let x = 0; x < canvas.width; x += 1) {
    const heat = (x / (canvas.width - 1)) * (scale.isShare ? 1 : WARM);
    context.fillStyle = `rgb(${palette[Math.round(heat * (PALETTE_SIZE - 1))].join(" ")})`;
    context.fillRect(x, 0, 1, canvas.height);
  }
}
