// The form of the time to live: off, on without a default, or a number of seconds.
import { mayChange } from "./ui.js";

const WITHOUT_DEFAULT = -1;

export function fillTtl(form, ttl) {
  const mode = ttl === undefined || ttl === null ? "off" : ttl === WITHOUT_DEFAULT ? "items" : "seconds";
  form.elements.namedItem("mode").value = mode;
  if (mode === "seconds") form.elements.namedItem("seconds").value = String(ttl);
  showSeconds(form);
}

// The value of `defaultTtl`; undefined where items live for ever.
export function ttlOf(form) {
  const mode = form.elements.namedItem("mode").value;
  if (mode === "off") return undefined;
  if (mode === "items") return WITHOUT_DEFAULT;
  const seconds = Number(form.elements.namedItem("seconds").value);
  if (!Number.isInteger(seconds) || seconds < 1) throw new Error("Give a whole number of seconds, from 1 on.");
  return seconds;
}

// The number is asked for only where it counts.
export function showSeconds(form) {
  form.elements.namedItem("seconds").disabled = !mayChange() || form.elements.namedItem("mode").value !== "seconds";
}
