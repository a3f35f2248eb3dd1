// What a rule gives to a sample item, as the server computes it while a person writes.
import { ask } from "./api.js";
import { count } from "./format.js";
import { JsonProblem, parseJson } from "./json_text.js";
import { keyLabel } from "./items_model.js";
import { sampleItem } from "./key_rule_model.js";
import { sentenceOf } from "./trouble.js";
import { h, newest } from "./ui.js";

// After the last key press: people type faster than they read.
const WAIT_MILLISECONDS = 250;

// { element, update() }. `readPartitionKey` gives a partition key with its `synthetic`, or null while there is none.
// `hasWords`: the rule in words too.
export function keyRulePreview(account, readPartitionKey, { hasWords }) {
  const sample = h("textarea", { id: "key-sample", rows: 6, spellcheck: "false" });
  const problem = h("p.problem", { role: "alert", hidden: true });
  const outcome = h("div.consequences", { "aria-live": "polite" });
  const element = h("div", {}, h("label", { for: sample.id }, "Sample item"), sample, problem, outcome);
  // Until a person writes one, the sample follows the rule.
  let isOwn = false;
  let timer = null;
  const begin = newest();

  function fail(message) {
    problem.textContent = message;
    problem.hidden = false;
    outcome.hidden = true;
  }

  function tell(...content) {
    problem.hidden = true;
    outcome.hidden = false;
    outcome.replaceChildren(...content);
  }

  async function load() {
    const isNewest = begin();
    const partitionKey = readPartitionKey();
    if (partitionKey === null) {
      tell("Give the path of the first part to see the key of a sample.");
      return;
    }
    if (!isOwn) sample.value = JSON.stringify(sampleItem(partitionKey), null, 1);
    try {
      parseJson(sample.value);
      // As text: numbers of the sample stay as they were written.
      const body = `{"partition_key":${JSON.stringify(partitionKey)},"item":${sample.value}}`;
      const answer = await ask("POST", account, "admin", "synthetic-key/explain", { body });
      if (isNewest()) showAnswer(answer.body);
    } catch (error) {
      if (!isNewest()) return;
      if (error instanceof JsonProblem) fail(`The sample is not JSON yet: ${error.message}`);
      else if (error.name === "ApiError" || error.name === "Unreachable") fail(sentenceOf(error));
      else throw error;
    }
  }

  function showAnswer(explained) {
    if (!explained.allowed) {
      fail(explained.reason);
      return;
    }
    const words = Object.entries(hasWords ? explained.words : {}).map(([path, text]) => h("p", {}, h("code", {}, path), ` is ${text}.`));
    tell(...words, keysOf(explained.item));
  }

  function update() {
    clearTimeout(timer);
    timer = setTimeout(load, WAIT_MILLISECONDS);
  }

  sample.addEventListener("input", (event) => {
    // The form around it follows its rule, not the sample.
    event.stopPropagation();
    isOwn = sample.value.trim() !== "";
    update();
  });
  return { element, update };
}

function keysOf(item) {
  if (item.reason !== null) return h("p", {}, "An item like the sample is refused. ", item.reason);
  const texts = item.keys.map((key) => keyLabel(key.map((value) => JSON.stringify(value))));
  const [first, ...others] = texts.map((text) => h("code", {}, text));
  const more = others.flatMap((key) => [", ", key]);
  const rest = item.key_count > texts.length ? ", …" : "";
  if (item.is_drawn && item.key_count > 1)
    return h("p", {}, `The sample gets one of ${count(item.key_count)} keys: `, first, ...more, rest);
  const earlier = others.length ? [" An item written under an earlier count keeps its key: ", ...more.slice(1), rest, "."] : [];
  return h("p", {}, "The sample gets the key ", first, ".", ...earlier);
}
