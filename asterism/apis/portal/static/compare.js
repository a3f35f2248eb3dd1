// Two containers side by side, with the same colors for the same heat.
import { HeatScale } from "./partitions_heat.js";
import { FIVE_MINUTES, mountPartitions, windowChoice } from "./partitions_view.js";
import { collectionOf } from "./ui.js";

const scale = new HeatScale();
const sides = [...document.querySelectorAll("[data-side]")].map((place) =>
  mountPartitions(place.querySelector("[data-drawings]"), collectionOf(place), {
    isCompact: true, scale, firstWindow: FIVE_MINUTES,
  }));
const choice = windowChoice(FIVE_MINUTES, (span) => sides.forEach((side) => side.setWindow(span)));
document.getElementById("time-shown").append(choice);
