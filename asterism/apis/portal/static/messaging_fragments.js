// The fragments of a queue or topic, drawn with their messages and state; an operator closes and opens them.
import { bytes, count } from "./format.js";
import { send } from "./messaging_api.js";
import { bar } from "./messaging_parts.js";
import { sentenceOf } from "./trouble.js";
import { confirmAction, h, mayChange, toast } from "./ui.js";

const TAGS = { up: "good", down: "bad", closed: "warn" };
// The list as it was drawn last: it is drawn again only if something differs, so that focus stays on a button.
let drawn = "";

export function showFragments(place, fragments, { canClose, afterwards }) {
  const text = JSON.stringify(fragments);
  if (text === drawn) return;
  drawn = text;
  const largest = Math.max(1, ...fragments.map(({ messages }) => messages ?? 0));
  place.replaceChildren(...fragments.map((fragment) => tile(fragment, largest, canClose && mayChange(), afterwards)));
}

function tile(fragment, largest, canClose, afterwards) {
  const { id, state, messages } = fragment;
  return h(
    `li.${state}`,
    { "aria-label": `Fragment ${id}` },
    h("div.row.between", {}, h("strong", {}, `Fragment ${id}`), h(`span.tag.${TAGS[state]}`, {}, state)),
    h("div", {}, `${count(messages)} messages, ${bytes(fragment.bytes)}`),
    bar((messages ?? 0) / largest),
    h("div.faint.small", {}, `${fragment.node}, partition ${fragment.physical_partition}`),
    canClose ? closer(fragment, afterwards) : null,
  );
}

function closer({ id, state }, afterwards) {
  const isClosed = state === "closed";
  const label = `${isClosed ? "Open" : "Close"} fragment ${id}`;
  const act = async () => {
    const lines = ["Messages with a key of this fragment are refused while it is closed; others go around it."];
    if (!isClosed && !(await confirmAction({ title: label, lines, action: "Close", isDanger: true }))) return;
    try {
      await send("messaging/fragment", { fragment: id, is_closed: !isClosed });
    } catch (error) {
      toast(sentenceOf(error), { isProblem: true });
    }
    afterwards();
  };
  return h("button.small", { type: "button", "aria-label": label, onclick: act }, isClosed ? "Open" : "Close");
}
