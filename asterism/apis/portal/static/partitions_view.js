// The partitions of a container or a table, live: fetches, and hands the figures to the drawings.
import { admin } from "./api.js";
import { eventText, mountLineage } from "./lineage.js";
import { mountSelection } from "./partitions_actions.js";
import { mountBars } from "./partitions_bars.js";
import { mountChart } from "./partitions_chart.js";
import { HeatScale, mountHeat } from "./partitions_heat.js";
import { mountLine } from "./partitions_line.js";
import { jobsOf, RateMeter, withDetails } from "./partitions_model.js";
import { mountFigures, mountKeyTables } from "./partitions_tables.js";
import { mountVerdict } from "./partitions_verdict.js";
import { sentenceOf, showGone } from "./trouble.js";
import { h, poll, toast } from "./ui.js";

// Seconds between two looks: while a job runs, while there is load, and while nothing happens.
const WHILE_JOBS = 0.7;
const WHILE_LOADED = 2;
const WHILE_IDLE = 5;
// Details are a look at every logical partition: it may take a small part of the time only.
const DETAILS_FACTOR = 20;
const DETAILS_SECONDS_MAX = 60;
// The server samples the usage every 10 seconds.
const USAGE_SECONDS = 5;
// A job that is neither under way nor in the history after this many looks did not complete.
const LOOKS_FOR_JOB = 8;
const KEYS_PER_PARTITION = 10;
const POINTS_MAX = 360;

export const WINDOWS = [
  { label: "5 minutes", seconds: 300, text: "in the last 5 minutes" },
  { label: "15 minutes", seconds: 900, text: "in the last 15 minutes" },
  { label: "1 hour", seconds: 3600, text: "in the last hour" },
  { label: "6 hours", seconds: 21600, text: "in the last 6 hours" },
];

export const [FIVE_MINUTES, FIFTEEN_MINUTES] = WINDOWS;

// Buttons of which one is pressed.
export function windowChoice(chosen, onChange) {
  const buttons = WINDOWS.map((span) => h("button.small", { type: "button", onclick: () => choose(span) }, span.label));
  const mark = (pressed) =>
    buttons.forEach((button, place) => button.setAttribute("aria-pressed", String(WINDOWS[place] === pressed)));
  function choose(span) {
    mark(span);
    onChange(span);
  }
  mark(chosen);
  return h("div.row.choice", { role: "group", "aria-label": "Time shown" }, ...buttons);
}

// Draw into `element`. `isCompact`: only verdict, line, bars and heat map, as the comparison shows them. `scale`: that
// of the heat map, which several maps can share. Returns { setWindow }.
export function mountPartitions(element, collection, options = {}) {
  const { isCompact = false, scale = new HeatScale(), isOperator = false, firstWindow = FIFTEEN_MINUTES } = options;
  const view = {
    answer: null, usage: null, history: [], jobs: [], nodes: [], isOnNodes: false, selected: null,
    meter: new RateMeter(), span: firstWindow,
  };
  const watch = new JobWatch();
  let span = firstWindow;
  let detailed = null;
  let nextDetailsAt = 0;
  let nextUsageAt = 0;
  let idleLooks = 0;
  const trouble = h("p.problem", { role: "alert", hidden: true });
  const drawings = mountSections(element, collection, { isCompact, scale, trouble, select, setWindow, begin });

  function show() {
    if (view.answer !== null) for (const update of drawings) update(view);
  }

  function select(id) {
    view.selected = id;
    show();
  }

  function begin(job) {
    if (job) watch.add(job);
    refresh();
  }

  function setWindow(chosen) {
    span = chosen;
    nextUsageAt = 0;
    refresh();
  }

  const ask = (name, more = {}) => admin(collection.account, name, { ...collection.names, ...more });

  async function loadPartitions(now) {
    const withAll = now >= nextDetailsAt;
    const fresh = await ask("partitions", { top: KEYS_PER_PARTITION, details: withAll });
    const version = view.answer?.map_version;
    if (withAll) {
      detailed = fresh;
      const took = performance.now() / 1000 - now;
      nextDetailsAt = now + Math.min(DETAILS_SECONDS_MAX, took * DETAILS_FACTOR);
    }
    const used = view.answer?.totals.ru_consumed;
    idleLooks = used === fresh.totals.ru_consumed && version === fresh.map_version ? idleLooks + 1 : 0;
    view.answer = withDetails(fresh, detailed);
    view.jobs = jobsOf(fresh.partitions);
    view.meter.read(fresh.partitions, now);
    view.isOnNodes = new Set(fresh.partitions.map((partition) => partition.node)).size > 1 || view.nodes.length > 1;
    view.selected = present(view.selected, fresh.partitions);
    if (version === fresh.map_version) return false;
    nextUsageAt = 0;
    if (version !== undefined) nextDetailsAt = 0;
    return true;
  }

  async function loadUsage(now) {
    if (now < nextUsageAt) return;
    const points = Math.max(30, Math.min(POINTS_MAX, element.clientWidth - 60));
    view.usage = await ask("usage", { seconds: span.seconds, points });
    view.span = span;
    nextUsageAt = now + USAGE_SECONDS;
  }

  async function load() {
    const now = performance.now() / 1000;
    try {
      const isNewMap = await loadPartitions(now);
      await loadUsage(now);
      if (!isCompact && (isNewMap || watch.isWaiting(view.jobs))) {
        view.history = (await ask("history")).history;
        if (isOperator && !view.nodes.length) view.nodes = await nodesOfFleet();
      }
    } catch (problem) {
      if (problem.status === 404) {
        showGone(element, collection.kind);
        return Infinity;
      }
      // The end of a session has its banner.
      if (problem.name === "ApiError" && problem.status !== 401) showTrouble(trouble, sentenceOf(problem));
      throw problem;
    }
    showTrouble(trouble, null);
    show();
    for (const ending of watch.endings(view.jobs, view.history)) toast(ending.text, { isProblem: ending.isProblem });
    if (view.jobs.length || watch.size) return WHILE_JOBS;
    return idleLooks > 2 ? WHILE_IDLE : WHILE_LOADED;
  }

  const refresh = poll(load, WHILE_LOADED);
  return { setWindow };
}

