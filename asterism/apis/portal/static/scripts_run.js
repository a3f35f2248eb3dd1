// Running what is stored: a stored procedure with a key and parameters, a function with arguments.
import { count } from "./format.js";
import { JsonProblem, parseJson, printJson } from "./json_text.js";
import { createKeyFields } from "./key_fields.js";
import { runProcedure, tryFunction } from "./scripts_api.js";
import { sentenceOf } from "./trouble.js";
import { h } from "./ui.js";

// { element, run }. `beforeRun` resolves to false if the run cannot begin, for example because saving failed.
export function createRunPanel(subject, kind, id, beforeRun) {
  const isProcedure = kind === "sprocs";
  const key = createKeyFields(isProcedure ? subject.partitionKey.paths : [], "run-key");
  const input = h("input", {
    id: "run-arguments",
    autocomplete: "off",
    spellcheck: "false",
    value: isProcedure ? "[]" : "",
  });
  const result = h("div", { "aria-live": "polite", id: "run-result" });
  const start = h("button.primary", { type: "submit" }, isProcedure ? "Run" : "Try");
  const cancel = h("button", { type: "button", disabled: true }, "Cancel");
  let running = null;

  async function run() {
    if (running !== null) return;
    const stop = (running = new AbortController());
    start.disabled = true;
    cancel.disabled = false;
    result.replaceChildren(h("p.faint", {}, "Running …"));
    try {
      if (!(await beforeRun())) return result.replaceChildren();
      showResult(
        result,
        isProcedure
          ? await call(stop.signal)
          : await tryFunction(subject, id, { argumentsText: input.value, signal: stop.signal }),
      );
    } catch (error) {
      showFailure(result, error);
    } finally {
      running = null;
      start.disabled = false;
      cancel.disabled = true;
    }
  }

  function call(signal) {
    const parameters = input.value.trim() === "" ? "[]" : input.value;
    if (parseJson(parameters).kind !== "array")
      throw new Error('The parameters must be a JSON array, such as [1, "two"].');
    const keyHeader = key.elements.length === 0 ? null : key.header();
    return runProcedure(subject, id, { keyHeader, parameters, signal });
  }

  cancel.addEventListener("click", () => running?.abort());
  const form = h(
    "form",
    { "aria-label": isProcedure ? "Run the stored procedure" : "Try the function" },
    h("h3", {}, isProcedure ? "Run" : "Try it"),
    h(
      "div.row.run-fields",
      {},
      ...key.elements,
      h(
        "div.grow",
        {},
        h("label", { for: "run-arguments" }, isProcedure ? "Parameters (JSON array)" : "Arguments, as in a query"),
        input,
      ),
      start,
      cancel,
    ),
    result,
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    run();
  });
  return { element: form, run };
}

function showResult(place, { text, log, charge }) {
  place.replaceChildren(
    h("p.small.faint", {}, `Done. ${count(charge)} RU.`),
    h("pre", { tabindex: "0", "aria-label": "Result" }, readable(text)),
    ...logParts(log),
  );
}

function showFailure(place, error) {
  if (error.name === "AbortError") {
    place.replaceChildren(h("p", {}, "Canceled. The server may have finished the run; if so, its writes are stored."));
    return;
  }
  const message = error instanceof JsonProblem ? `The parameters are not JSON: ${error.message}` : sentenceOf(error);
  place.replaceChildren(h("pre.problem", { role: "alert", tabindex: "0" }, message), ...logParts(error.log ?? ""));
}

function logParts(log) {
  return log === "" ? [] : [h("h3", {}, "Console"), h("pre", { tabindex: "0", "aria-label": "Console log" }, log)];
}

// Numbers stay as the server wrote them.
function readable(text) {
  if (text === "") return "(no result)";
  try {
    return printJson(parseJson(text));
  } catch {
    return text;
  }
}
