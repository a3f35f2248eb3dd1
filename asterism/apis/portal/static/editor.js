// The code editor of the portal: CodeMirror with the page's colors.
import {
  Compartment,
  EditorState,
  EditorView,
  LanguageSupport,
  Prec,
  SQLDialect,
  autocompletion,
  bracketMatching,
  closeBrackets,
  closeBracketsKeymap,
  completionKeymap,
  defaultKeymap,
  drawSelection,
  foldGutter,
  foldKeymap,
  highlightSelectionMatches,
  highlightSpecialChars,
  history,
  historyKeymap,
  indentOnInput,
  indentUnit,
  javascript,
  json,
  keymap,
  lineNumbers,
  lintKeymap,
  search,
  searchKeymap,
  setDiagnostics,
} from "./libraries/codemirror.js";
import { problemsOf } from "./json_text.js";
import { COLORS, LOOK } from "./editor_look.js";
import { FUNCTIONS, KEYWORDS, LITERALS } from "./query_words.js";

// Above this many characters a text is edited without colors, checks and folding: an item may have 2 MB, and these
// would read the whole text again after a key.
const CHARACTERS_IN_COLOR_MAX = 300_000;
// So long after the last key a JSON text is checked.
const CHECK_MILLISECONDS = 400;

const QUERY_LANGUAGE = SQLDialect.define({
  keywords: KEYWORDS.toLowerCase(),
  types: "",
  builtin: `${FUNCTIONS} ${LITERALS}`.toLowerCase(),
  backslashEscapes: true,
  doubleQuotedStrings: true,
  specialVar: "@",
}).language;

const LANGUAGES = {
  sql: () => new LanguageSupport(QUERY_LANGUAGE),
  json: () => json(),
  javascript: () => javascript(),
};

// Make an editor inside `parent`:
//   language  "sql" (queries of containers), "json" (checked while it is edited) or "javascript"
//   label     its name for screen readers
//   onChange  called with nothing after each change by a person
//   onRun     called on Ctrl+Enter (or Cmd+Enter)
//   complete  ({ before, text, isAsked }) => null or { from, options: [{ label, type, detail }] }; `before` is the
//             text up to the cursor, `from` the offset at which the completed word begins, `isAsked` true after
//             Ctrl+Space
// Returns { getValue, setValue, setErrors, setReadOnly, focus, moveTo, destroy }. setErrors([{ from, to, message }])
// underlines; the next change of the text removes the lines.
export function createEditor(parent, options) {
  const { language, value = "", label, readOnly = false, onChange, onRun, complete } = options;
  const nonce = document.querySelector("meta[name=style-nonce]")?.content ?? "";
  const extras = new Compartment();
  const locked = new Compartment();
  let isLocked = readOnly;
  let isLarge = isLargeText(value);
  let checking = null;

  const extrasFor = (large) =>
    large
      ? []
      : [
          LANGUAGES[language](),
          COLORS,
          foldGutter(),
          bracketMatching(),
          closeBrackets(),
          indentOnInput(),
          highlightSelectionMatches(),
          EditorView.lineWrapping,
        ];
  const lockFor = (is) => [
    EditorState.readOnly.of(is),
    EditorView.contentAttributes.of(is ? { "aria-readonly": "true" } : {}),
  ];

  function completeHere(context) {
    const text = context.state.doc.toString();
    const found = complete({ before: text.slice(0, context.pos), text, isAsked: context.explicit });
    return found && { ...found, validFor: /^[\w$]*$/ };
  }

  function stateOf(text) {
    return EditorState.create({
      doc: text,
      extensions: [
        EditorView.cspNonce.of(nonce),
        onRun ? Prec.highest(keymap.of([{ key: "Mod-Enter", run: () => (onRun(), true) }])) : [],
        lineNumbers(),
        highlightSpecialChars(),
        history(),
        drawSelection(),
        indentUnit.of("  "),
        EditorState.tabSize.of(2),
        search({ top: false }),
        complete ? autocompletion({ override: [completeHere], icons: false }) : [],
        keymap.of([
          ...closeBracketsKeymap,
          ...defaultKeymap,
          ...searchKeymap,
          ...historyKeymap,
          ...foldKeymap,
          ...completionKeymap,
          ...lintKeymap,
        ]),
        EditorView.contentAttributes.of({
          "aria-label": label ?? "",
          spellcheck: "false",
          autocorrect: "off",
          autocapitalize: "off",
        }),
        EditorView.updateListener.of(afterUpdate),
        EditorView.domEventHandlers({ beforeinput: replaceSelected }),
        LOOK,
        extras.of(extrasFor(isLarge)),
        locked.of(lockFor(isLocked)),
      ],
    });
  }

  function afterUpdate(update) {
    if (!update.docChanged) return;
    const isLargeNow = update.state.doc.length > CHARACTERS_IN_COLOR_MAX;
    // An update cannot start another one before it has ended.
    queueMicrotask(() => {
      if (isLargeNow !== isLarge) {
        isLarge = isLargeNow;
        view.dispatch({ effects: extras.reconfigure(extrasFor(isLarge)) });
      }
      setErrors([]);
    });
    checkSoon();
    onChange?.();
  }

  function checkSoon() {
    clearTimeout(checking);
    if (language !== "json" || isLocked) return;
    checking = setTimeout(() => {
      const text = getValue();
      if (!isLargeText(text) && text.trim()) setErrors(problemsOf(text));
    }, CHECK_MILLISECONDS);
  }

  function setErrors(errors) {
    const length = view.state.doc.length;
    const shown = errors.map(({ from, to, message }) => {
      const start = Math.max(0, Math.min(from, length));
      return { from: start, to: Math.max(start, Math.min(to, length)), severity: "error", message };
    });
    view.dispatch(setDiagnostics(view.state, shown));
  }

  function getValue() {
    return view.state.doc.toString();
  }

  // Another text, without the history of the one before.
  function setValue(text) {
    isLarge = isLargeText(text);
    clearTimeout(checking);
    view.setState(stateOf(text));
  }

  function setReadOnly(is) {
    isLocked = is;
    view.dispatch({ effects: locked.reconfigure(lockFor(is)) });
  }

  const view = new EditorView({ parent, state: stateOf(value) });
  return {
    getValue,
    setValue,
    setErrors,
    setReadOnly,
    focus: () => view.focus(),
    // Put the cursor at an offset and show it.
    moveTo: (offset) =>
      view.dispatch({ selection: { anchor: Math.min(offset, view.state.doc.length) }, scrollIntoView: true }),
    destroy: () => {
      clearTimeout(checking);
      view.destroy();
    },
  };
}

// A key typed over selected text: the browser would insert it with a style attribute that keeps the color of what it
// replaces, and the page's policy refuses those. So the editor replaces the text itself.
function replaceSelected(event, view) {
  const { main } = view.state.selection;
  if (event.inputType !== "insertText" || !event.data || event.isComposing || main.empty || view.state.readOnly)
    return false;
  const change = () => view.state.update(view.state.replaceSelection(event.data), { userEvent: "input.type" });
  const handlers = view.state.facet(EditorView.inputHandler);
  if (!handlers.some((handle) => handle(view, main.from, main.to, event.data, change))) view.dispatch(change());
  event.preventDefault();
  return true;
}

function isLargeText(text) {
  return text.length > CHARACTERS_IN_COLOR_MAX;
}
