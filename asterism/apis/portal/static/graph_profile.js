// The execution profile as a picture: a row for each step, a column for each physical partition, colored by RU.
import { bytes, count } from "./format.js";
import { h, svg } from "./ui.js";

// More columns do not fit; then only those that were touched are shown.
const COLUMNS_MAX = 24;
const HEATS = 4;
const SHARE_WIDTH = 90;

const byName = (a, b) => a.length - b.length || (a < b ? -1 : 1);
const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);

// Steps with the request units that each partition gave: [{ name, milliseconds, results, charge, size, items, indexes,
// isAsked, perPartition: Map }]. An operation on several partitions counts for each with its part.
export function stepsOf(profile) {
  return profile.metrics.map((metric) => {
    const operations = metric.storeOps ?? [];
    const perPartition = new Map();
    for (const operation of operations) {
      const names = (operation.partitions ?? []).map(String);
      for (const name of names) {
        const known = perPartition.get(name) ?? { charge: 0, operations: 0 };
        known.charge += (operation.requestCharge ?? 0) / names.length;
        known.operations += 1;
        perPartition.set(name, known);
      }
    }
    return {
      name: metric.name,
      milliseconds: metric.time ?? 0,
      results: metric.counts?.resultCount ?? 0,
      charge: sum(operations.map((operation) => operation.requestCharge ?? 0)),
      size: sum(operations.map((operation) => operation.size ?? 0)),
      items: sum(operations.map((operation) => operation.count ?? 0)),
      indexes: [...new Set(operations.map((operation) => operation.index).filter(Boolean))],
      isAsked: operations.length > 0,
      perPartition,
    };
  });
}

// `partitions` are the ids of all physical partitions of the graph.
export function profileView(profile, partitions) {
  const steps = stepsOf(profile);
  const touched = [...new Set(steps.flatMap((step) => [...step.perPartition.keys()]))].sort(byName);
  const all = [...new Set([...partitions.map(String), ...touched])].sort(byName);
  const columns = all.length > COLUMNS_MAX ? touched.slice(0, COLUMNS_MAX) : all;
  const charges = steps.flatMap((step) => [...step.perPartition.values()].map((part) => part.charge));
  const most = Math.max(...charges, 1e-9);
  const totals = {
    milliseconds: sum(steps.map((step) => step.milliseconds)),
    charge: sum(steps.map((step) => step.charge)),
  };
  const head = ["Step", "Time", "RU", "Results", "Read", "Index"].map((name) => h("th", { scope: "col" }, name));
  const table = h(
    "table.matrix",
    {},
    h("caption.unseen", {}, "Steps of the traversal and the physical partitions that they touched"),
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        ...head,
        ...columns.map((name) => h("th.partition", { scope: "col", "aria-label": `Partition ${name}` }, name)),
      ),
    ),
    h("tbody", {}, ...steps.map((step) => stepRow(step, columns, most, totals))),
    h("tfoot", {}, footRow(steps, columns, totals)),
  );
  const isCut = columns.length < all.length;
  return [
    h("p", {}, h("code.wrap", {}, profile.gremlin ?? "")),
    adviceOf(profile.advice ?? []),
    h(
      "p",
      { role: "status" },
      `${touched.length} of ${all.length} physical partition${all.length === 1 ? "" : "s"} touched · ` +
        `${count(totals.charge)} RU · ${count(profile.totalTime ?? totals.milliseconds)} ms`,
    ),
    h("div.scroll", { role: "region", tabindex: "0", "aria-label": "Steps and partitions" }, table),
    h(
      "p.faint.small",
      {},
      `A cell has the request units that a step took from a partition; an empty one was not asked.${
        isCut ? ` Of ${all.length} partitions, ${columns.length} of those that were touched are shown.` : ""
      }`,
    ),
  ];
}

function stepRow(step, columns, most, totals) {
  return h(
    "tr",
    {},
    h("th", { scope: "row" }, step.name),
    h(
      "td.number",
      {},
      `${count(step.milliseconds)} ms`,
      share(step.milliseconds / Math.max(totals.milliseconds, 1e-9)),
    ),
    h(
      "td.number",
      {},
      step.isAsked ? chargeText(step.charge) : "–",
      share(step.charge / Math.max(totals.charge, 1e-9)),
    ),
    h("td.number", {}, count(step.results)),
    h("td.number", {}, step.isAsked ? `${count(step.items)} (${bytes(step.size)})` : "–"),
    h("td", {}, step.indexes.join(", ") || "–"),
    ...columns.map((name) => cell(step, name, most)),
  );
}

function cell(step, name, most) {
  const part = step.perPartition.get(name);
  if (!part) return h("td.partition", {}, "");
  const heat = Math.min(HEATS, 1 + Math.floor((part.charge / most) * HEATS * 0.999));
  const operations = `${part.operations} operation${part.operations === 1 ? "" : "s"}`;
  const title = `${step.name} on partition ${name}: ${chargeText(part.charge)} RU in ${operations}`;
  return h(`td.partition.heat-${heat}`, { title }, chargeText(part.charge));
}

function footRow(steps, columns, totals) {
  const ofColumn = (name) => sum(steps.map((step) => step.perPartition.get(name)?.charge ?? 0));
  return h(
    "tr",
    {},
    h("th", { scope: "row" }, "All"),
    h("td.number", {}, `${count(totals.milliseconds)} ms`),
    h("td.number", {}, chargeText(totals.charge)),
    h("td", { colspan: 3 }),
    ...columns.map((name) => h("td.partition", {}, ofColumn(name) ? chargeText(ofColumn(name)) : "")),
  );
}

function adviceOf(sentences) {
  return sentences.length
    ? h("ul.advice", { "aria-label": "Advice" }, ...sentences.map((sentence) => h("li", {}, sentence)))
    : "";
}

const chargeText = (charge) => charge.toLocaleString("en-US", { maximumFractionDigits: 2 });

function share(part) {
  const width = Math.max(0, Math.min(1, part)) * SHARE_WIDTH;
  return svg(
    "svg",
    { class: "share", viewBox: `0 0 ${SHARE_WIDTH} 10`, "aria-hidden": "true" },
    svg("rect", { class: "back", width: SHARE_WIDTH, height: 10, rx: 2 }),
    svg("rect", { width, height: 10, rx: 2 }),
  );
}
