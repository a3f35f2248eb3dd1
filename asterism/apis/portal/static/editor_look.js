// The colors of the editor, which are the page's: light and dark change with the style sheet.
import { EditorView, HighlightStyle, syntaxHighlighting, tags } from "./libraries/codemirror.js";

export const COLORS = syntaxHighlighting(
  HighlightStyle.define([
    {
      tag: [tags.keyword, tags.operatorKeyword, tags.modifier, tags.controlKeyword],
      color: "var(--accent)",
      fontWeight: "600",
    },
    { tag: [tags.string, tags.special(tags.string), tags.regexp], color: "var(--good)" },
    { tag: [tags.number, tags.special(tags.name)], color: "var(--warn)" },
    { tag: [tags.bool, tags.null, tags.atom], color: "var(--warn)", fontWeight: "600" },
    { tag: [tags.propertyName, tags.standard(tags.name), tags.function(tags.variableName)], color: "var(--accent)" },
    { tag: tags.comment, color: "var(--faint)", fontStyle: "italic" },
    { tag: tags.invalid, color: "var(--bad)" },
  ]),
);

// The library's own rule for the selection, which is as specific as this one.
const SELECTION = ["&", "&.cm-focused"]
  .map((editor) => `${editor} > .cm-scroller > .cm-selectionLayer .cm-selectionBackground`)
  .join(", ");

export const LOOK = EditorView.theme({
  "&": {
    color: "var(--ink)",
    backgroundColor: "var(--card)",
    border: "1px solid var(--line)",
    borderRadius: "6px",
    height: "100%",
  },
  "&.cm-focused": { outline: "2px solid var(--accent)", outlineOffset: "1px" },
  ".cm-scroller": { fontFamily: "var(--mono)", fontSize: ".88rem", lineHeight: "1.5" },
  ".cm-content": { caretColor: "var(--ink)" },
  ".cm-gutters": { backgroundColor: "var(--code)", color: "var(--faint)", borderRight: "1px solid var(--line)" },
  ".cm-cursor": { borderLeftColor: "var(--ink)" },
  [SELECTION]: { background: "color-mix(in srgb, var(--accent) 28%, transparent)" },
  ".cm-selectionMatch": { backgroundColor: "var(--warn-soft)" },
  ".cm-searchMatch": { backgroundColor: "var(--warn-soft)", outline: "1px solid var(--warn)" },
  "&.cm-focused .cm-matchingBracket": { backgroundColor: "var(--soft)", outline: "1px solid var(--line)" },
  ".cm-foldPlaceholder": { backgroundColor: "var(--soft)", border: "1px solid var(--line)", color: "var(--faint)" },
  ".cm-tooltip": {
    backgroundColor: "var(--card)",
    color: "var(--ink)",
    border: "1px solid var(--line)",
    borderRadius: "6px",
  },
  ".cm-tooltip-autocomplete ul li[aria-selected]": { backgroundColor: "var(--accent)", color: "var(--accent-ink)" },
  ".cm-completionDetail": { color: "inherit", opacity: ".7", fontStyle: "normal", marginLeft: ".6rem" },
  ".cm-diagnostic": { fontFamily: "inherit", borderLeft: "4px solid var(--bad)" },
  ".cm-panels": { backgroundColor: "var(--code)", color: "var(--ink)" },
  ".cm-panels.cm-panels-bottom": { borderTop: "1px solid var(--line)" },
  ".cm-textfield": { backgroundColor: "var(--card)", border: "1px solid var(--line)" },
  ".cm-button": {
    backgroundImage: "none",
    backgroundColor: "var(--card)",
    border: "1px solid var(--line)",
    color: "var(--ink)",
  },
});
