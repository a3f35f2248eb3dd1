// The query panel: editor, parameters, history, a running query that can be canceled, and its results.
import { createEditor } from "./editor.js";
import { count } from "./format.js";
import { JsonProblem } from "./json_text.js";
import { completeQuery, learnProperties } from "./query_complete.js";
import { csvOf, download, jsonOf } from "./query_export.js";
import { queryHistory } from "./query_history.js";
import { jsonView, planView, tableOf, treeView } from "./query_results.js";
import { addPage, browserOffset, parametersText, runPage } from "./query_run.js";
import { sentenceOf } from "./trouble.js";
import { collection, h } from "./ui.js";

const FIRST_QUERY = "SELECT * FROM c";

// `onOpen` gets { id, key } of a row; `onGone` is called when the container does not exist.
export function queryPanel({ onOpen, onGone }) {
  const about = collection();
  const part = (name) => document.getElementById(name);
  const kept = queryHistory(localStorage, `${about.account}/${about.database}/${about.name}`);
  const problem = part("query-problem");
  const editor = createEditor(part("query-editor"), {
    language: "sql",
    label: "Query",
    value: FIRST_QUERY,
    complete: completeQuery,
    onRun: run,
  });
  const parameters = createEditor(part("parameters-editor"), {
    language: "json",
    label: "Parameters as JSON",
    onRun: run,
  });
  // The query whose results are shown, and its pages so far.
  let settings = null;
  let results = null;
  let running = null;

  function readSettings() {
    const query = editor.getValue();
    const written = parameters.getValue();
    try {
      return { query, written, parameters: parametersText(written), pageSize: Number(part("page-size").value) };
    } catch (error) {
      if (!(error instanceof JsonProblem)) throw error;
      part("parameters-section").open = true;
      parameters.setErrors([error]);
      showProblem(`The parameters are not JSON yet: ${error.message}`);
      return null;
    }
  }

  async function run() {
    if (running) return;
    const wanted = readSettings();
    if (wanted === null) return;
    settings = wanted;
    results = null;
    kept.add(settings.query, settings.written);
    showHistory();
    await load();
  }

  async function load() {
    problem.hidden = true;
    running = new AbortController();
    showRunning(true);
    const started = performance.now();
    try {
      const page = await runPage(about, settings, results?.continuation ?? null, running.signal);
      results = addPage(results, page);
      learnProperties(page.rows);
      editor.setErrors([]);
      showResults(performance.now() - started);
    } catch (error) {
      explain(error);
    } finally {
      running = null;
      showRunning(false);
    }
  }

  function explain(error) {
    part("results-section").hidden = results === null;
    if (error.name === "AbortError") {
      showProblem("Canceled. The server has stopped the query as well.");
      return;
    }
    // A fault of this page is no answer to the query.
    if (error.name !== "ApiError" && error.name !== "Unreachable") throw error;
    if (error.status === 404 && error.message.startsWith("There is no container")) {
      onGone();
      return;
    }
    const { query_error: place } = error.reply ?? {};
    if (place) {
      const [from, to] = [place.start, place.end].map((offset) => browserOffset(settings.query, offset));
      editor.setErrors([{ from, to: Math.max(to, from + 1), message: error.message }]);
      editor.moveTo(from);
    }
    showProblem(sentenceOf(error));
  }

  function showProblem(message) {
    problem.textContent = message;
    problem.hidden = false;
  }

  function showRunning(is) {
    part("run").disabled = is;
    part("cancel").hidden = !is;
    part("next-page").disabled = is;
    if (is && results === null) part("results-section").hidden = true;
  }

  function showResults(milliseconds) {
    const { rows, continuation, charge, pages, explanation } = results;
    part("results-section").hidden = false;
    part("next-page").hidden = continuation === null;
    part("results-state").textContent = [
      `${count(rows.length)} result${rows.length === 1 ? "" : "s"}${continuation === null ? "" : " so far"}`,
      `${count(charge)} RU`,
      `${explanation.partitions.length} of ${explanation.of_partitions} partitions`,
      `${count(explanation.items_loaded)} items loaded`,
      `${Math.round(milliseconds)} ms${pages > 1 ? ` (page ${pages})` : ""}`,
    ].join(" · ");
    showView();
  }

  // Draw the view whose tab is chosen, and empty the others: each may be as large as the results.
  function showView() {
    if (results === null) return;
    const { rows } = results;
    const drawn = {
      table: () =>
        tableOf(rows, { paths: about.partitionKey.paths, onOpen, hasSystem: part("system-columns").checked }),
      json: () => jsonView(rows),
      tree: () => treeView(rows),
      plan: () => [planView(results)],
    };
    for (const [view, draw] of Object.entries(drawn)) {
      const isChosen = part(`${view}-tab`).getAttribute("aria-selected") === "true";
      part(`${view}-view`).replaceChildren(...(isChosen ? draw() : []));
    }
  }

  function showHistory() {
    const entries = kept.entries();
    part("history-state").textContent = entries.length
      ? "Kept in this browser."
      : "Queries that you run are kept here, in this browser.";
    part("clear-history").hidden = entries.length === 0;
    part("history").replaceChildren(
      ...entries.map((entry) =>
        h(
          "li",
          {},
          h(
            "button.choice",
            { type: "button", onclick: () => show(entry.query, entry.parameters) },
            h("span.mono", {}, entry.query),
          ),
        ),
      ),
    );
  }

  function show(query, written = "") {
    editor.setValue(query);
    parameters.setValue(written ?? "");
    part("parameters-section").open = Boolean(written);
    editor.focus();
  }

  part("run").addEventListener("click", run);
  part("cancel").addEventListener("click", () => running?.abort());
  part("query").addEventListener("keydown", (event) => {
    // In the editor Escape closes its own lists and panels first.
    if (event.key === "Escape" && !event.defaultPrevented) running?.abort();
  });
  part("next-page").addEventListener("click", () => running ?? load());
  part("download-csv").addEventListener("click", () => download(csvOf(results.rows), `${about.name}.csv`, "text/csv"));
  part("download-json").addEventListener("click", () =>
    download(jsonOf(results.rows), `${about.name}.json`, "application/json"),
  );
  part("system-columns").addEventListener("change", showView);
  // The tabs choose each other, see page.js; this only follows.
  const watch = new MutationObserver(showView);
  watch.observe(part("table-tab").parentElement, { attributeFilter: ["aria-selected"], subtree: true });
  part("clear-history").addEventListener("click", () => {
    kept.clear();
    showHistory();
  });
  const last = kept.entries()[0];
  if (last) {
    editor.setValue(last.query);
    parameters.setValue(last.parameters ?? "");
  }
  showHistory();
  return { show };
}
