// The list of items: pages of a logical partition or of the whole container, one below the other.
import { bytes, moment } from "./format.js";
import { readPage } from "./items_api.js";
import { idOf, keyLabel, keyOfItem, systemOf } from "./items_model.js";
import { sentenceOf } from "./trouble.js";
import { collection, h } from "./ui.js";

const PAGE_ITEMS = 50;

// `onOpen` gets { id, key }; `onPage` the items of each page; `onGone` is called when the container does not exist.
export function itemList({ onOpen, onPage, onGone }) {
  const { partitionKey } = collection();
  const list = document.getElementById("items");
  const state = document.getElementById("list-state");
  const problem = document.getElementById("list-problem");
  const more = document.getElementById("more-items");
  let key = null;
  let continuation = null;
  let loading = null;
  // The name of the open item, which is marked in whatever list is shown.
  let marked = null;

  function row(item) {
    const id = idOf(item);
    const ownKey = keyOfItem(item, partitionKey.paths);
    const { _ts } = systemOf(item);
    // Of all items the key tells them apart; of a whole key it is the same for all.
    const isKeyShown = ownKey.length > 0 && (key === null || key.length < partitionKey.paths.length);
    const facts = [isKeyShown ? keyLabel(ownKey) : null, bytes(item.to - item.from), moment(Number(_ts))];
    return h(
      "li",
      {},
      h(
        "button.choice",
        {
          type: "button",
          dataset: { item: nameOf(id, ownKey) },
          "aria-current": nameOf(id, ownKey) === marked ? "true" : null,
          onclick: () => onOpen({ id, key: ownKey }),
        },
        h("span.mono", {}, id),
        h("span.faint.small", {}, facts.filter((fact) => fact !== null).join(" · ")),
      ),
    );
  }

  async function load() {
    loading?.abort();
    const mine = (loading = new AbortController());
    more.disabled = true;
    state.textContent = "Loading…";
    try {
      const page = await readPage(key, { continuation, size: PAGE_ITEMS, signal: mine.signal });
      if (mine.signal.aborted) return;
      list.append(...page.items.map(row));
      continuation = page.continuation;
      more.hidden = continuation === null;
      problem.hidden = true;
      const shown = list.children.length;
      state.textContent = countText(list.children.length, continuation !== null);
      onPage(page.items);
    } catch (error) {
      if (error.name === "AbortError") return;
      state.textContent = "";
      if (error.name !== "ApiError" && error.name !== "Unreachable") throw error;
      if (error.status === 404) {
        onGone();
        return;
      }
      problem.textContent = sentenceOf(error);
      problem.hidden = false;
      more.hidden = false;
    } finally {
      if (loading === mine) more.disabled = false;
    }
  }

  function show(chosen) {
    key = chosen;
    continuation = null;
    list.replaceChildren();
    more.hidden = true;
    document.getElementById("list-title").textContent = key === null ? "All items" : `Items of ${keyLabel(key)}`;
    return load();
  }

  more.addEventListener("click", load);
  return {
    show,
    reload: () => show(key),
    key: () => key,
    // Mark the open item.
    mark(id, ownKey) {
      marked = id === null ? null : nameOf(id, ownKey);
      for (const button of list.querySelectorAll("button")) {
        if (button.dataset.item === marked) button.setAttribute("aria-current", "true");
        else button.removeAttribute("aria-current");
      }
    },
  };
}

function nameOf(id, key) {
  return JSON.stringify([id, key]);
}

function countText(number, hasMore) {
  if (number === 0 && !hasMore) return "There are no items here.";
  return `${number} item${number === 1 ? "" : "s"}${hasMore ? " so far" : ""}.`;
}
