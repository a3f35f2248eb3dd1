// Colors of the style sheet for canvases, which know no variables.
const probe = document.createElement("canvas").getContext("2d");

function variable(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

// [red, green, blue] of a variable; the canvas turns every notation into #rrggbb.
function channels(name) {
  probe.fillStyle = variable(name);
  const number = parseInt(probe.fillStyle.slice(1), 16);
  return [(number >> 16) & 255, (number >> 8) & 255, number & 255];
}

export function heatColors() {
  return {
    cold: channels("--heat-cold"),
    warm: channels("--heat-warm"),
    hot: channels("--heat-hot"),
    over: channels("--heat-over"),
    gap: variable("--card"),
    text: variable("--ink"),
    faint: variable("--faint"),
    font: '12px system-ui, "DejaVu Sans", sans-serif',
  };
}

export const SERIES_COLORS = 8;

export function seriesColors() {
  return Array.from({ length: SERIES_COLORS }, (_, place) => variable(`--series-${place + 1}`));
}

export function chartColors() {
  return { text: variable("--faint"), grid: variable("--line"), throttled: variable("--bad") };
}

// Call `redraw` when the theme changes: by the switch of the page, or by the system (theme.js).
export function onTheme(redraw) {
  document.addEventListener("theme", redraw);
}
