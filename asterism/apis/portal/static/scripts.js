// Scripts of a container: three lists, and the one that is open. The address names it: #sprocs/NAME.
import { KINDS, listScripts } from "./scripts_api.js";
import { openScript } from "./scripts_editor.js";
import { TEMPLATES } from "./scripts_templates.js";
import { sentenceOf, showGone } from "./trouble.js";
import { collection, confirmAction, h, mayChange } from "./ui.js";

const subject = collection();
const content = document.getElementById("scripts");
const lists = document.getElementById("script-lists");
const pane = document.getElementById("script-pane");
let known = {};
let opened = null;

async function load() {
  try {
    const kinds = Object.keys(KINDS);
    const found = await Promise.all(kinds.map((kind) => listScripts(subject, kind)));
    known = Object.fromEntries(kinds.map((kind, place) => [kind, found[place]]));
  } catch (error) {
    if (error.status === 404) showGone(content, subject.kind);
    else
      pane.replaceChildren(
        h("p.problem", { role: "alert" }, sentenceOf(error)),
        h("button", { type: "button", onclick: start }, "Try again"),
      );
    return false;
  }
  return true;
}

function showLists(chosen) {
  lists.replaceChildren(
    ...Object.entries(KINDS).flatMap(([kind, { plural, noun }]) => [
      h(
        "div.row.between",
        {},
        h("h2", { id: `heading-${kind}` }, plural),
        mayChange()
          ? h("button.small", { type: "button", onclick: () => begin(kind), "aria-label": `New ${noun}` }, "New")
          : null,
      ),
      known[kind].length === 0
        ? h("p.faint.small", {}, "None yet.")
        : h(
            "ul.script-names",
            { "aria-labelledby": `heading-${kind}` },
            ...known[kind].map((script) => h("li", {}, link(kind, script, chosen))),
          ),
    ]),
  );
}

function link(kind, script, chosen) {
  const address = addressOf(kind, script.id);
  const about =
    kind === "triggers" ? h("span.faint.small", {}, ` ${script.triggerType}, ${script.triggerOperation}`) : null;
  return h("a", { href: address, "aria-current": address === chosen ? "true" : null }, script.id, about);
}

const addressOf = (kind, id) => `#${kind}/${encodeURIComponent(id)}`;

function partsOf(address) {
  try {
    return address.slice(1).split("/").map(decodeURIComponent);
  } catch {
    // An address that somebody has cut in the middle of a character.
    return [];
  }
}

async function mayLeave() {
  if (!opened?.isDirty()) return true;
  return confirmAction({
    title: "Leave without saving?",
    lines: ["The script has changes that are not saved. They will be lost."],
    action: "Leave without saving",
    isDanger: true,
  });
}

async function begin(kind) {
  if (!(await mayLeave())) return;
  opened = null;
  history.replaceState(null, "", location.pathname);
  showLists("");
  const script = { id: "", body: TEMPLATES[kind], triggerType: "Pre", triggerOperation: "All" };
  opened = openScript(pane, subject, kind, script, { onStored: (stored) => goTo(kind, stored.id), onDeleted: start });
}

async function goTo(kind, id) {
  opened = null;
  history.replaceState(null, "", addressOf(kind, id));
  await start();
}

async function start() {
  opened = null;
  if (await load()) showChosen();
}

function showChosen() {
  showLists(location.hash);
  const [kind, id] = partsOf(location.hash);
  const script = known[kind]?.find((candidate) => candidate.id === id);
  if (script === undefined) {
    opened = null;
    pane.replaceChildren(
      h(
        "p.faint",
        {},
        id
          ? `There is no script ${id} here any more.`
          : "Choose a script to see, edit and run it" + (mayChange() ? ", or create one." : "."),
      ),
    );
    return;
  }
  opened = openScript(pane, subject, kind, script, {
    onStored: () => {},
    onDeleted: () => {
      history.replaceState(null, "", location.pathname);
      start();
    },
  });
}

// Also the way of the browser's own buttons. The address that was left comes back if the visitor stays.
addEventListener("hashchange", async (event) => {
  if (await mayLeave()) await start();
  else history.replaceState(null, "", event.oldURL);
});
addEventListener("beforeunload", (event) => {
  if (opened?.isDirty()) event.preventDefault();
});
start();
