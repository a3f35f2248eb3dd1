// The page of a graph: a traversal, its results drawn, as tables and as JSON, and its profile.
import { admin } from "./api.js";
import { createEditor } from "./editor.js";
import { count } from "./format.js";
import { literal, newGraph } from "./graph_model.js";
import { neighborsOf, showElement } from "./graph_element.js";
import { profileView } from "./graph_profile.js";
import { profileIn, runTraversal, withProfile } from "./graph_run.js";
import { cutNote, elementTables } from "./graph_tables.js";
import { graphView } from "./graph_view.js";
import { queryHistory } from "./query_history.js";
import { jsonView } from "./query_results.js";
import { sentenceOf, showGone } from "./trouble.js";
import { collection, h, setText, svg, toast } from "./ui.js";

const FIRST = "g.V().limit(100)";
// More would be a text beyond the server's limit of steps and bytes.
const BETWEEN_MAX = 200;
const about = collection();
const part = (name) => document.getElementById(name);
const keyProperty = part("graph").dataset.keyProperty;
const kept = queryHistory(localStorage, `gremlin:${about.account}/${about.database}/${about.name}`);
const editor = createEditor(part("traversal-editor"), {
  language: "javascript",
  label: "Traversal",
  value: FIRST,
  onRun: () => run(),
});
const view = graphView(part("drawing"), { onChoose: choose, onState: showDrawingState });

let model = newGraph(keyProperty);
let last = null;
let profile = null;
let partitions = [];
let running = null;

const EXAMPLES = [
  ["A hundred vertices", "g.V().limit(100)"],
  [
    "Vertices and their outgoing neighbors",
    "g.V().limit(25).outE().limit(200).as('edge').inV().as('vertex').select('edge', 'vertex')",
  ],
  ["One vertex, by partition key and id", "g.V(['key', 'id'])"],
  ["Paths of two steps", "g.V().limit(10).outE().inV().outE().inV().path().limit(100)"],
  ["Vertices by label", "g.V().groupCount().by(label)"],
];

async function run() {
  const text = editor.getValue();
  kept.add(text, "");
  showHistory();
  await ask(text, (reply) => {
    model = newGraph(keyProperty);
    profile = null;
    showReply(reply);
  });
}

async function runWithProfile() {
  const text = editor.getValue();
  kept.add(text, "");
  showHistory();
  await ask(withProfile(text), async (reply) => {
    model = newGraph(keyProperty);
    const known = await admin(about.account, "partitions", { ...about.names, details: "false" });
    partitions = known.partitions.map((partition) => partition.id);
    showReply(reply, "profile");
  });
}

// Add the result of a further traversal to what is drawn.
function add(text) {
  return ask(text, (reply) => {
    const before = model.graph.vertices.length + model.graph.edges.length;
    model.add(reply.results);
    const added = model.graph.vertices.length + model.graph.edges.length - before;
    view.show(model.graph, { isMore: true });
    showAround();
    toast(`${count(added)} new element${added === 1 ? "" : "s"} · ${count(reply.charge)} RU`);
  });
}

async function ask(text, use) {
  if (running) return;
  const problem = part("traversal-problem");
  problem.hidden = true;
  running = new AbortController();
  showRunning(true);
  try {
    await use(await runTraversal(about, text, { signal: running.signal }));
  } catch (error) {
    if (error.name === "AbortError") problem.textContent = "Canceled. The server stops the traversal as well.";
    // A fault of this page is no answer to the traversal.
    else if (error.name !== "ApiError" && error.name !== "Unreachable") throw error;
    else if (error.status === 404 && error.message.startsWith("There is no container"))
      return showGone(part("graph"), "container");
    else problem.textContent = sentenceOf(error);
    problem.hidden = false;
  } finally {
    running = null;
    showRunning(false);
  }
}

function showRunning(is) {
  part("run").disabled = is;
  part("profile-run").disabled = is;
  part("cancel").hidden = !is;
}

function showReply(reply, wanted = null) {
  last = reply;
  profile = profileIn(reply.results);
  if (!profile) model.add(reply.results);
  const { vertices, edges } = model.graph;
  part("results-section").hidden = false;
  setText(
    part("results-state"),
    [
      `${count(reply.results.length)} result${reply.results.length === 1 ? "" : "s"}`,
      `${count(reply.charge)} RU`,
      `${count(reply.milliseconds)} ms`,
    ].join(" · "),
  );
  showElement(part("element"), null, {});
  // Numbers and maps without elements have nothing to draw.
  const found = profile || wanted === "profile" ? "profile" : vertices.length || edges.length ? "drawing" : "json";
  chooseTab(found);
  view.show(model.graph);
  showAround();
}

// Everything beside the drawing itself.
function showAround() {
  showLegend();
  showViews();
  part("edges-between").hidden = model.graph.vertices.length < 2;
  showDrawingState();
}

