// Fields for the values of a partition key, a field for each of its paths.
import { compactJson, parseJson } from "./json_text.js";
import { h } from "./ui.js";

// The JSON of what was typed: a JSON value, or else the text itself, so that `device-1` needs no quotes.
export function valueText(typed) {
  try {
    return compactJson(parseJson(typed));
  } catch {
    return JSON.stringify(typed);
  }
}

// The value of the header: a JSON array. Headers carry no characters beyond ASCII, JSON can escape them all.
export function keyHeader(typedValues) {
  const text = `[${typedValues.map(valueText).join(",")}]`;
  return text.replace(/[^\x20-\x7e]/g, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

// { elements, header() }.
export function createKeyFields(paths, idPrefix) {
  const inputs = paths.map((path, place) =>
    h("input", {
      id: `${idPrefix}-${place}`,
      autocomplete: "off",
      spellcheck: "false",
      placeholder: "JSON, or plain text",
    }),
  );
  const elements = paths.map((path, place) =>
    h(
      "div.grow",
      {},
      h("label", { for: `${idPrefix}-${place}` }, "Partition key ", h("code", {}, path)),
      inputs[place],
    ),
  );
  return { elements, header: () => keyHeader(inputs.map((input) => input.value)) };
}
