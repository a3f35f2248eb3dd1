// A message or an event in full: body, properties, annotations, header.
import { count } from "./format.js";
import { momentOf, valueText } from "./messaging_parts.js";
import { h } from "./ui.js";

const PREVIEW_CHARACTERS = 160;

export function bodyPreview(body) {
  if (body.kind === "empty") return "(empty)";
  const text = body.kind === "hex" ? `0x${body.text}` : body.text;
  return text.length > PREVIEW_CHARACTERS || body.is_cut ? `${text.slice(0, PREVIEW_CHARACTERS)} …` : text;
}

// JSON with an indentation for the eyes. Numbers of more digits than a double has stay as they were sent.
function bodyText(body) {
  if (body.kind !== "json" || body.is_cut || /\d{16}/.test(body.text)) return body.text;
  return JSON.stringify(JSON.parse(body.text), null, 2);
}

const KINDS = { json: "JSON", text: "text", hex: "bytes, in hexadecimal digits", empty: "empty" };

function facts(heading, values) {
  const entries = Object.entries(values).filter(([, value]) => value !== null && value !== undefined);
  if (!entries.length) return [];
  return [
    h("h3", {}, heading),
    h("dl.facts", {}, ...entries.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, valueText(value))])),
  ];
}

function systemFacts(message) {
  return {
    "sequence number": message.sequence_number,
    partition: message.partition,
    "partition key": message.partition_key,
    state: message.state,
    enqueued: momentOf(message.enqueued_ms),
    "not before": message.scheduled_ms && momentOf(message.scheduled_ms),
    expires: message.expires_ms && momentOf(message.expires_ms),
    "locked until": message.locked_until_ms && momentOf(message.locked_until_ms),
    "failed deliveries": message.delivery_count,
    session: message.session_id,
    "number before it was forwarded": message.enqueued_sequence_number,
    "dead letter of": message.dead_letter?.source,
    reason: message.dead_letter?.reason,
    description: message.dead_letter?.description,
    size: `${count(message.bytes)} bytes`,
  };
}

export function openMessage(message, noun) {
  const { body } = message;
  const close = () => dialog.close();
  const dialog = h(
    "dialog.message",
    { "aria-labelledby": "message-title" },
    h("h2", { id: "message-title" }, `${noun} ${message.sequence_number}`),
    message.problem === null ? null : h("p.problem", { role: "alert" }, `It cannot be decoded: ${message.problem}`),
    h("h3", {}, `Body: ${KINDS[body.kind]}, ${count(body.bytes)} bytes${body.is_cut ? ", cut" : ""}`),
    h("pre", { tabindex: 0, "aria-label": "Body" }, bodyText(body)),
    ...facts("Application properties", message.application_properties),
    ...facts("Properties", message.properties),
    ...facts("As the server keeps it", systemFacts(message)),
    ...facts("Annotations", message.annotations),
    ...facts("Header", message.header),
    h("div.row.end", {}, h("button.primary", { type: "button", onclick: close }, "Close")),
  );
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}
