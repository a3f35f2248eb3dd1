// Changes by which an item would get another id or another key: it cannot, but a second item can.
import { keyLabel } from "./items_model.js";
import { confirmAction } from "./ui.js";

// Ask whether a text with another id or key may become a second item. `stored` is the open one.
export function confirmSecond(stored, id, key) {
  const lines =
    id === stored.id
      ? [
          `The partition key value changed from ${keyLabel(stored.key)} to ${keyLabel(key)}.`,
          "An item stays in its logical partition.",
        ]
      : [`The id changed from ${stored.id} to ${id}.`, "An item keeps its id."];
  return confirmAction({
    title: "Create a second item?",
    lines: [
      ...lines,
      `Your text becomes a new item; the item ${stored.id} stays as it is.`,
      "To move an item, create the second one and delete the first.",
    ],
    action: "Create a second item",
  });
}

// Why other values of the `sources` of a synthetic key are refused.
export function madeOfOthers(stored, sources) {
  return (
    `The key of this item is ${keyLabel(stored.key)}, made of ${sources.join(", ")}, and an item keeps its key: the new ` +
    "values make another one. Use Duplicate to create a second item with them, and delete this one."
  );
}
