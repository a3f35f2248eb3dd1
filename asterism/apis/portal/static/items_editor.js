// The card of one item: open, edit, save, create, duplicate, delete.
import { showConflict, hideConflict } from "./conflict.js";
import { createEditor } from "./editor.js";
import { count, moment } from "./format.js";
import { createItem, deleteItem, readItem, replaceItem } from "./items_api.js";
import { editableText, idOf, keyLabel, keyOfItem, systemOf } from "./items_model.js";
import { confirmSecond, madeOfOthers } from "./items_moving.js";
import { JsonProblem, compactJson, parseJson } from "./json_text.js";
import { copyText, keptKey, newItemText, sourcePaths } from "./key_rule_model.js";
import { sentenceOf, whileDisabled } from "./trouble.js";
import { collection, confirmAction, h, mayChange, toast } from "./ui.js";

// Of the present version of an item that was changed by somebody else, so much is shown beside the own text.
const PRESENT_CHARACTERS_MAX = 100_000;

// `onOpened` gets (id, key), or (null, null) when none is open; `onChanged` is called after one was created or deleted.
export function itemEditor({ onOpened, onChanged }) {
  const { partitionKey } = collection();
  const { paths } = partitionKey;
  // Of a synthetic key: what it is made of.
  const sources = sourcePaths(partitionKey);
  const part = (name) => document.getElementById(name);
  const problem = part("item-problem");
  const state = part("item-state");
  const conflict = part("item-conflict");
  // The stored item that is edited: { id, key, sources, etag }; null for a new one.
  let stored = null;
  // The text as it was opened or saved; another one means changes that are not saved.
  let cleanText = null;
  let editor = null;
  // Counts what was put into the card: the answer to a save belongs to the text that was shown when it was sent.
  let shown = 0;

  function show(text, title) {
    shown += 1;
    part("item-body").hidden = false;
    part("item-hint").hidden = true;
    part("close-item").hidden = false;
    part("item-title").textContent = title;
    editor ??= createEditor(part("item-editor"), {
      language: "json",
      label: "Item as JSON",
      readOnly: !mayChange(),
      onRun: save,
    });
    editor.setValue(text);
    cleanText = text;
    showState();
  }

  // Everything beside the text.
  function showState() {
    problem.hidden = true;
    hideConflict(conflict);
    if (mayChange()) {
      part("upsert-choice").hidden = stored !== null;
      part("duplicate-item").hidden = part("delete-item").hidden = stored === null;
      part("save-item").textContent = stored === null ? "Create" : "Save";
    }
    part("item-facts-section").hidden = stored === null;
    onOpened(stored?.id ?? null, stored?.key ?? null);
  }

  // `hasNewer`: the visitor has written on since the text was sent, and keeps what they have.
  function showStored({ item, etag }, message, { hasNewer = false } = {}) {
    stored = { id: idOf(item), key: keyOfItem(item, paths), sources: keyHeaderText(keyOfItem(item, sources)), etag };
    if (hasNewer) {
      part("item-title").textContent = stored.id;
      cleanText = editableText(item);
      showState();
    } else {
      show(editableText(item), stored.id);
    }
    showSystem(item);
    state.textContent = message;
  }

  function showSystem(item) {
    const system = systemOf(item);
    const facts = Object.entries({
      "partition key": keyLabel(stored.key),
      changed: moment(Number(system._ts)),
      ...system,
    });
    part("item-facts").replaceChildren(...facts.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
  }

  async function mayLeave() {
    if (!isDirty()) return true;
    return confirmAction({
      title: "Discard your changes?",
      lines: ["The item that is open has changes that are not saved."],
      action: "Discard changes",
    });
  }

  function isDirty() {
    return editor !== null && cleanText !== null && editor.getValue() !== cleanText;
  }

  async function open({ id, key }) {
    if (!(await mayLeave())) return;
    try {
      const read = await readItem(id, key);
      showStored(read, `Read for ${count(read.charge)} RU.`);
      part("item-title").focus({ preventScroll: false });
    } catch (error) {
      toast(error.status === 404 ? `The item ${id} no longer exists. Load the list again.` : sentenceOf(error), {
        isProblem: true,
      });
    }
  }

  async function create(key) {
    if (!(await mayLeave())) return;
    stored = null;
    part("upsert").checked = false;
    show(newItemText(partitionKey, key, crypto.randomUUID?.() ?? String(Date.now())), "New item");
    state.textContent = "";
    editor.focus();
  }

  async function duplicate() {
    const item = read();
    if (item === null) return;
    const text = copyText(editor.getValue(), `${idOf(item) ?? "item"}-copy`, partitionKey);
    stored = null;
    part("upsert").checked = false;
    show(text, "New item");
    // Nothing of it is stored.
    cleanText = "";
    state.textContent = "A copy, not saved yet.";
    editor.focus();
  }

  function close() {
    shown += 1;
    stored = null;
    cleanText = null;
    part("item-body").hidden = true;
    part("item-hint").hidden = false;
    part("close-item").hidden = true;
    part("item-title").textContent = "No item is open";
    onOpened(null, null);
  }

  function fail(message) {
    problem.textContent = message;
    problem.hidden = false;
  }

  // The text as a value, or null after its problem was shown.
  function read() {
    problem.hidden = true;
    try {
      const item = parseJson(editor.getValue());
      if (item.kind === "object") return item;
      fail("An item is an object: { … }.");
    } catch (error) {
      if (!(error instanceof JsonProblem)) throw error;
      editor.setErrors([error]);
      editor.moveTo(error.from);
      fail(`This is not JSON yet: ${error.message}`);
    }
    return null;
  }

  async function save() {
    if (!mayChange()) return;
    const item = read();
    if (item === null) return;
    if (!idOf(item)) {
      fail('An item needs an "id" that is a text.');
      return;
    }
    const written = keyOfItem(item, paths);
    const key = stored === null ? written : keptKey(written, stored.key, partitionKey);
    const isMoved = stored !== null && (idOf(item) !== stored.id || keyHeaderText(key) !== keyHeaderText(stored.key));
    if (isMoved && !(await confirmSecond(stored, idOf(item), key))) return;
    // Without spaces: those of this editor would count towards the 2 MB of an item.
    const text = compactJson(item);
    const isNew = stored === null || isMoved;
    const [place, sent] = [shown, editor.getValue()];
    try {
      const saved = isNew
        ? await createItem(key, text, { isUpsert: part("upsert").checked && stored === null })
        : await replaceItem(stored.id, stored.key, text, stored.etag);
      const hasNewer = editor.getValue() !== sent;
      // Meanwhile the visitor may have opened, copied or closed an item.
      if (place === shown) showStored(saved, `Saved for ${count(saved.charge)} RU.`, { hasNewer });
      toast("Saved.");
      if (isNew) onChanged();
    } catch (error) {
      if (place !== shown) {
        if (error.name !== "ApiError" && error.name !== "Unreachable") throw error;
        toast(`Not saved: ${sentenceOf(error)}`, { isProblem: true });
        return;
      }
      const isOfOthers = stored !== null && keyHeaderText(keyOfItem(item, sources)) !== stored.sources;
      if (error.status === 400 && isOfOthers) fail(madeOfOthers(stored, sources));
      else await explain(error);
    }
  }

  async function explain(error) {
    if (error.name !== "ApiError" && error.name !== "Unreachable") throw error;
    if (error.status === 412 && stored !== null) {
      await showPresent();
    } else if (error.status === 404 && stored !== null) {
      stored = null;
      part("save-item").textContent = "Create";
      fail("Somebody else deleted this item meanwhile. Your text is still here: Create makes it a new item.");
    } else if (error.status === 409) {
      fail("There is an item with this id in this logical partition. Choose another id, or replace that item.");
    } else {
      fail(sentenceOf(error));
    }
  }

  async function showPresent() {
    try {
      const present = await readItem(stored.id, stored.key);
      const text = editableText(present.item);
      const isLong = text.length > PRESENT_CHARACTERS_MAX;
      showConflict(conflict, {
        noun: "item",
        present: isLong ? `${text.slice(0, PRESENT_CHARACTERS_MAX)}\n… ${count(text.length)} characters` : text,
        take: () => showStored(present, "This is the present version."),
        keep: () => (stored.etag = present.etag),
      });
    } catch (error) {
      await explain(error);
    }
  }

  async function remove() {
    const confirmed = await confirmAction({
      title: `Delete the item ${stored.id}?`,
      lines: ["This cannot be undone."],
      action: "Delete item",
      isDanger: true,
    });
    if (!confirmed) return;
    problem.hidden = true;
    try {
      await deleteItem(stored.id, stored.key, stored.etag);
      close();
      toast("Deleted.");
      onChanged();
    } catch (error) {
      if (error.status !== 404) {
        await explain(error);
        return;
      }
      close();
      toast("Somebody else had deleted the item already.");
      onChanged();
    }
  }

  if (mayChange()) {
    const act = (name, action) => part(name).addEventListener("click", () => whileDisabled(part(name), action));
    act("save-item", save);
    act("duplicate-item", duplicate);
    act("delete-item", remove);
  }
  part("close-item").addEventListener("click", async () => {
    if (await mayLeave()) close();
  });
  addEventListener("beforeunload", (event) => isDirty() && event.preventDefault());
  return { open, create };
}

function keyHeaderText(key) {
  return key.join(",");
}
