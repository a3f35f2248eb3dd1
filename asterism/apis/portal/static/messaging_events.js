// Events of a partition of a hub, page by page. Reading them moves no consumer group.
import { read } from "./messaging_api.js";
import { bodyPreview, openMessage } from "./messaging_message.js";
import { momentOf, pairsOf, tableOf } from "./messaging_parts.js";
import { showProblem } from "./trouble.js";
import { h, newest } from "./ui.js";

const PAGE_EVENTS = 20;
const place = (id) => document.getElementById(`events-${id}`);
const begin = newest();

async function load(start) {
  const isNewest = begin();
  const partition = place("partition").value;
  try {
    const page = await read("messaging/events", {
      partition,
      from: start ?? (await lastPage(partition)),
      count: PAGE_EVENTS,
    });
    if (!isNewest()) return;
    showProblem(place("problem"), null);
    show(page);
  } catch (error) {
    if (isNewest()) showProblem(place("problem"), error);
  }
}

async function lastPage(partition) {
  const page = await read("messaging/events", { partition, count: 1 });
  return Math.max(0, page.last_sequence - PAGE_EVENTS + 1);
}

function show(page) {
  const columns = [
    ["Number", (event) => opener(event), "number"],
    ["Enqueued", ({ enqueued_ms }) => momentOf(enqueued_ms)],
    ["Partition key", ({ partition_key }) => partition_key ?? "–"],
    ["Properties", ({ application_properties: properties }) => pairsOf(properties) || "–"],
    ["Body", ({ body }) => bodyPreview(body), "body"],
  ];
  const rows = page.events.length
    ? h("div.scroll.browser-rows", {}, tableOf("Events", columns, page.events))
    : h("p.faint", {}, "There are no events here.");
  const more = () => load(page.next);
  const next = h("button", { type: "button", disabled: page.next === null, onclick: more }, "Next page");
  document.getElementById("events").replaceChildren(rows, h("div.row", {}, next));
}

function opener(event) {
  const number = event.sequence_number;
  const open = () => openMessage(event, "Event");
  return h("button.link", { type: "button", "aria-label": `Open event ${number}`, onclick: open }, String(number));
}

export function showEvents() {
  place("form").addEventListener("submit", (event) => {
    event.preventDefault();
    load(place("from").value === "" ? null : Number(place("from").value));
  });
}
