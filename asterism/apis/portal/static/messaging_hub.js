// The page of a hub: its partitions as they grow, the lag of its consumer groups, and its events.
import { bytes, count } from "./format.js";
import { read } from "./messaging_api.js";
import { showEvents } from "./messaging_events.js";
import { showLag } from "./messaging_lag.js";
import { bar, momentOf, tableOf } from "./messaging_parts.js";
import { showGone } from "./trouble.js";
import { h, poll, setText } from "./ui.js";

const REFRESH_SECONDS = 2;
const place = (id) => document.getElementById(id);
// The figures of the answer before, for rates.
let before = null;

async function load() {
  let hub;
  try {
    hub = await read("messaging/hub");
  } catch (error) {
    if (error.status !== 404) throw error;
    showGone(place("messaging-content"), "hub");
    return Infinity;
  }
  show(hub);
  before = hub;
}

function show(hub) {
  const rates = new Map(hub.partitions.map((partition) => [partition.id, rateOf(hub, partition)]));
  const largest = Math.max(1, ...hub.partitions.map((partition) => partition.events ?? 0));
  setText(place("status"), hub.status);
  setText(place("total-events"), count(sum(hub.partitions, "events")));
  setText(place("total-bytes"), bytes(sum(hub.partitions, "bytes")));
  const known = [...rates.values()].filter((rate) => rate !== null);
  setText(place("total-rate"), known.length ? rateText(known.reduce((total, rate) => total + rate, 0)) : "–");
  const columns = [
    ["Partition", ({ id }) => String(id)],
    ["First", ({ begin_sequence }) => count(begin_sequence), "number"],
    ["Last", ({ last_sequence }) => (last_sequence === -1 ? "none yet" : count(last_sequence)), "number"],
    ["Events", ({ events }) => h("span", {}, count(events), bar((events ?? 0) / largest)), "number"],
    ["Size", (partition) => bytes(partition.bytes), "number"],
    ["Rate", ({ id }) => rateText(rates.get(id)), "number"],
    ["Last event", ({ last_enqueued_ms }) => momentOf(last_enqueued_ms)],
    ["Receivers", ({ receivers }) => receiversText(receivers)],
    ["Node", ({ node }) => node],
    ["Physical partition", ({ physical_partition }) => physical_partition],
    ["State", ({ state }) => h(`span.tag.${state === "up" ? "good" : "bad"}`, {}, state)],
  ];
  place("partitions").replaceChildren(h("div.scroll", {}, tableOf("Partitions", columns, hub.partitions)));
}

function sum(partitions, name) {
  return partitions.some((partition) => partition[name] === null)
    ? null
    : partitions.reduce((total, partition) => total + partition[name], 0);
}

// Events per second since the answer before; null while there is none.
function rateOf(hub, partition) {
  const earlier = before?.partitions.find(({ id }) => id === partition.id);
  const seconds = before === null ? 0 : (hub.now_ms - before.now_ms) / 1000;
  if (!earlier || seconds <= 0 || partition.last_sequence === null || earlier.last_sequence === null) return null;
  return Math.max(0, partition.last_sequence - earlier.last_sequence) / seconds;
}

function rateText(rate) {
  return rate === null || rate === undefined ? "–" : `${count(rate)}/s`;
}

function receiversText(receivers) {
  return Object.entries(receivers).map(([group, number]) => `${group}: ${number}`).join(", ") || "–";
}

poll(load, REFRESH_SECONDS);
showLag();
showEvents();
