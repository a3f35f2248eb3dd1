// Entities of a table: a key or a filter, page by page, and the dialog of an entity.
import { admin } from "./api.js";
import { readPage } from "./entities_api.js";
import { openEntity } from "./entities_dialog.js";
import { entitiesTable } from "./entities_table.js";
import { filterOf } from "./entity_values.js";
import { count } from "./format.js";
import { sentenceOf, showGone, showProblem } from "./trouble.js";
import { collection, h } from "./ui.js";

const subject = collection();
const place = (id) => document.getElementById(`entities-${id}`);
// Tokens of the pages before the one that is shown, the first page's being {}.
let earlier = [];
let token = {};
let next = null;
let running = null;
let isGone = false;

async function show() {
  running?.abort();
  const stop = (running = new AbortController());
  const key = place("with-key").checked ? place("key").value : null;
  const filter = filterOf(key, place("filter").value);
  place("cancel").disabled = false;
  try {
    const page = await readPage(subject, { filter, token, signal: stop.signal });
    next = page.next;
    showProblem(place("problem"), null);
    place("rows").replaceChildren(
      page.entities.length ? entitiesTable(page.entities, open) : h("p.faint", {}, emptyText(filter)),
    );
    place("count").textContent = countText(page.entities.length);
  } catch (error) {
    if (stop !== running) return;
    explain(error, filter);
  } finally {
    if (stop === running && !isGone) {
      running = null;
      place("cancel").disabled = true;
      place("next").disabled = next === null;
      place("previous").disabled = earlier.length === 0;
    }
  }
}

function countText(number) {
  const entities = `${count(number)} ${number === 1 ? "entity" : "entities"}`;
  return `Page ${earlier.length + 1}: ${entities}${next === null ? ", the last page" : ""}.`;
}

function emptyText(filter) {
  // The service may give a page without entities before the end: the search has a limit of time.
  if (next !== null) return "No entity found so far. The next page searches on.";
  return filter === null ? "This table has no entities yet." : "No entity matches.";
}

function explain(error, filter) {
  if (error.name === "AbortError") {
    place("count").textContent = "Canceled.";
  } else if (error.code === "TableNotFound") {
    isGone = true;
    showGone(place("content"), subject.kind);
  } else {
    const sent = error.status === 400 && filter !== null ? ` The filter was: ${filter}` : "";
    showProblem(place("problem"), new Error(sentenceOf(error) + sent));
    place("rows").replaceChildren();
    place("count").textContent = "";
    next = null;
  }
}

function open(entity) {
  openEntity(subject, entity, show);
}

function showFirst() {
  earlier = [];
  token = {};
  return show();
}

async function suggestKeys() {
  const { largest } = await admin(subject.account, "partitions", { ...subject.names, top: 50 });
  const keys = largest.flatMap((logical) => logical.partition_key ?? []);
  place("keys").replaceChildren(...keys.map((key) => h("option", { value: String(key) })));
}

// `?key=` of a link from another page: a JSON list of one key, or the key itself.
function keyOfAddress() {
  const given = new URLSearchParams(location.search).get("key");
  if (given === null) return;
  place("with-key").checked = true;
  try {
    const parsed = JSON.parse(given);
    place("key").value = String(Array.isArray(parsed) ? parsed[0] : parsed);
  } catch {
    place("key").value = given;
  }
}

place("form").addEventListener("submit", (event) => {
  event.preventDefault();
  showFirst();
});
place("key").addEventListener("input", () => (place("with-key").checked = true));
place("cancel").addEventListener("click", () => running?.abort());
place("next").addEventListener("click", () => {
  earlier.push(token);
  token = next;
  show();
});
place("previous").addEventListener("click", () => {
  token = earlier.pop();
  show();
});
place("new")?.addEventListener("click", () => open({ partitionKey: place("key").value, rowKey: "", properties: [] }));
keyOfAddress();
showFirst();
suggestKeys().catch(() => {});
