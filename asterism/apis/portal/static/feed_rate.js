// Changes per second over the last minute: counting, and a small drawing.
import { count } from "./format.js";
import { svg } from "./ui.js";

const SECONDS = 60;
const RECENT_SECONDS = 10;
const HEIGHT = 36;
const BAR = 4;

// Counters by second. `nowSeconds` is an argument, so that the counting can be tested without a clock.
export function createRate() {
  const counters = new Map();
  return {
    add(number, nowSeconds) {
      const second = Math.floor(nowSeconds);
      counters.set(second, (counters.get(second) ?? 0) + number);
      for (const known of counters.keys()) if (known <= second - SECONDS) counters.delete(known);
    },
    // The last minute, oldest second first.
    series(nowSeconds) {
      const last = Math.floor(nowSeconds);
      return Array.from({ length: SECONDS }, (_, place) => counters.get(last - SECONDS + 1 + place) ?? 0);
    },
  };
}

export function recentRate(series) {
  return series.slice(-RECENT_SECONDS).reduce((sum, number) => sum + number, 0) / RECENT_SECONDS;
}

export function drawRate(place, series) {
  const highest = Math.max(1, ...series);
  const bars = series.map((number, second) => {
    const height = number === 0 ? 1 : Math.max(2, Math.round((number / highest) * HEIGHT));
    return svg("rect", {
      x: second * BAR,
      y: HEIGHT - height,
      width: BAR - 1,
      height,
      class: number === 0 ? "idle" : "busy",
    });
  });
  const highestText = `at most ${count(Math.max(...series))} in the last minute`;
  const label = `Changes per second: ${count(recentRate(series))} now, ${highestText}`;
  place.replaceChildren(
    svg("svg", { viewBox: `0 0 ${SECONDS * BAR} ${HEIGHT}`, class: "rate", role: "img", "aria-label": label }, bars),
  );
}
