// The properties of an entity as rows that can be edited: name, type, value.
import { TYPES } from "./entity_values.js";
import { h, mayChange } from "./ui.js";

// { element, fill(properties), properties() }.
export function createGrid(onChange) {
  const body = h("tbody");
  const add = h("button.small", { type: "button" }, "Add property");
  add.addEventListener("click", () => {
    const row = makeRow({ name: "", type: "String", text: "" });
    body.append(row);
    row.querySelector("input").focus();
    onChange();
  });

  function makeRow({ name, type, text }) {
    const label = (part) => (name === "" ? `${part} of the new property` : `${part} of ${name}`);
    const isLocked = !mayChange();
    const types = TYPES.includes(type) ? TYPES : [...TYPES, type];
    const select = h(
      "select",
      { "aria-label": label("Type"), disabled: isLocked },
      ...types.map((known) => h("option", { value: known }, known)),
    );
    select.value = type;
    const value = h("textarea", {
      "aria-label": label("Value"),
      rows: Math.min(6, 1 + text.split("\n").length - 1),
      spellcheck: "false",
      readonly: isLocked,
      value: text,
    });
    const row = h(
      "tr",
      {},
      h(
        "td",
        {},
        h("input", {
          "aria-label": label("Name"),
          value: name,
          spellcheck: "false",
          autocomplete: "off",
          readonly: isLocked,
        }),
      ),
      h("td", {}, select),
      h("td.wide", {}, value),
      h(
        "td",
        {},
        isLocked
          ? null
          : h(
              "button.quiet",
              {
                type: "button",
                "aria-label": `Remove ${name === "" ? "the new property" : name}`,
                onclick: remove,
              },
              "×",
            ),
      ),
    );
    function remove() {
      row.remove();
      onChange();
      add.focus();
    }
    return row;
  }

  body.addEventListener("input", onChange);
  return {
    element: h(
      "div",
      {},
      h(
        "div.scroll",
        {},
        h(
          "table.grid-of-properties",
          {},
          h(
            "thead",
            {},
            h("tr", {}, ...["Property", "Type", "Value", ""].map((title) => h("th", { scope: "col" }, title))),
          ),
          body,
        ),
      ),
      mayChange() ? add : null,
    ),
    fill: (properties) => body.replaceChildren(...properties.map(makeRow)),
    properties: () =>
      [...body.rows].map((row) => ({
        name: row.querySelector("input").value.trim(),
        type: row.querySelector("select").value,
        text: row.querySelector("textarea").value,
      })),
  };
}
