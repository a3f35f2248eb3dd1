// The first page: jobs that move, and dialogs that create and delete.
import { admin, ask } from "./api.js";
import { count } from "./format.js";
import { keyRuleForm } from "./key_rule_form.js";
import { keyRulePreview } from "./key_rule_preview.js";
import { confirmAction, h, newest, poll, toast } from "./ui.js";

const choices = document.getElementById("choices").dataset;
const cosmosAccounts = JSON.parse(choices.cosmos);
const storageAccounts = JSON.parse(choices.storage);
const databases = JSON.parse(choices.databases);
const account = document.body.dataset.account;

async function showJobs() {
  const { jobs } = await admin(account, "jobs");
  document.getElementById("jobs-section").hidden = jobs.length === 0;
  document.getElementById("jobs").replaceChildren(
    ...jobs.map((job) =>
      h(
        "div.row",
        { dataset: { job: job.id } },
        h("span.tag", {}, job.kind),
        h("span.grow", {}, `${job.database} / ${job.container}, range ${job.ranges.join(" and ")}: ${job.step}`),
        h("span.small.faint", {}, `${count(job.entries_copied)} entries`),
        job.percent === null || job.percent === undefined
          ? null
          : h("progress", { max: 100, value: job.percent, "aria-label": `${job.kind} of ${job.container}` }),
        job.trouble ? h("span.tag.bad", {}, job.trouble) : null,
      ),
    ),
  );
}

function select(id, label, names) {
  return [h("label", { for: id }, label), h("select", { id, name: id }, ...names.map((name) => h("option", { value: name }, name)))];
}

function field(id, label, attributes = {}) {
  return [h("label", { for: id }, label), h("input", { id, name: id, autocomplete: "off", spellcheck: "false", ...attributes })];
}

// A dialog with a form: `save` gets the form's values; what it throws stands in the dialog.
function formDialog(title, fields, action, save) {
  const problem = h("p.problem", { role: "alert", hidden: true });
  const button = h("button.primary", { type: "submit" }, action);
  const form = h(
    "form",
    {},
    h("h2", { id: "form-title" }, title),
    ...fields.flat(),
    problem,
    h("div.row.end", {}, h("button", { type: "button", "data-close": true }, "Cancel"), button),
  );
  const dialog = h("dialog", { "aria-labelledby": "form-title" }, form);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    problem.hidden = true;
    button.disabled = true;
    try {
      await save(Object.fromEntries(new FormData(form)));
      dialog.close();
      location.reload();
    } catch (error) {
      problem.textContent = error.message;
      problem.hidden = false;
      button.disabled = false;
    }
  });
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  return form;
}

function throughputHeaders(values) {
  if (values.mode === "manual") return { "x-ms-offer-throughput": values.throughput };
  if (values.mode === "autoscale")
    return { "x-ms-cosmos-offer-autopilot-settings": JSON.stringify({ maxThroughput: Number(values.throughput) }) };
  return {};
}

function throughputFields(none) {
  return [
    h("fieldset", {}, h("legend", {}, "Throughput"),
      h("div.row", {},
        ...[["manual", "Manual"], ["autoscale", "Autoscale"], ["none", none]].map(([value, label], place) =>
          h("label.inline", {}, h("input", { type: "radio", name: "mode", value, checked: place === 0 }), label))),
      ...field("throughput", "RU/s (of autoscale the maximum)", { type: "number", min: 400, step: 100, value: "400" }),
      h("p.consequences", { id: "consequences", "aria-live": "polite" })),
  ];
}

// Show how many partitions the throughput means, before anything is created.
function showConsequences(form) {
  const place = form.querySelector("#consequences");
  const begin = newest();
  async function update() {
    const isNewest = begin();
    const { mode, throughput } = Object.fromEntries(new FormData(form));
    if (mode === "none") {
      place.textContent = "The container uses the throughput of its database, or 400 RU/s of its own if that has none.";
      return;
    }
    try {
      const plan = await admin(account, "plan/create", { throughput, autoscale: String(mode === "autoscale") });
      if (!isNewest()) return;
      place.textContent = plan.allowed === false
        ? plan.reason
        : `${plan.partitions} physical partition${plan.partitions === 1 ? "" : "s"}, ${count(plan.ru_per_partition)} RU/s each.`;
    } catch (error) {
      if (isNewest()) place.textContent = error.message;
    }
  }
  form.addEventListener("input", update);
  update();
}

