// Small parts of pages: elements made without markup from data, messages, confirmations, polling.

// h("a.button", { href: "/" }, "text", child): text stays text, so data can never become markup.
export function h(tag, attributes = {}, ...children) {
  const [name, ...classes] = tag.split(".");
  const element = document.createElement(name || "div");
  if (classes.length) element.className = classes.join(" ");
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key === "dataset") Object.assign(element.dataset, value);
    else if (key === "value") element.value = value;
    else element.setAttribute(key, value === true ? "" : String(value));
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

const SVG = "http://www.w3.org/2000/svg";

export function svg(name, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
  element.append(...children.flat());
  return element;
}

export function toast(message, { isProblem = false } = {}) {
  const shown = h(isProblem ? "div.toast.problem" : "div.toast", {}, message);
  document.getElementById("toasts").append(shown);
  setTimeout(() => shown.remove(), isProblem ? 10000 : 4000);
}

export function showBanner(message, link = null) {
  const banner = document.getElementById("banner");
  banner.replaceChildren(message, link ? h("a", { href: link.address }, link.label) : "");
  banner.hidden = false;
}

export function hideBanner() {
  document.getElementById("banner").hidden = true;
}

// Only a text that differs is put in: a screen reader would read the same one aloud again.
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export const mayChange = () => document.body.dataset.mayChange === "yes";

// Ask before something is done; resolves true when it was confirmed. `typed`: a name that must be typed first.
export function confirmAction({ title, lines = [], action, typed = null, isDanger = false }) {
  return new Promise((resolve) => {
    const input = typed === null ? null : h("input", { id: "typed-name", autocomplete: "off", spellcheck: "false" });
    const button = h(isDanger ? "button.danger" : "button.primary", { type: "submit", disabled: typed !== null }, action);
    input?.addEventListener("input", () => (button.disabled = input.value !== typed));
    const form = h(
      "form",
      { method: "dialog" },
      h("h2", { id: "dialog-title" }, title),
      ...lines.map((line) => h("p", {}, line)),
      input && h("label", { for: "typed-name" }, "Type the name ", h("code", {}, typed), " to confirm"),
      input,
      h(
        "div.row.end",
        {},
        h("button", { type: "button", onclick: () => dialog.close() }, "Cancel"),
        button,
      ),
    );
    const dialog = h("dialog", { "aria-labelledby": "dialog-title" }, form);
    let confirmed = false;
    form.addEventListener("submit", () => (confirmed = true));
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(confirmed);
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}

// Returns a function to call before each request of a kind; it returns one that says, when the answer is there, whether
// no later request of the kind has been made: a later one may have been answered first.
export function newest() {
  let last = 0;
  return () => {
    const number = (last += 1);
    return () => number === last;
  };
}

// Call `load` now and then every `seconds`; less often while the page is hidden or the server does not answer.
// Returns a function that calls it at once. `load` may throw: the next call comes anyway. It may return the seconds until
// the next call; Infinity ends the polling.
export function poll(load, seconds) {
  let timer = null;
  let wait = seconds;
  let isRunning = false;
  async function run() {
    clearTimeout(timer);
    if (isRunning) return;
    isRunning = true;
    try {
      const asked = document.hidden ? undefined : await load();
      wait = typeof asked === "number" ? asked : seconds;
    } catch (problem) {
      if (problem.name !== "Unreachable" && problem.name !== "ApiError") console.error(problem);
      wait = Math.min(Math.max(wait, 1) * 2, 15);
    } finally {
      isRunning = wait === Infinity;
      if (!isRunning) timer = setTimeout(run, wait * 1000);
    }
  }
  document.addEventListener("visibilitychange", () => document.hidden || run());
  run();
  return run;
}

// What the page is about, as the server has put it into the page.
export function collection() {
  return collectionOf(document.getElementById("collection"));
}

function namesOf({ kind, account, database, name }) {
  if (kind === "table") return { account, table: name };
  if (kind === "container of blobs") return { account, blob: name };
  return kind === "queues" ? { account, queue: "*" } : { database, container: name };
}

// The same of another element with these attributes: the comparison has two.
export function collectionOf(element) {
  const data = element.dataset;
  const isTable = data.kind === "table";
  const { account, database, name, page } = data;
  return {
    kind: data.kind,
    isTable,
    account,
    database,
    name,
    page,
    partitionKey: JSON.parse(data.partitionKey ?? "null"),
    // Parameters of the operator's door.
    names: namesOf(data),
    // Path of the data door.
    link: isTable ? name : `dbs/${database}/colls/${name}`,
  };
}
