// Time to live and indexing policy: both are parts of the container's definition, which is written as a whole.
import { createEditor } from "./editor.js";
import { hideConflict, showConflict } from "./conflict.js";
import { showProblem, whileDisabled } from "./trouble.js";
import { mayChange, setText, toast } from "./ui.js";
import { readContainer, replaceContainer } from "./settings_container.js";
import { fillTtl, showSeconds, ttlOf } from "./settings_ttl.js";

const DONE_PERCENT = 100;
const textOf = (policy) => JSON.stringify(policy, null, 2);

export function mountDefinition(subject) {
  const place = (id) => document.getElementById(id);
  const ttlForm = place("ttl-form");
  const savePolicy = place("policy-save");
  const card = { onSaved: () => {}, show };
  // As it was when the visitor began to change it: its etag goes with what they save.
  let base = null;
  let isPolicyDirty = false;
  let isTtlDirty = false;
  const editor = createEditor(place("policy-editor"), {
    language: "json",
    value: "",
    readOnly: !mayChange(),
    label: "Indexing policy",
    onChange: () => setPolicyDirty(base !== null && editor.getValue() !== textOf(base.definition.indexingPolicy)),
    onRun: () => mayChange() && storePolicy(),
  });

  function setPolicyDirty(isDirty) {
    isPolicyDirty = isDirty;
    if (savePolicy) savePolicy.disabled = !isDirty;
  }

  function show(container) {
    showProgress(container.indexPercent);
    if (isPolicyDirty || isTtlDirty || base?.etag === container.etag) return;
    adopt(container);
  }

  function adopt(container) {
    base = container;
    fillTtl(ttlForm, container.definition.defaultTtl);
    isTtlDirty = false;
    if (editor.getValue() !== textOf(container.definition.indexingPolicy)) {
      editor.setValue(textOf(container.definition.indexingPolicy));
    }
    setPolicyDirty(false);
  }

  function showProgress(percent) {
    const isDone = percent >= DONE_PERCENT;
    place("index-progress").hidden = isDone;
    place("index-progress").value = percent;
    setText(place("index-state"), isDone ? "The index follows this policy." : `Index transformation: ${percent} %`);
  }

  // Save some properties of the definition; the others stay as they are stored.
  async function store(changes, message) {
    const definition = { ...base.definition, ...changes };
    for (const name of Object.keys(changes)) if (changes[name] === undefined) delete definition[name];
    const stored = await replaceContainer(subject, definition, base.etag);
    base = stored;
    showProgress(stored.indexPercent);
    toast(message);
    card.onSaved();
  }

  async function storePolicy() {
    const problem = place("policy-problem");
    showProblem(problem, null);
    let policy;
    try {
      policy = JSON.parse(editor.getValue());
    } catch (error) {
      showProblem(problem, new Error(`This is not JSON yet: ${error.message}.`));
      return;
    }
    try {
      await store({ indexingPolicy: policy }, "Indexing policy saved.");
      hideConflict(place("policy-conflict"));
      editor.setValue(textOf(base.definition.indexingPolicy));
      setPolicyDirty(false);
    } catch (error) {
      if (error.status === 412)
        await offerPresent("policy", (container) => textOf(container.definition.indexingPolicy));
      else showProblem(problem, error);
    }
  }

  async function storeTtl() {
    showProblem(place("ttl-problem"), null);
    try {
      const ttl = ttlOf(ttlForm);
      await store({ defaultTtl: ttl }, "Time to live saved.");
      isTtlDirty = false;
      hideConflict(place("ttl-conflict"));
    } catch (error) {
      if (error.status === 412) await offerPresent("ttl", (container) => ttlText(container.definition.defaultTtl));
      else showProblem(place("ttl-problem"), error);
    }
  }

  async function offerPresent(part, describe) {
    const present = await readContainer(subject);
    showConflict(place(`${part}-conflict`), {
      noun: "container's settings",
      present: describe(present),
      take: () => adopt(present),
      keep: () => (base = present),
    });
  }

  ttlForm.addEventListener("input", () => {
    isTtlDirty = true;
    showSeconds(ttlForm);
  });
  ttlForm.addEventListener("submit", (event) => {
    event.preventDefault();
    whileDisabled(place("ttl-save"), storeTtl);
  });
  savePolicy?.addEventListener("click", () => storePolicy());
  return card;
}

function ttlText(ttl) {
  if (ttl === undefined || ttl === null) return "off";
  return ttl === -1 ? "on, without a default" : `${ttl} seconds`;
}
