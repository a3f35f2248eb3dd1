// The hottest and the largest logical partitions, and all figures of the drawings as a table.
import { bytes, count, percent } from "./format.js";
import { stateText } from "./partitions_line.js";
import { boundsOf, keyAddress, keyText } from "./partitions_model.js";
import { h } from "./ui.js";

export function mountKeyTables(place, collection) {
  const hottest = h("tbody");
  const largest = h("tbody");
  const partialText = "There are too many keys to look at all: those of a part are shown.";
  const partial = h("p.small.faint", { hidden: true }, partialText);
  const section = (title, note, ...more) =>
    h("section.card", { "aria-label": title }, h("h2", {}, title, " ", h("span.small.faint", {}, note)), ...more);
  place.append(
    section("Hottest keys", "since the server started", keyTable("Hottest keys", "RU", hottest)),
    section("Largest keys", "by stored bytes", partial, keyTable("Largest keys", "Size", largest)),
  );
  return ({ answer }) => {
    const { totals } = answer;
    const heatOf = (key) => [count(key.request_units), percentOf(key.request_units, totals.ru_consumed)];
    const sizeOf = (key) => [bytes(key.bytes), percentOf(key.bytes, totals.bytes)];
    fill(hottest, answer.hottest, collection, heatOf);
    fill(largest, answer.largest ?? [], collection, sizeOf);
    partial.hidden = !totals.is_partial;
  };
}

function percentOf(part, whole) {
  return whole ? percent(Math.min(1, part / whole)) : "–";
}

function keyTable(label, amount, body) {
  const head = h("tr", {},
    h("th", { scope: "col" }, "Key"), h("th", { scope: "col" }, "Partition"),
    h("th.number", { scope: "col" }, amount), h("th.number", { scope: "col" }, "Share"));
  return h("div.scroll", {}, h("table.keys", { "aria-label": label }, h("thead", {}, head), body));
}

function fill(body, keys, collection, figuresOf) {
  const rows = keys.map((key) => {
    const [amount, share] = figuresOf(key);
    const address = keyAddress(collection, key);
    const name = address === null ? h("code", {}, keyText(key)) : h("a", { href: address }, keyText(key));
    const figures = [amount, share].map((text) => h("td.number", {}, text));
    return h("tr", {}, h("td", {}, name), h("td", {}, key.partition), ...figures);
  });
  // A link that has the focus must not be replaced under the visitor, and figures that stand still need no redrawing.
  if (body.contains(document.activeElement)) return;
  const none = h("tr", {}, h("td.faint", { colspan: 4 }, "None yet."));
  body.replaceChildren(...(rows.length ? rows : [none]));
}

const COLUMNS = [
  ["Partition"], ["From"], ["To"], ["State"], ["Node"], ["Items", true], ["Size", true], ["Keys", true],
  ["Largest key"], ["RU/s share", true], ["RU/s in use", true], ["429s", true],
];

// The figures of line, bars and heat map for those who do not see drawings, and for those who prefer tables.
export function mountFigures(place) {
  const body = h("tbody");
  const heads = COLUMNS.map(([name, isNumber]) => h(isNumber ? "th.number" : "th", { scope: "col" }, name));
  const head = h("tr", {}, ...heads);
  const details = h("details.card.as-table", {}, h("summary", {}, "All physical partitions as a table"),
    h("div.scroll", {}, h("table", { "aria-label": "Physical partitions" }, h("thead", {}, head), body)));
  place.append(details);
  let latest = null;
  const show = () => {
    if (!details.open || latest === null) return;
    body.replaceChildren(...latest.answer.partitions.map((partition) => row(partition, latest)));
  };
  details.addEventListener("toggle", show);
  return (view) => {
    latest = view;
    show();
  };
}

function row(partition, { answer, meter }) {
  const [from, to] = boundsOf(partition, answer.partition_key);
  const rate = meter.rateOf(partition.id);
  const key = partition.largest?.[0];
  const cells = [
    partition.id, from, to, stateText(partition), partition.node, count(partition.items), bytes(partition.bytes),
    count(partition.logical_partitions) + (partition.is_partial ? "+" : ""),
    key ? `${keyText(key)} (${bytes(key.bytes)})` : "–",
    partition.ru_share ? count(Math.round(partition.ru_share)) : "–",
    rate === null ? "–" : count(Math.round(rate * 10) / 10),
    count(partition.throttled),
  ];
  return h("tr", {}, ...cells.map((text, place) => h(COLUMNS[place][1] ? "td.number" : "td", {}, text)));
}
