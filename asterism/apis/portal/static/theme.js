// Runs before the page is drawn, so that it does not flash in the other theme first: the one that was chosen here, or
// else that of the system.
(() => {
  const system = matchMedia("(prefers-color-scheme: dark)");
  function apply() {
    const chosen = localStorage.getItem("asterism-theme");
    const theme = chosen === "light" || chosen === "dark" ? chosen : system.matches ? "dark" : "light";
    document.documentElement.dataset.theme = theme;
    document.dispatchEvent(new CustomEvent("theme"));
  }
  system.addEventListener("change", apply);
  document.addEventListener("choose-theme", (event) => {
    localStorage.setItem("asterism-theme", event.detail);
    apply();
  });
  apply();
})();
