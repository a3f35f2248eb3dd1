// The page of a container's or a table's partitions.
import { admin } from "./api.js";
import { mountPartitions } from "./partitions_view.js";
import { collection, h } from "./ui.js";

const place = document.getElementById("partitions");
mountPartitions(place, collection(), { isOperator: place.dataset.isOperator === "yes" });

// Names for the comparison, fetched when somebody is about to choose.
const input = document.getElementById("compare-with");
const pathOf = ({ account, database, name, kind }) =>
  (kind === "table" ? [account, name] : [account, database, name]).join("/");
const comparable = new Set(["container", "collection", "table"]);
// There is none where there is nothing to compare with.
input?.addEventListener("focus", offerNames, { once: true });

async function offerNames() {
  try {
    const { collections } = await admin(document.body.dataset.account, "overview", { limit: 200 });
    input.list.replaceChildren(
      ...collections.filter(({ kind }) => comparable.has(kind)).map((row) => h("option", { value: pathOf(row) })),
    );
  } catch (problem) {
    // The name can be typed all the same.
    if (problem.name !== "ApiError" && problem.name !== "Unreachable") throw problem;
  }
}