function showDrawingState() {
  const { vertices, edges, left } = model.graph;
  const vertexCount = `${count(vertices.length)} ${vertices.length === 1 ? "vertex" : "vertices"}`;
  const counts = `${vertexCount}, ${count(edges.length)} edge${edges.length === 1 ? "" : "s"}`;
  setText(
    part("drawing-state"),
    vertices.length
      ? `${counts}${left ? `; ${cutNote(left).textContent}` : ""}`
      : "The result has no vertices or edges to draw.",
  );
}

function showLegend() {
  const groups = view.color(part("color-by").value);
  const dot = (series) =>
    svg(
      "svg",
      { class: `series-${series}`, viewBox: "0 0 12 12", "aria-hidden": "true" },
      svg("circle", { cx: 6, cy: 6, r: 5 }),
    );
  const shown = groups.slice(0, 7);
  const rest = groups.slice(7);
  const others = rest.length
    ? [
        {
          name: rest.length === 1 ? rest[0].name : `${rest.length} others`,
          count: rest.reduce((all, { count: more }) => all + more, 0),
          series: 8,
        },
      ]
    : [];
  part("legend").replaceChildren(
    ...[...shown, ...others].map((group) => h("li", {}, dot(group.series), `${group.name} (${count(group.count)})`)),
  );
}

// Draw the views whose tabs are chosen, and empty the others: each may be as large as the results.
function showViews() {
  if (last === null) return;
  const drawn = {
    table: () => elementTables(model.graph, chooseFromTable),
    json: () => jsonView(last.rows),
    profile: () =>
      profile
        ? profileView(profile, partitions)
        : [h("p.faint", {}, "“Run with profile” shows here which partitions each step asks.")],
  };
  for (const [name, draw] of Object.entries(drawn)) {
    const isChosen = part(`${name}-tab`).getAttribute("aria-selected") === "true";
    part(`${name}-view`).replaceChildren(...(isChosen ? draw() : []));
  }
}

function chooseTab(name) {
  const tab = part(`${name}-tab`);
  tab.disabled = false;
  tab.click();
}

function choose(found) {
  showElement(part("element"), found, { keyProperty, run: add });
}

function chooseFromTable(found) {
  chooseTab("drawing");
  view.choose(found);
  part("element").querySelector("button")?.focus();
}

// One traversal for the edges whose both ends are drawn: it names partition key and id of each vertex.
function findEdgesBetween() {
  const shown = model.graph.vertices.slice(0, BETWEEN_MAX);
  if (shown.length < model.graph.vertices.length) toast(`Edges of the first ${BETWEEN_MAX} vertices are looked for.`);
  const places = shown.map((vertex) =>
    vertex.key === undefined || vertex.key === null
      ? literal(vertex.id)
      : `[${literal(vertex.key)}, ${literal(vertex.id)}]`,
  );
  const ids = shown.map((vertex) => literal(vertex.id));
  return add(`g.V(${places.join(", ")}).outE().where(inV().hasId(${ids.join(", ")}))`);
}

function showChoices(list, entries) {
  list.replaceChildren(
    ...entries.map(([label, text]) =>
      h(
        "li",
        {},
        h(
          "button.choice",
          { type: "button", onclick: () => (editor.setValue(text), editor.focus()) },
          label ? h("span", {}, label) : "",
          h("span.mono", {}, text),
        ),
      ),
    ),
  );
}

function showHistory() {
  const entries = kept.entries();
  part("history-state").textContent = entries.length
    ? "Kept in this browser."
    : "Traversals that you run are kept here, in this browser.";
  part("clear-history").hidden = entries.length === 0;
  showChoices(
    part("history"),
    entries.map((entry) => ["", entry.query]),
  );
}

part("run").addEventListener("click", run);
part("profile-run").addEventListener("click", runWithProfile);
part("cancel").addEventListener("click", () => running?.abort());
part("other-graph").addEventListener("change", (event) => location.assign(event.target.value));
part("color-by").addEventListener("change", showLegend);
part("zoom-in").addEventListener("click", view.zoomIn);
part("zoom-out").addEventListener("click", view.zoomOut);
part("zoom-fit").addEventListener("click", view.showAll);
part("edges-between").addEventListener("click", findEdgesBetween);
part("clear-history").addEventListener("click", () => {
  kept.clear();
  showHistory();
});
// The tabs choose each other, see page.js; this only follows.
new MutationObserver(showViews).observe(part("drawing-tab").parentElement, {
  attributeFilter: ["aria-selected"],
  subtree: true,
});
showChoices(part("examples"), EXAMPLES);
showHistory();
const before = kept.entries()[0];
if (before) editor.setValue(before.query);
const address = new URLSearchParams(location.search);
if (address.has("traversal")) editor.setValue(address.get("traversal"));
if (address.has("vertex")) editor.setValue(neighborsOf({ id: address.get("vertex") }, "out"));
