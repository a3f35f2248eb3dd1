// The change feed as it grows: reads every second, and shows what changed.
import { describeChange } from "./feed_change.js";
import { createList } from "./feed_list.js";
import { createRate, drawRate, recentRate } from "./feed_rate.js";
import { ALL_VERSIONS, LATEST, createReader } from "./feed_reader.js";
import { readContainer } from "./settings_container.js";
import { count } from "./format.js";
import { showGone, showProblem } from "./trouble.js";
import { collection, poll, setText } from "./ui.js";

const POLL_SECONDS = 1;
// A reader that is far behind catches up page by page, but the page of the visitor stays responsive.
const PAGES_AT_ONCE_MAX = 10;
const subject = collection();
const place = (id) => document.getElementById(`feed-${id}`);
const list = createList(place("rows"));
let rate = createRate();
let reader = null;
let seen = 0;
let charge = 0;
let isPaused = false;
let isGone = false;

const nowSeconds = () => Date.now() / 1000;

function restart() {
  const mode = place("mode").value === "all" ? ALL_VERSIONS : LATEST;
  reader = createReader(subject, { mode, fromBeginning: place("start").value === "beginning" });
  list.clear();
  rate = createRate();
  seen = 0;
  charge = 0;
  showProblem(place("problem"), null);
  setPaused(false);
  show();
}

async function load() {
  if (isPaused || isGone) return show();
  const current = reader;
  try {
    for (let page = 0; page < PAGES_AT_ONCE_MAX; page += 1) {
      const { texts, charge: spent, isCaughtUp, accept } = await current.read();
      // The visitor may have started again, or paused, while the page was on its way: then its changes wait in the feed.
      if (current !== reader) return;
      charge += spent;
      if (isPaused && texts.length) return;
      accept();
      list.add(texts.map((text) => describeChange(text, subject.partitionKey.paths)));
      seen += texts.length;
      rate.add(texts.length, nowSeconds());
      if (isCaughtUp || isPaused) break;
    }
    showProblem(place("problem"), null);
  } catch (error) {
    if (current !== reader) return;
    explain(error);
    // The next attempt comes later then.
    if (!isGone) throw error;
  } finally {
    show();
  }
}

function explain(error) {
  if (error.status === 404) {
    isGone = true;
    showGone(place("content"), subject.kind);
    return;
  }
  // The banner says that the server does not answer.
  if (error.name !== "Unreachable") showProblem(place("problem"), error);
  // Another attempt would be refused in the same way.
  if (error.status === 400 || error.status === 410) setPaused(true);
}

function setPaused(paused) {
  isPaused = paused;
  place("pause").textContent = paused ? "Resume" : "Pause";
  setText(place("state"), paused ? "Paused: changes wait in the feed until you resume." : "Following the feed.");
}

function show() {
  if (isGone) return;
  const series = rate.series(nowSeconds());
  const kept = list.size < seen ? `, the latest ${count(list.size)} kept` : "";
  const found = place("filter").value.trim() === "" ? "" : `, ${count(list.shown)} with the text`;
  place("figures").textContent = [
    `${count(seen)} change${seen === 1 ? "" : "s"} seen${kept}${found}`,
    `${count(recentRate(series))} per second`,
    `${count(charge)} RU for reading`,
  ].join(" · ");
  place("empty").hidden = list.size > 0;
  drawRate(place("rate"), series);
}

async function offerModes() {
  const { definition } = await readContainer(subject);
  place("mode-field").hidden = !(definition.changeFeedPolicy?.retentionDuration > 0);
}

for (const id of ["start", "mode"]) place(id).addEventListener("change", restart);
place("pause").addEventListener("click", () => {
  setPaused(!isPaused);
  refresh();
});
place("clear").addEventListener("click", () => {
  list.clear();
  show();
});
place("filter").addEventListener("input", () => {
  list.setFilter(place("filter").value);
  show();
});
restart();
const refresh = poll(load, POLL_SECONDS);
offerModes().catch(() => {});
