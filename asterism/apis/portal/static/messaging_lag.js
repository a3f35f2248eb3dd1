// The lag of consumer groups, by their checkpoints in a container of blobs.
import { count } from "./format.js";
import { blobContainers, read, subject } from "./messaging_api.js";
import { momentOf, tableOf } from "./messaging_parts.js";
import { showProblem } from "./trouble.js";
import { h, poll } from "./ui.js";

const REFRESH_SECONDS = 3;
const place = (id) => document.getElementById(`lag-${id}`);
// The container that a visitor has chosen for this hub last.
const CHOICE = `checkpoints:${subject.namespace}/${subject.path}`;
let chosen = null;
let refresh = null;

async function load() {
  if (chosen === null) return;
  try {
    const { groups } = await read("messaging/lag", chosen);
    showProblem(place("problem"), null);
    show(groups);
  } catch (error) {
    if (error.name !== "Unreachable") showProblem(place("problem"), error);
    throw error;
  }
}

function show(groups) {
  const found = groups.map((group) => groupSection(group));
  const empty = h("p.faint", {}, "The container has no checkpoints of this hub.");
  document.getElementById("lag").replaceChildren(...(found.length ? found : [empty]));
}

function groupSection(group) {
  const name = `Consumer group ${group.group}`;
  const columns = [
    ["Partition", ({ id }) => String(id)],
    ["Checkpoint", ({ sequence }) => (sequence === null ? "none yet" : count(sequence)), "number"],
    ["Lag", lagCell, "number"],
    ["Stored", ({ stored_ms }) => momentOf(stored_ms)],
    ["Owner", ({ owner }) => owner ?? "–"],
  ];
  return h(
    "section.lag-group",
    { "aria-label": name },
    h(
      "h3",
      {},
      `${group.group}: ${count(group.lag)} events behind `,
      h("span.faint.small", {}, group.host),
      group.exists ? null : h("span.tag.warn", {}, "deleted"),
    ),
    h("div.scroll", {}, tableOf(name, columns, group.partitions)),
  );
}

function lagCell({ lag, has_missed: hasMissed }) {
  return hasMissed
    ? h("span", {}, count(lag), " ", h("span.tag.bad", {}, "events missed: removed before they were read"))
    : count(lag);
}

async function suggest() {
  const names = (await blobContainers()).filter(({ account }) => account === place("account").value);
  place("containers").replaceChildren(...names.map(({ name }) => h("option", { value: name })));
}

function choose(account, container) {
  chosen = { account, container };
  if (refresh === null) refresh = poll(load, REFRESH_SECONDS);
  else refresh();
}

export function showLag() {
  const earlier = JSON.parse(localStorage.getItem(CHOICE) ?? "null");
  if (earlier !== null) {
    place("account").value = earlier.account;
    place("container").value = earlier.container;
    choose(earlier.account, earlier.container);
  }
  place("form").addEventListener("submit", (event) => {
    event.preventDefault();
    const choice = { account: place("account").value.trim(), container: place("container").value.trim() };
    localStorage.setItem(CHOICE, JSON.stringify(choice));
    choose(choice.account, choice.container);
  });
  suggest().catch(() => {});
}
