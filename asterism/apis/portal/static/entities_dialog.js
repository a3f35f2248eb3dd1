// An entity in a dialog: shown, edited with its etag, inserted, deleted.
import { hideConflict, showConflict } from "./conflict.js";
import { deleteEntity, insertEntity, readEntity, replaceEntity } from "./entities_api.js";
import { createGrid } from "./entities_grid.js";
import { problemOf } from "./entity_values.js";
import { showProblem, whileDisabled } from "./trouble.js";
import { confirmAction, h, mayChange, toast } from "./ui.js";

const EXISTS = "There is an entity with these keys already. Choose another RowKey, or open that entity and change it.";

// Open an entity, or a new one if it has no etag. `onChanged` follows a write.
export function openEntity(subject, entity, onChanged) {
  const isNew = entity.etag === undefined;
  let present = entity;
  let isDirty = false;
  const grid = createGrid(() => (isDirty = true));
  const partitionKey = keyField("entity-partition-key", "PartitionKey", entity.partitionKey, isNew);
  const rowKey = keyField("entity-row-key", "RowKey", entity.rowKey, isNew);
  const problem = h("p.problem", { role: "alert", hidden: true });
  const conflict = h("div");
  const timestamp = h("p.faint.small");
  const save = h("button.primary", { type: "submit" }, isNew ? "Insert entity" : "Save");
  const remove = h("button.danger", { type: "button" }, "Delete …");

  function show(shown) {
    present = shown;
    grid.fill(shown.properties);
    timestamp.textContent = isNew ? "" : `Last changed ${shown.timestamp}`;
    isDirty = false;
  }

  const edited = () => ({
    partitionKey: partitionKey.input.value,
    rowKey: rowKey.input.value,
    properties: grid.properties(),
  });

  async function store() {
    showProblem(problem, null);
    const written = edited();
    try {
      const refusal = problemOf(written.properties);
      if (refusal !== null) throw new Error(refusal);
      if (isNew) await insertEntity(subject, written);
      else await replaceEntity(subject, written, present.etag);
      toast(isNew ? "Inserted." : "Saved.");
      finish();
    } catch (error) {
      if (error.status === 412) await offerPresent();
      else if (error.status === 409) showProblem(problem, new Error(EXISTS));
      else showProblem(problem, error);
    }
  }

  async function offerPresent() {
    try {
      const current = await readEntity(subject, present);
      showConflict(conflict, {
        noun: "entity",
        present: current.properties.map(({ name, type, text }) => `${name} (${type}): ${text}`).join("\n"),
        take: () => show(current),
        keep: () => (present = { ...present, etag: current.etag }),
      });
    } catch (error) {
      showProblem(
        problem,
        error.status === 404 ? new Error("Somebody else has deleted this entity. Nothing was saved.") : error,
      );
    }
  }

  async function erase() {
    const confirmed = await confirmAction({
      title: "Delete this entity?",
      lines: [`PartitionKey ${present.partitionKey}, RowKey ${present.rowKey}. This cannot be undone.`],
      action: "Delete entity",
      isDanger: true,
    });
    if (!confirmed) return;
    showProblem(problem, null);
    try {
      await deleteEntity(subject, present);
      toast("Deleted.");
      finish();
    } catch (error) {
      if (error.status === 412) await offerPresent();
      else showProblem(problem, error);
    }
  }

  function finish() {
    hideConflict(conflict);
    isDirty = false;
    dialog.close();
    onChanged();
  }

  async function close() {
    if (isDirty && !(await mayDiscard())) return;
    isDirty = false;
    dialog.close();
  }

  const form = h(
    "form",
    {},
    h("h2", { id: "entity-title" }, isNew ? "New entity" : `Entity ${entity.rowKey}`),
    h("div.row.keys", {}, partitionKey.element, rowKey.element),
    timestamp,
    grid.element,
    conflict,
    problem,
    h(
      "div.row.end",
      {},
      mayChange() && !isNew ? remove : null,
      h("button", { type: "button", onclick: close }, "Close"),
      mayChange() ? save : null,
    ),
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    whileDisabled(save, store);
  });
  form.addEventListener("input", () => (isDirty = true));
  remove.addEventListener("click", erase);
  const dialog = h("dialog.entity", { "aria-labelledby": "entity-title" }, form);
  // Escape: what was typed is not thrown away without a question.
  dialog.addEventListener("cancel", (event) => {
    if (!isDirty) return;
    event.preventDefault();
    close();
  });
  dialog.addEventListener("close", () => dialog.remove());
  show(entity);
  document.body.append(dialog);
  dialog.showModal();
}

function mayDiscard() {
  return confirmAction({
    title: "Close without saving?",
    lines: ["Your changes to the entity are not saved. They will be lost."],
    action: "Close without saving",
    isDanger: true,
  });
}

function keyField(id, label, value, isNew) {
  const input = h("input", { id, value, readonly: !isNew, spellcheck: "false", autocomplete: "off" });
  return { input, element: h("div.grow", {}, h("label", { for: id }, label), input) };
}
