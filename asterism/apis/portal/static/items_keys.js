// The choice of a logical partition: a field for each path of the key, and the largest ones to pick from.
import { admin } from "./api.js";
import { bytes, count } from "./format.js";
import { keyLabel, keyOfAddress, keyValueOf, namesOfPath } from "./items_model.js";
import { sourcesOf } from "./key_rule_model.js";
import { collection, h } from "./ui.js";

const SUGGESTED_MAX = 50;

// `onChoose` gets the key as JSON texts, or null for all items.
export function keyChooser({ onChoose }) {
  const { account, names, partitionKey } = collection();
  const form = document.getElementById("key-form");
  const problem = document.getElementById("key-problem");
  const fields = partitionKey.paths.map((path, place) =>
    h("input.mono", {
      id: `key-${place}`,
      autocomplete: "off",
      spellcheck: "false",
      placeholder: place === 0 ? placeholderOf(partitionKey) : "",
    }),
  );
  document
    .getElementById("key-fields")
    .append(
      ...fields.flatMap((field, place) => [
        h("label", { for: field.id }, "Value of ", h("code", {}, partitionKey.paths[place])),
        field,
      ]),
    );

  function show(key) {
    fields.forEach((field, place) => (field.value = key?.[place] ?? ""));
    // A synthetic key that is named by the values that it is made of.
    if (key !== null && key.length > fields.length) fields[0].value = `[${key.join(",")}]`;
    problem.hidden = true;
  }

  function choose(key) {
    show(key);
    onChoose(key);
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const values = fields.map((field) => keyValueOf(field.value));
    const given = values.findIndex((value) => value === null);
    const key = namedBySources(values) ?? (given < 0 ? values : values.slice(0, given));
    const isGap = values.slice(key.length).some((value) => value !== null);
    if (key.length === 0 || isGap) {
      problem.textContent = isGap
        ? "Give the values from the first on: a key can end early, but not skip a value."
        : 'Give a value, for example "Oslo" or 5, or show all items.';
      problem.hidden = false;
      return;
    }
    choose(key);
  });
  document.getElementById("all-items").addEventListener("click", () => choose(null));

  async function suggest() {
    const logicals = suggestionsOf(await admin(account, "partitions", { ...names, top: String(SUGGESTED_MAX) }));
    document.getElementById("suggestions").hidden = logicals.length === 0;
    document
      .getElementById("suggested-keys")
      .replaceChildren(
        ...logicals.map(({ key, facts }) =>
          h(
            "li",
            {},
            h(
              "button.choice",
              { type: "button", onclick: () => choose(key) },
              h("span.mono", {}, keyLabel(key)),
              h("span.faint.small", {}, facts),
            ),
          ),
        ),
      );
  }

  return { show, suggest };
}

function placeholderOf({ paths, synthetic }) {
  const rule = synthetic?.[paths[0]];
  if (rule === undefined) return '"text", 5, true or null';
  const sources = sourcesOf(rule).map((path) => `"${namesOfPath(path).at(-1)}"`);
  return sources.length > 1 ? `"value" or [${sources.join(", ")}]` : '"value"';
}

// A synthetic key may be named by a list of the values that it is made of; null for any other.
function namedBySources(values) {
  if (values.length !== 1 || !values[0]?.startsWith("[")) return null;
  return keyOfAddress(values[0]);
}

// The largest logical partitions of all physical ones, then the hottest that are not among them.
function suggestionsOf({ partitions, hottest }) {
  const byPoint = new Map();
  const all = [...partitions.flatMap((partition) => partition.largest ?? []), ...(hottest ?? [])];
  for (const logical of all.filter((found) => found.partition_key)) {
    byPoint.set(logical.effective_key, { bytes: 0, ...byPoint.get(logical.effective_key), ...logical });
  }
  const largestFirst = [...byPoint.values()].sort((left, right) => right.bytes - left.bytes);
  return largestFirst.slice(0, SUGGESTED_MAX).map((logical) => ({
    key: logical.partition_key.map((value) => JSON.stringify(value)),
    facts: [
      logical.items === undefined ? null : `${count(logical.items)} items, ${bytes(logical.bytes)}`,
      logical.request_units ? `${count(logical.request_units)} RU` : null,
    ]
      .filter((fact) => fact !== null)
      .join(", "),
  }));
}