// Without the nodes, which an unreachable one may delay, everything but moving works.
async function nodesOfFleet() {
  try {
    return (await admin(document.body.dataset.account, "nodes")).nodes;
  } catch (problem) {
    if (problem.name !== "ApiError") throw problem;
    return [];
  }
}

function showTrouble(place, text) {
  place.textContent = text ?? "";
  place.hidden = text === null;
}

// The selected partition, or the first of those that came of it; null if neither is there.
function present(selected, partitions) {
  if (selected === null || partitions.some((partition) => partition.id === selected)) return selected;
  return partitions.find((partition) => partition.parents.includes(selected))?.id ?? null;
}

// The jobs that were seen under way, until they are in the history.
class JobWatch {
  #jobs = new Map();

  get size() {
    return this.#jobs.size;
  }

  add(job) {
    if (!this.#jobs.has(job.id)) this.#jobs.set(job.id, { job, looks: 0 });
  }

  // Whether a job is no longer under way, so that the history should tell how it ended.
  isWaiting(running) {
    const ids = new Set(running.map((job) => job.id));
    return [...this.#jobs.keys()].some((id) => !ids.has(id));
  }

  endings(running, history) {
    running.forEach((job) => this.add(job));
    const ids = new Set(running.map((job) => job.id));
    const ended = [];
    for (const [id, watched] of this.#jobs) {
      const event = history.find((entry) => String(entry.id) === id);
      if (event) ended.push({ id, text: `${eventText(event)}.`, isProblem: false });
      else if (!ids.has(id)) watched.looks += 1;
      if (watched.looks >= LOOKS_FOR_JOB) {
        const { kind, ranges } = watched.job;
        const text = `The ${kind} of partition ${ranges.join(" and ")} did not complete.`;
        ended.push({ id, text: `${text} The server's log has the reason.`, isProblem: true });
      }
    }
    ended.forEach(({ id }) => this.#jobs.delete(id));
    return ended;
  }
}

function mountSections(element, collection, { isCompact, scale, trouble, select, setWindow, begin }) {
  const card = (title, ...more) =>
    h("section.card", { "aria-label": title }, h("div.row.between", {}, h("h2", {}, title), ...more));
  const drawings = [];
  const add = (section, mount, ...more) => {
    const place = h("div");
    section.append(place);
    drawings.push(mount(place, ...more));
    return section;
  };
  const verdict = h("section.card.verdict", { "aria-label": "Verdict" });
  drawings.push(mountVerdict(verdict));
  const line = add(card("Partitions"), mountLine, { onSelect: select });
  add(line, mountSelection, collection, { onBegun: begin, onClose: () => select(null) });
  const bars = add(card("Stored bytes"), mountBars);
  const choice = isCompact ? [] : [windowChoice(FIFTEEN_MINUTES, setWindow)];
  const heat = add(card("Use of throughput", ...choice), mountHeat, { scale, hasGone: !isCompact });
  if (isCompact) {
    element.replaceChildren(trouble, verdict, line, bars, heat);
    return drawings;
  }
  const chart = add(card("RU/s over time"), mountChart);
  const keys = h("div.grid.keys-grid");
  drawings.push(mountKeyTables(keys, collection));
  const lineage = add(card("Splits, merges and moves"), mountLineage);
  const figures = h("div");
  drawings.push(mountFigures(figures));
  const load = h("div.grid.load-grid", {}, heat, chart);
  element.replaceChildren(trouble, verdict, line, bars, load, keys, lineage, figures);
  return drawings;
}
