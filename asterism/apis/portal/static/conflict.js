// A change that was refused with 412: somebody else was faster. The visitor's text stays until they decide.
import { h } from "./ui.js";

// Show both ways out. `present` is what is stored now, as text; `take` puts it in the place of the visitor's own,
// `keep` remembers its etag, so that the next save writes the visitor's own over it.
export function showConflict(place, { noun, present, take, keep }) {
  const choose = (act, message) => () => {
    act();
    place.replaceChildren(h("p.faint.small", { role: "status" }, message));
  };
  place.replaceChildren(
    h(
      "div.conflict",
      { role: "alert" },
      h(
        "p",
        {},
        h("strong", {}, `Somebody else changed the ${noun} since you opened it. `),
        "Your version is kept here, and is not saved yet.",
      ),
      h("details", { open: true }, h("summary", {}, "The present version"), h("pre", { tabindex: "0" }, present)),
      h(
        "div.row",
        {},
        h(
          "button",
          { type: "button", onclick: choose(take, "This is the present version.") },
          "Load the present version",
        ),
        h(
          "button",
          {
            type: "button",
            onclick: choose(keep, `Your version is kept. Save again to write it over the present ${noun}.`),
          },
          "Keep mine",
        ),
      ),
    ),
  );
  place.hidden = false;
}

export function hideConflict(place) {
  place.replaceChildren();
}
