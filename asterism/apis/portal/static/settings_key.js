// The card of a synthetic key: its rule in words, a sample to try it on, and more suffixes.
import { count } from "./format.js";
import { keyRulePreview } from "./key_rule_preview.js";
import { readContainer, replaceContainer } from "./settings_container.js";
import { showProblem, whileDisabled } from "./trouble.js";
import { confirmAction, h, mayChange, toast } from "./ui.js";

export function mountKey(subject) {
  const place = (id) => document.getElementById(id);
  const form = place("suffix-form");
  const input = place("suffix-count");
  const preview = keyRulePreview(subject.account, () => partitionKey, { hasWords: false });
  const card = { onSaved: () => {}, show };
  let partitionKey = null;
  // What the card shows, as text: it is drawn anew only when it differs.
  let shown = "";

  place("synthetic-try").append(preview.element);

  function show({ definition }, { synthetic_key_words: words }) {
    const text = JSON.stringify([definition.partitionKey, words]);
    if (definition.partitionKey?.synthetic === undefined || text === shown) return;
    shown = text;
    partitionKey = definition.partitionKey;
    place("synthetic-key").hidden = false;
    place("synthetic-words").replaceChildren(
      ...Object.entries(words).map(([path, rule]) => h("p", {}, h("code", {}, path), ` is ${rule}.`)),
    );
    const suffix = suffixOf(partitionKey)?.suffix;
    form.hidden = suffix === undefined || !mayChange();
    if (suffix) input.value = String(suffix.count);
    preview.update();
  }

  async function raise() {
    const problem = place("suffix-problem");
    showProblem(problem, null);
    const wanted = Number(input.value);
    const { suffix } = suffixOf(partitionKey);
    if (wanted > suffix.count && !(await confirmRaise(suffix, wanted))) return;
    try {
      const present = await readContainer(subject);
      await replaceContainer(subject, withCount(present.definition, wanted), present.etag);
      toast("The count of suffixes is changed.");
      card.onSaved();
    } catch (error) {
      showProblem(problem, error);
    }
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    whileDisabled(place("suffix-save"), raise);
  });
  return card;
}

// The only rule with a suffix, and its path; undefined if none has one.
function suffixOf({ synthetic }) {
  const found = Object.entries(synthetic).find(([, rule]) => rule.suffix !== undefined);
  return found && { path: found[0], suffix: found[1].suffix };
}

function withCount(definition, wanted) {
  const { partitionKey } = definition;
  const { path, suffix } = suffixOf(partitionKey);
  const rule = { ...partitionKey.synthetic[path], suffix: { ...suffix, count: wanted } };
  return { ...definition, partitionKey: { ...partitionKey, synthetic: { ...partitionKey.synthetic, [path]: rule } } };
}

function confirmRaise(suffix, wanted) {
  const reads =
    suffix.kind === "hash"
      ? "A read that names the property of the suffix asks one logical partition more, for items written before."
      : "A read that does not name the suffix asks all of them, and costs as much more.";
  return confirmAction({
    title: `Raise the count from ${count(suffix.count)} to ${count(wanted)}?`,
    lines: ["Items that are there keep their keys.", reads, "The count cannot be lowered again."],
    action: "Raise the count",
  });
}
