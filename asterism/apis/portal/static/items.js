// The page of a container's items: browse by logical partition, query, and edit what was found.
import { itemEditor } from "./items_editor.js";
import { keyChooser } from "./items_keys.js";
import { itemList } from "./items_list.js";
import { keyOfAddress } from "./items_model.js";
import { learnProperties } from "./query_complete.js";
import { queryPanel } from "./query.js";
import { showGone } from "./trouble.js";
import { toast } from "./ui.js";

const explorer = document.getElementById("explorer");
const address = new URLSearchParams(location.search);

function onGone() {
  showGone(explorer, "container");
}

// The address shows the same to another person, or after a reload.
function showInAddress(name, value) {
  const search = new URLSearchParams(location.search);
  if (value === null) search.delete(name);
  else search.set(name, value);
  history.replaceState(null, "", `${location.pathname}${search.size ? `?${search}` : ""}`);
}

const list = itemList({ onOpen: (found) => editor.open(found), onPage: learnProperties, onGone });
const editor = itemEditor({
  onOpened: (id, key) => list.mark(id, key),
  onChanged: () => {
    list.reload();
    suggest();
  },
});
const chooser = keyChooser({
  onChoose: (key) => {
    list.show(key);
    showInAddress("key", key === null ? null : `[${key.join(",")}]`);
  },
});
const query = queryPanel({ onOpen: (found) => editor.open(found), onGone });

function suggest() {
  // Suggestions only: the list says what is wrong.
  chooser.suggest().catch(() => {});
}

for (const tab of ["browse", "query"]) {
  // A tab has the focus after a click and after an arrow key.
  document
    .getElementById(`${tab}-tab`)
    .addEventListener("focus", () => showInAddress("tab", tab === "query" ? tab : null));
}
document.getElementById("new-item")?.addEventListener("click", () => editor.create(list.key()));
if (address.has("query")) query.show(address.get("query"));
if (address.has("query") || address.get("tab") === "query") {
  const tab = document.getElementById("query-tab");
  // It waits for the scripts of the page, as every button does, and this is one.
  tab.disabled = false;
  tab.click();
}
const key = address.has("key") ? keyOfAddress(address.get("key")) : null;
if (address.has("key") && key === null) {
  toast('The key in the address is not JSON, for example ?key=["Oslo"]. All items are shown.', { isProblem: true });
}
chooser.show(key);
list.show(key);
suggest();
