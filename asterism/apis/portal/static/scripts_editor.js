// The open script: its name, what a trigger belongs to, its text; saved, deleted and run.
import { hideConflict, showConflict } from "./conflict.js";
import { createEditor } from "./editor.js";
import { KINDS, createScript, deleteScript, readScript, replaceScript } from "./scripts_api.js";
import { createRunPanel } from "./scripts_run.js";
import { showProblem, whileDisabled } from "./trouble.js";
import { confirmAction, h, mayChange, toast } from "./ui.js";

const TRIGGER_TYPES = ["Pre", "Post"];
const TRIGGER_OPERATIONS = ["All", "Create", "Replace", "Upsert", "Update", "Delete"];

// Show a script in `place`. `script` without `_etag` is new. `onStored(script)` and `onDeleted()` follow a change.
export function openScript(place, subject, kind, script, { onStored, onDeleted }) {
  const noun = KINDS[kind].noun;
  const isNew = script._etag === undefined;
  const isTrigger = kind === "triggers";
  let stored = script;
  // A script keeps its name: clients call it by that.
  const name = h("input", { id: "script-name", value: script.id, autocomplete: "off", spellcheck: "false" });
  const type = choice("script-type", "Type", TRIGGER_TYPES, script.triggerType);
  const operation = choice("script-operation", "Operation", TRIGGER_OPERATIONS, script.triggerOperation);
  const problem = h("p.problem", { role: "alert", hidden: true });
  const conflict = h("div");
  const saveButton = h("button.primary", { type: "button" }, isNew ? `Create ${noun}` : "Save");
  const holder = h("div.editor");

  const isDirty = () =>
    editor.getValue() !== stored.body ||
    (isTrigger && !(isSame(type.value(), stored.triggerType) && isSame(operation.value(), stored.triggerOperation)));

  function present() {
    const properties = { id: name.value.trim(), body: editor.getValue() };
    return isTrigger ? { ...properties, triggerType: type.value(), triggerOperation: operation.value() } : properties;
  }

  // Resolves to true if the script is stored as it is shown.
  async function save() {
    showProblem(problem, null);
    try {
      if (isNew) {
        if (name.value.trim() === "") throw new Error(`Give the ${noun} a name.`);
        onStored(await createScript(subject, kind, present()));
        return false;
      }
      stored = await replaceScript(subject, kind, present(), stored._etag);
      hideConflict(conflict);
      toast("Saved.");
      return true;
    } catch (error) {
      if (error.status === 412) await offerPresent();
      else if (error.status === 404)
        showProblem(
          problem,
          new Error(`This ${isNew ? "container" : noun} no longer exists. Copy your text before you leave the page.`),
        );
      else showProblem(problem, error);
      return false;
    }
  }

  async function offerPresent() {
    const current = await readScript(subject, kind, stored.id);
    showConflict(conflict, {
      noun,
      present: current.body,
      take: () => {
        stored = current;
        editor.setValue(current.body);
        type.set(current.triggerType);
        operation.set(current.triggerOperation);
      },
      keep: () => (stored = current),
    });
  }

  async function remove() {
    const confirmed = await confirmAction({
      title: `Delete the ${noun} ${stored.id}?`,
      lines: ["Requests and queries that name it will be refused. This cannot be undone."],
      action: `Delete ${noun}`,
      isDanger: true,
    });
    if (!confirmed) return;
    try {
      await deleteScript(subject, kind, stored.id);
      onDeleted();
    } catch (error) {
      showProblem(problem, error);
    }
  }

  const panel =
    isNew || isTrigger || (kind === "sprocs" && !mayChange())
      ? null
      : createRunPanel(subject, kind, script.id, beforeRun);

  // The server runs what is stored, so what is shown is stored first.
  async function beforeRun() {
    return !mayChange() || !isDirty() || (await save());
  }

  saveButton.addEventListener("click", () => whileDisabled(saveButton, save));
  place.replaceChildren(
    h("h2", {}, isNew ? `New ${noun}` : script.id),
    h(
      "div.row.script-fields",
      {},
      isNew ? h("div.grow", {}, h("label", { for: "script-name" }, "Name"), name) : null,
      ...(isTrigger ? [type.element, operation.element] : []),
    ),
    h("div.script-text", {}, holder),
    conflict,
    problem,
    mayChange()
      ? h("div.row", {}, saveButton, isNew ? null : h("button", { type: "button", onclick: remove }, "Delete …"))
      : null,
    panel?.element,
  );
  const editor = createEditor(holder, {
    language: "javascript",
    value: script.body,
    readOnly: !mayChange(),
    label: `JavaScript of the ${noun}`,
    onRun: () => panel?.run(),
  });
  if (isNew) name.focus();
  return { isDirty: () => mayChange() && (isNew ? editor.getValue() !== script.body : isDirty()) };
}

// Clients write these words in any case.
const isSame = (word, other) => String(word).toLowerCase() === String(other).toLowerCase();

function choice(id, label, values, chosen) {
  const known = values.find((value) => isSame(value, chosen)) ?? chosen ?? values[0];
  const options = (values.includes(known) ? values : [...values, known]).map((value) => h("option", { value }, value));
  const select = h("select", { id, disabled: !mayChange() }, ...options);
  select.value = known;
  return {
    element: h("div", {}, h("label", { for: id }, label), select),
    value: () => select.value,
    set: (value) => (select.value = values.find((candidate) => isSame(candidate, value)) ?? known),
  };
}
