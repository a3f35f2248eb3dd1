// The messages of a queue or subscription, or its dead letters, page by page; looking changes nothing.
import { count } from "./format.js";
import { read, subject } from "./messaging_api.js";
import { bodyPreview, openMessage } from "./messaging_message.js";
import { momentOf, pairsOf, tableOf } from "./messaging_parts.js";
import { showProblem } from "./trouble.js";
import { h, newest } from "./ui.js";

const PAGE_MESSAGES = 20;
const REASONS = ["DeadLetterReason", "DeadLetterErrorDescription"];

// `actions` are buttons that stand below the table. Returns { refresh, selected }.
export function messageBrowser(place, { queue, label, actions = [], canSelect = false, onSelect = () => {} }) {
  const isDead = queue !== "main";
  const id = `browse-${queue}`;
  const start = h("input", { id: `${id}-from`, type: "number", min: "0", step: "1", placeholder: "the first" });
  const session = h("input", { id: `${id}-session`, autocomplete: "off", spellcheck: "false" });
  const problem = h("p.problem", { role: "alert", hidden: true });
  const rows = h("div.scroll.browser-rows", { tabindex: 0, role: "region", "aria-label": `Page of ${label}` });
  const status = h("span.faint.small", { role: "status" });
  const first = h("button", { type: "button", disabled: true, onclick: () => show(null) }, "First page");
  const next = h("button", { type: "button", disabled: true, onclick: () => show(following) }, "Next page");
  const chosen = new Set();
  const begin = newest();
  let following = null;
  let shownFrom = null;

  place.replaceChildren(
    h(
      "form.row.browser-form",
      { onsubmit: submitted },
      h("div", {}, h("label", { for: start.id }, "From number"), start),
      subject.hasSessions ? h("div", {}, h("label", { for: session.id }, "Session"), session) : null,
      h("button", { type: "submit" }, "Show"),
    ),
    problem,
    rows,
    h("div.row", {}, first, next, status),
    h("div.row.browser-actions", {}, ...actions),
  );

  function submitted(event) {
    event.preventDefault();
    show(start.value === "" ? null : Number(start.value));
  }

  async function show(from) {
    const isNewest = begin();
    const query = { queue, from: from ?? 0, count: PAGE_MESSAGES };
    if (session.value !== "") query.session = session.value;
    try {
      const page = await read("messaging/messages", query);
      if (!isNewest()) return;
      shownFrom = from;
      following = page.next;
      chosen.clear();
      onSelect(0);
      showProblem(problem, null);
      rows.replaceChildren(page.messages.length ? table(page.messages) : h("p.faint", {}, `There are no ${label}.`));
      status.textContent = `${count(page.messages.length)} shown${page.next === null ? ", up to the last" : ""}.`;
      next.disabled = page.next === null;
      first.disabled = from === null;
    } catch (error) {
      if (isNewest()) showProblem(problem, error);
    }
  }

  function table(messages) {
    const columns = [
      ["Number", (message) => opener(message), "number"],
      ["Enqueued", ({ enqueued_ms }) => momentOf(enqueued_ms)],
      ...(isDead ? deadColumns : mainColumns),
      ["Properties", (message) => pairsOf(shownProperties(message)) || "–"],
      ["Body", ({ body }) => bodyPreview(body), "body"],
    ];
    if (canSelect) columns.unshift(["Select", (message) => selector(message)]);
    return tableOf(label, columns, messages);
  }

  function selector({ sequence_number: number }) {
    const change = (event) => {
      if (event.target.checked) chosen.add(number);
      else chosen.delete(number);
      onSelect(chosen.size);
    };
    return h("input", { type: "checkbox", "aria-label": `Select ${number}`, onchange: change });
  }

  return { refresh: () => show(shownFrom), selected: () => [...chosen] };
}

const mainColumns = [
  ["State", stateCell],
  ["Failed deliveries", ({ delivery_count }) => String(delivery_count), "number"],
  ...(subject.hasSessions ? [["Session", ({ session_id }) => session_id ?? "–"]] : []),
  ["Message id", ({ properties }) => String(properties.message_id ?? "–")],
  ["Subject", ({ properties }) => String(properties.subject ?? "–")],
];

const deadColumns = [
  ["Reason", ({ dead_letter: { reason } }) => String(reason ?? "–")],
  ["Description", ({ dead_letter: { description } }) => String(description ?? "–")],
  ["Message id", ({ properties }) => String(properties.message_id ?? "–")],
];

function stateCell(message) {
  const tag = message.state === "active" ? "span.tag" : "span.tag.warn";
  return h("span", {}, h(tag, {}, message.state), message.locked_until_ms === null ? null : h("span.tag", {}, "locked"));
}

function shownProperties({ application_properties: properties }) {
  return Object.fromEntries(Object.entries(properties).filter(([name]) => !REASONS.includes(name)));
}

function opener(message) {
  const number = message.sequence_number;
  const open = () => openMessage(message, "Message");
  return h("button.link", { type: "button", "aria-label": `Open message ${number}`, onclick: open }, String(number));
}
