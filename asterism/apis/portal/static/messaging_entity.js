// The page of a queue, a topic or a subscription.
import { count } from "./format.js";
import { read, subject } from "./messaging_api.js";
import { messageBrowser } from "./messaging_browser.js";
import { showFragments } from "./messaging_fragments.js";
import { tableOf, valueText } from "./messaging_parts.js";
import { purge, resubmit } from "./messaging_repair.js";
import { sendForm } from "./messaging_send.js";
import { showGone } from "./trouble.js";
import { h, mayChange, poll, setText } from "./ui.js";

const REFRESH_SECONDS = 2;
const COUNTS = [
  ["active", "Active"],
  ["scheduled", "Scheduled"],
  ["deferred", "Deferred"],
  ["dead_letters", "Dead letters"],
  ["transfer_dead_letters", "Not forwarded"],
];
const place = (id) => document.getElementById(id);
let counts = null;

async function load() {
  let entity;
  try {
    entity = await read("messaging/entity");
  } catch (error) {
    if (error.status !== 404) throw error;
    showGone(place("content").firstElementChild, subject.kind);
    for (const rest of place("content").querySelectorAll(".tabs, [role=tabpanel]")) rest.remove();
    return Infinity;
  }
  counts = entity.counts;
  setText(place("status"), entity.status);
  place("counts").replaceChildren(...countParts(entity));
  showFragments(place("fragments"), entity.fragments, { canClose: subject.kind !== "subscription", afterwards: refresh });
  showSettings(entity);
  showSubscriptions(entity);
  showRules(entity);
}

function countParts(entity) {
  // The messages of a topic are in its subscriptions, but for those that are not due yet.
  const shown = subject.kind === "topic" ? [["scheduled", "Scheduled"]] : COUNTS;
  return shown.map(([name, label]) => {
    const value = entity.counts?.[name] ?? null;
    const isBad = name.endsWith("dead_letters") && value > 0;
    return h(isBad ? "div.bad" : "div", {}, h("dt", {}, label), h("dd", {}, count(value)));
  });
}

function showSettings({ settings }) {
  const entries = Object.entries(settings).filter(([, value]) => value !== null);
  place("settings").replaceChildren(
    ...entries.flatMap(([name, value]) => [h("dt", {}, name.replaceAll("_", " ")), h("dd", {}, valueText(value))]),
  );
}

function showSubscriptions({ subscriptions, subscriptions_total: total }) {
  const target = place("subscriptions");
  if (target === null) return;
  const columns = [
    ["Subscription", ({ name }) => h("a", { href: `${subject.page}/subscriptions/${encodeURIComponent(name)}` }, name)],
    ...COUNTS.slice(0, 4).map(([key, label]) => [label, (row) => count(row.counts?.[key] ?? null), "number"]),
    ["Rules", ({ rules }) => rules.join(", ")],
    ["Status", ({ status }) => status],
  ];
  const more = total > subscriptions.length ? h("p.faint", {}, `${count(total)} subscriptions; the first are shown.`) : "";
  const none = h("p.faint", {}, "The topic has no subscriptions yet: messages sent to it are dropped.");
  target.replaceChildren(total ? h("div.scroll", {}, tableOf("Subscriptions", columns, subscriptions)) : none, more);
}

function showRules({ rules }) {
  const columns = [
    ["Rule", ({ name }) => name],
    ["Filter", ({ filter }) => h("code", {}, filter)],
    ["Action", ({ action }) => (action === null ? "–" : h("code", {}, action))],
  ];
  place("rules")?.replaceChildren(h("div.scroll", {}, tableOf("Rules", columns, rules)));
}

// --- messages and dead letters ----------------------------------------------------------------------------------------

function button(kind, label, onclick) {
  return h(`button${kind}`, { type: "button", onclick }, label);
}

function mainBrowser() {
  const remove = button(".danger", "Remove all messages", async () => {
    const total = (counts?.active ?? 0) + (counts?.scheduled ?? 0) + (counts?.deferred ?? 0);
    await purge({ queue: "main", total, noun: "messages" });
    browser.refresh();
    refresh();
  });
  const options = { queue: "main", label: "messages", actions: mayChange() ? [remove] : [] };
  const browser = messageBrowser(place("browser-main"), options);
  return browser;
}

function deadBrowser() {
  const queue = "dead-letter";
  const deadLetters = () => counts?.dead_letters ?? 0;
  const run = (act) => async () => {
    await act();
    browser.refresh();
    refresh();
  };
  const selected = button("", "Send selected again", run(() => resubmit({ queue, numbers: browser.selected() })));
  selected.disabled = true;
  const all = button("", "Send all again", run(() => resubmit({ queue, total: deadLetters() })));
  const remove = button(
    ".danger",
    "Remove all dead letters",
    run(() => purge({ queue, total: deadLetters(), noun: "dead letters" })),
  );
  const browser = messageBrowser(place("browser-dead"), {
    queue,
    label: "dead letters",
    actions: mayChange() ? [selected, all, remove] : [],
    canSelect: mayChange(),
    onSelect: (number) => (selected.disabled = number === 0),
  });
  return browser;
}

const BROWSERS = { messages: mainBrowser, dead: deadBrowser };
const browsers = {};

// The page of a tab is read when it is opened, and again each time.
function opened(tab) {
  if (!(tab in BROWSERS)) return;
  browsers[tab] ??= BROWSERS[tab]();
  browsers[tab].refresh();
}

const refresh = poll(load, REFRESH_SECONDS);
sendForm(refresh);
for (const tab of document.querySelectorAll("[data-tab]")) tab.addEventListener("click", () => opened(tab.dataset.tab));
opened(document.querySelector("[data-tab][aria-selected=true]").dataset.tab);
