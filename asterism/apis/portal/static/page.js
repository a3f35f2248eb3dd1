// Parts that every page has: the theme switch, copy buttons, tab lists, dialogs that close.
import { toast } from "./ui.js";

function switchTheme() {
  const other = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  document.dispatchEvent(new CustomEvent("choose-theme", { detail: other }));
}

async function copy(button) {
  const source = document.getElementById(button.dataset.copy);
  const text = source.dataset.secret ?? source.value ?? source.textContent;
  try {
    await navigator.clipboard.writeText(text);
    toast("Copied.");
  } catch {
    // Without https or localhost there is no clipboard: select the text instead.
    getSelection().selectAllChildren(source);
    toast("Press Ctrl+C to copy the selected text.");
  }
}

function choose(tab) {
  for (const other of tab.parentElement.querySelectorAll("[role=tab]")) {
    const isChosen = other === tab;
    other.setAttribute("aria-selected", String(isChosen));
    other.tabIndex = isChosen ? 0 : -1;
    document.getElementById(other.getAttribute("aria-controls")).hidden = !isChosen;
  }
}

function onKey(event) {
  const tab = event.target.closest?.("[role=tab]");
  if (!tab || (event.key !== "ArrowRight" && event.key !== "ArrowLeft")) return;
  const tabs = [...tab.parentElement.querySelectorAll("[role=tab]")];
  const step = event.key === "ArrowRight" ? 1 : -1;
  const next = tabs[(tabs.indexOf(tab) + step + tabs.length) % tabs.length];
  choose(next);
  next.focus();
}

// On a narrow page the tabs scroll: the one that is shown must be among those that are seen.
document.querySelector(".tabs [aria-current=page]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
document.getElementById("theme")?.addEventListener("click", switchTheme);
document.addEventListener("keydown", onKey);
document.addEventListener("click", (event) => {
  const copyButton = event.target.closest("[data-copy]");
  if (copyButton) copy(copyButton);
  const tab = event.target.closest("[role=tab]");
  if (tab) choose(tab);
  const closer = event.target.closest("[data-close]");
  if (closer) closer.closest("dialog").close();
  const reveal = event.target.closest("[data-reveal]");
  if (reveal) {
    const secret = document.getElementById(reveal.dataset.reveal);
    const isShown = secret.textContent === secret.dataset.secret;
    secret.textContent = isShown ? secret.dataset.masked : secret.dataset.secret;
    reveal.textContent = isShown ? "Show" : "Hide";
  }
});
// A click before the scripts listen would be lost. This event comes when all scripts of the page have run once.
document.addEventListener("DOMContentLoaded", () => {
  for (const button of document.querySelectorAll("[data-waits]")) button.disabled = false;
});
