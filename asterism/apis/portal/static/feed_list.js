// The list of changes: newest on top, bounded, each opened as JSON in place.
import { bytes, time } from "./format.js";
import { parseJson, printJson } from "./json_text.js";
import { h } from "./ui.js";

const ROWS_MAX = 500;
// Items may have 2 MB: the list is cut earlier when its texts are large.
const CHARACTERS_MAX = 30_000_000;
const TAGS = { create: "good", delete: "bad", expired: "warn" };

export function createList(body) {
  let rows = [];
  let characters = 0;
  let filter = "";

  const matches = (change) => filter === "" || change.text.toLowerCase().includes(filter);

  function add(changes) {
    const added = changes.map((change) => ({ change, parts: makeRow(change), isMatch: matches(change) }));
    for (const row of added) {
      row.parts.summary.hidden = !row.isMatch;
      characters += row.change.text.length;
      body.prepend(row.parts.summary, row.parts.detail);
    }
    rows = [...added.reverse(), ...rows];
    while (rows.length > ROWS_MAX || (characters > CHARACTERS_MAX && rows.length > 1)) remove(rows.pop());
  }

  function remove(row) {
    characters -= row.change.text.length;
    row.parts.summary.remove();
    row.parts.detail.remove();
  }

  return {
    add,
    get size() {
      return rows.length;
    },
    get shown() {
      return rows.filter((row) => row.isMatch).length;
    },
    clear() {
      while (rows.length) remove(rows.pop());
    },
    setFilter(text) {
      filter = text.trim().toLowerCase();
      for (const row of rows) {
        row.isMatch = matches(row.change);
        row.parts.summary.hidden = !row.isMatch;
        row.parts.detail.hidden = row.parts.summary.hidden || row.parts.button.getAttribute("aria-expanded") !== "true";
      }
    },
  };
}

function makeRow(change) {
  const content = h("td", { colspan: "5" });
  const detail = h("tr.detail", { hidden: true }, content);
  const button = h(
    "button.quiet.link",
    { type: "button", "aria-expanded": "false" },
    change.id === "" ? "(no id)" : change.id,
  );
  button.addEventListener("click", () => {
    const isOpen = button.getAttribute("aria-expanded") === "true";
    button.setAttribute("aria-expanded", String(!isOpen));
    detail.hidden = isOpen;
    // Printed when it is first wanted: 500 large items would take seconds.
    if (!isOpen && content.childElementCount === 0) {
      content.append(
        h("pre", { tabindex: "0", "aria-label": `Change of ${change.id}` }, printJson(parseJson(change.text))),
      );
    }
  });
  const summary = h(
    "tr",
    {},
    h("td", { "data-label": "Time" }, change.wallSeconds ? time(change.wallSeconds) : "–"),
    h("td", { "data-label": "Operation" }, h(`span.tag.${TAGS[change.operation] ?? "plain"}`, {}, change.operation)),
    h("td", { "data-label": "Id" }, button),
    h("td", { "data-label": "Partition key" }, change.key),
    h("td.number", { "data-label": "Size" }, bytes(change.text.length)),
  );
  return { summary, detail, button };
}
