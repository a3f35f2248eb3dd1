// A selected partition: its facts, and what can be done with it, each with its consequences shown before.
import { admin, adminPost } from "./api.js";
import { bytes, count, percent } from "./format.js";
import { stateText } from "./partitions_line.js";
import { boundsOf, keyText, layoutLine } from "./partitions_model.js";
import { sentenceOf, whileDisabled } from "./trouble.js";
import { confirmAction, h, mayChange, toast } from "./ui.js";

export function mountSelection(place, collection, { onBegun, onClose }) {
  let shown = "";
  const facts = h("dl.facts");
  const heading = h("h3");
  const problem = h("p.problem", { role: "alert", hidden: true });
  const buttons = h("div.row.actions");
  const closing = { type: "button", "aria-label": "Close the facts of the partition", onclick: onClose };
  const top = h("div.row.between", {}, heading, h("button.quiet.small", closing, "×"));
  const panel = h("div.selection", { hidden: true, role: "region" }, top, facts, problem, buttons);
  place.append(panel);
  panel.addEventListener("keydown", (event) => event.key === "Escape" && onClose());

  function refuse(text) {
    problem.textContent = text ?? "";
    problem.hidden = !text;
  }

  // Show the plan, ask, then begin the job.
  async function act(button, { name, parameters, title, action, body }) {
    refuse(null);
    try {
      await whileDisabled(button, async () => {
        const plan = await admin(collection.account, `plan/${name}`, { ...collection.names, ...parameters });
        if (!plan.allowed) {
          refuse(plan.reason);
          return;
        }
        if (!(await confirmAction({ title, lines: linesOf(name, plan), action }))) return;
        const { job } = await adminPost(collection.account, name, { ...collection.names, ...body });
        toast(`${title.replace(/\?$/, "")}: begun.`);
        onBegun(job);
      });
    } catch (error) {
      if (error.name !== "ApiError" && error.name !== "Unreachable") throw error;
      refuse(sentenceOf(error));
    }
    // The button was disabled while the dialog was open, so that the focus could not come back to it by itself.
    if (document.activeElement === document.body) button.focus();
  }

  return (view) => {
    const { answer, selected, nodes } = view;
    const index = answer.partitions.findIndex((partition) => partition.id === selected);
    panel.hidden = index < 0;
    if (index < 0) {
      shown = "";
      refuse(null);
      return;
    }
    const partition = answer.partitions[index];
    heading.textContent = `Partition ${partition.id}`;
    panel.setAttribute("aria-label", `Partition ${partition.id}`);
    const pairs = factsOf(partition, view);
    facts.replaceChildren(...pairs.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
    const left = answer.partitions[index - 1];
    const right = answer.partitions[index + 1];
    // Buttons are made anew only when they mean something else, so that they keep the focus.
    const meaning = JSON.stringify([partition.id, left?.id, right?.id, partition.node, nodes.map((node) => node.name)]);
    if (meaning === shown) return;
    shown = meaning;
    refuse(null);
    buttons.replaceChildren(...(mayChange() ? actionButtons(partition, [left, right], nodes, act) : []));
  };
}

function factsOf(partition, { answer, meter, isOnNodes }) {
  const { partition_key: definition, totals, verdict } = answer;
  const [from, to] = boundsOf(partition, definition);
  const part = layoutLine(answer.partitions, definition).find((entry) => entry.partition.id === partition.id);
  const rate = meter.rateOf(partition.id);
  const used = rate === null ? "–" : `${count(Math.round(rate * 10) / 10)} RU/s`;
  const share = partition.ru_share;
  const recent = verdict.figures.normalized_ru[partition.id];
  const keys = partition.logical_partitions ?? null;
  const largest = partition.largest?.[0];
  return [
    ["Range", `${from} to ${to}${definition.kind === "Range" ? "" : `, ${percent(part.to - part.from)} of the line`}`],
    ["State", stateText(partition)],
    ["Items", count(partition.items)],
    ["Size", `${bytes(partition.bytes)}${totals.bytes ? `, ${percent(partition.bytes / totals.bytes)} of all` : ""}`],
    ["Keys", keys === null ? "–" : `${count(keys)}${partition.is_partial ? " or more" : ""}`],
    ["Largest key", largest ? `${keyText(largest)}, ${bytes(largest.bytes)}` : "–"],
    ["In use", share ? `${used} of ${count(Math.round(share))} RU/s` : used],
    ...(recent === undefined ? [] : [["Last 5 minutes", `${percent(recent)} of its share`]]),
    ["429s", `${count(partition.throttled)} since the server started`],
    ...(isOnNodes ? [["Node", partition.node]] : []),
    ...(partition.parents.length ? [["Made of", partition.parents.join(", ")]] : []),
    ...(partition.says ? [["Load", partition.says]] : []),
  ];
}

function actionButtons(partition, [left, right], nodes, act) {
  const button = (text, action) => {
    const made = h("button", { type: "button" }, text);
    made.addEventListener("click", () => act(made, action));
    return made;
  };
  const merge = (first, second, neighbor) =>
    button(`Merge with ${neighbor.id}`, {
      name: "merge",
      parameters: { ranges: `${first.id},${second.id}` },
      body: { ranges: [first.id, second.id] },
      title: `Merge partitions ${first.id} and ${second.id}?`,
      action: "Merge",
    });
  return [
    button("Split", {
      name: "split",
      parameters: { range: partition.id },
      body: { range: partition.id },
      title: `Split partition ${partition.id}?`,
      action: "Split",
    }),
    ...(left ? [merge(left, partition, left)] : []),
    ...(right ? [merge(partition, right, right)] : []),
    ...moveControls(partition, nodes, act),
  ];
}

// Only a fleet has another node to move to.
function moveControls(partition, nodes, act) {
  const others = nodes.filter((node) => node.name !== partition.node);
  if (!others.length) return [];
  const options = others.map(({ name }) => h("option", { value: name }, name));
  const choice = h("select", { "aria-label": "Node to move to" }, ...options);
  const move = h("button", { type: "button" }, "Move to");
  move.addEventListener("click", () =>
    act(move, {
      name: "move",
      parameters: { range: partition.id, node: choice.value },
      body: { range: partition.id, node: choice.value },
      title: `Move partition ${partition.id} to ${choice.value}?`,
      action: "Move",
    }),
  );
  return [move, choice];
}

// The consequences of a plan, a line each.
function linesOf(name, plan) {
  if (name === "move") {
    return [
      `${count(plan.items)} items, ${bytes(plan.bytes)}, move from ${plan.from} to ${plan.to}.`,
      "Reads and writes go on; writes wait for some milliseconds at the end.",
    ];
  }
  const { partitions, ru_per_partition: ru, children } = plan;
  const sizes = children.map((child) => bytes(child.bytes)).join(" and ");
  const made = name === "split" ? "Two partitions replace it" : "One partition replaces them";
  return [
    `Partitions: ${count(partitions.now)} now, ${count(partitions.after)} after.`,
    ...(ru.now ? [`RU/s per partition: ${count(Math.round(ru.now))} now, ${count(Math.round(ru.after))} after.`] : []),
    `${made}, with about ${sizes}.`,
    "Reads and writes go on; writes wait for some milliseconds at the end.",
  ];
}