function newDatabase() {
  const form = formDialog(
    "New database",
    [select("account", "Account", cosmosAccounts), field("name", "Name", { required: true }), throughputFields("None")],
    "Create database",
    (values) =>
      ask("POST", values.account, "nosql", "dbs", { body: { id: values.name }, headers: throughputHeaders(values) }),
  );
  form.querySelector("[name=mode][value=none]").checked = true;
  showConsequences(form);
}

// The choice whether the key is computed, and by which rule. `read` gives `synthetic` of a partition key with these paths.
function ruleFields(readPaths) {
  const choice = h("input", { type: "checkbox", id: "is-synthetic" });
  const level = h("select", { id: "computed-path" });
  const levelField = h("div", {}, h("label", { for: "computed-path" }, "Computed path"), level);
  const rule = keyRuleForm();
  const readKey = () => {
    const [first] = rule.read().parts;
    return (first.path ?? first) === "" ? null : partitionKeyOf(readPaths(), read());
  };
  const preview = keyRulePreview(account, readKey, { hasWords: true });
  const section = h(
    "fieldset",
    { hidden: true },
    h("legend", {}, "Synthetic key"),
    h("p.small", {}, "Clients write items without this property; the server makes it of others and fills it in."),
    levelField,
    rule.element,
    preview.element,
  );

  function read() {
    return choice.checked ? { [level.value]: rule.read() } : undefined;
  }

  function follow() {
    const paths = readPaths();
    if (paths.join() !== [...level.options].map((option) => option.value).join()) {
      level.replaceChildren(...paths.map((path) => h("option", { value: path }, path)));
      // The last level is the one that usually would grow too large.
      level.value = paths.at(-1);
    }
    section.hidden = !choice.checked;
    levelField.hidden = paths.length < 2;
    if (choice.checked) preview.update();
  }

  const label = h("label.inline", {}, choice, "Compute it from other properties of the item");
  return { elements: [label, section], read, follow };
}

function partitionKeyOf(paths, synthetic) {
  return { paths, kind: paths.length > 1 ? "MultiHash" : "Hash", version: 2, synthetic };
}

function newContainer() {
  const readPaths = () => form.elements.namedItem("key").value.split(",").map((path) => path.trim());
  const rule = ruleFields(() => readPaths());
  const form = formDialog(
    "New container",
    [
      select("account", "Account", cosmosAccounts),
      field("database", "Database (created if missing)", { required: true, list: "known-databases" }),
      h("datalist", { id: "known-databases" }, ...databases.map((database) => h("option", { value: database.name }))),
      field("name", "Name", { required: true }),
      field("key", "Partition key, for example /customer; up to three with commas between", { required: true, placeholder: "/customer" }),
      rule.elements,
      throughputFields("Shared or default"),
    ],
    "Create container",
    async (values) => {
      await ask("POST", values.account, "nosql", "dbs", { body: { id: values.database }, accept: [409] });
      const definition = { id: values.name, partitionKey: partitionKeyOf(readPaths(), rule.read()) };
      await ask("POST", values.account, "nosql", `dbs/${values.database}/colls`, { body: definition, headers: throughputHeaders(values) });
    },
  );
  form.addEventListener("input", rule.follow);
  showConsequences(form);
}

function newTable() {
  formDialog(
    "New table",
    [select("account", "Account", storageAccounts), field("name", "Name", { required: true })],
    "Create table",
    (values) => ask("POST", values.account, "table", "Tables", { body: { TableName: values.name }, headers: { accept: "application/json" } }),
  );
}

async function deleteDatabase(button) {
  const name = button.dataset.deleteDatabase;
  const owner = button.dataset.account;
  const plan = await admin(owner, "plan/delete", { database: name });
  const confirmed = await confirmAction({
    title: `Delete the database ${name}?`,
    lines: [`${count(plan.collections)} containers with ${count(plan.items)} items will be gone. This cannot be undone.`],
    action: "Delete database",
    typed: name,
    isDanger: true,
  });
  if (!confirmed) return;
  try {
    await ask("DELETE", owner, "nosql", `dbs/${name}`);
    location.reload();
  } catch (error) {
    toast(error.message, { isProblem: true });
  }
}

document.getElementById("new-database")?.addEventListener("click", newDatabase);
document.getElementById("new-container")?.addEventListener("click", newContainer);
document.getElementById("new-table")?.addEventListener("click", newTable);
for (const button of document.querySelectorAll("[data-delete-database]")) {
  button.addEventListener("click", () => deleteDatabase(button));
}
poll(showJobs, 2);
