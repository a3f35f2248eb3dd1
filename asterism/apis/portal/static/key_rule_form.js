// The form of a synthetic key's rule. It reads what a person chose and checks nothing: the server does, and says why.
import { h } from "./ui.js";

// How the value of a part is written. `extra` is a further field; `bucket` and `format` read time stamps.
const FORMS = {
  plain: { label: "as it is" },
  hour: { label: "hour of a time stamp", isTime: true },
  day: { label: "day of a time stamp", isTime: true },
  month: { label: "month of a time stamp", isTime: true },
  format: { label: "time stamp in a format", isTime: true, extra: { label: "Format", type: "text", value: "%Y%m%d" } },
  digits: { label: "whole number, with zeros", extra: { label: "Digits", type: "number", value: "6" } },
  decimals: { label: "number with decimals", extra: { label: "Decimals", type: "number", value: "2" } },
};
const PARTS_MAX = 8;

const options = (labels) => Object.entries(labels).map(([value, label]) => h("option", { value }, label));

function input(attributes) {
  return h("input.mono", { autocomplete: "off", spellcheck: "false", ...attributes });
}

function labeled(id, label, field) {
  field.id = id;
  return h("div.labeled", {}, h("label", { for: id }, label), field);
}

function show(element, is) {
  element.hidden = !is;
}

// A part: { element, read() }. `onRemove` is called when a person removes it.
function partRow(onRemove) {
  const path = input({ placeholder: "/deviceId" });
  const form = h("select", {}, ...options(Object.fromEntries(Object.entries(FORMS).map(([name, { label }]) => [name, label]))));
  const extra = input({});
  const unit = h("select", {}, ...options({ s: "numbers: seconds", ms: "numbers: ms" }));
  const remove = h("button.small", { type: "button", onclick: onRemove }, "Remove");
  const element = h("li.row", {}, path, form, extra, unit, remove);

  function follow() {
    const { extra: field, isTime } = FORMS[form.value];
    show(extra, field !== undefined);
    show(unit, isTime === true);
    if (field && extra.dataset.of !== form.value) Object.assign(extra, { type: field.type, value: field.value });
    extra.dataset.of = form.value;
  }
  form.addEventListener("change", follow);
  follow();

  // Screen readers tell the parts apart by these names.
  function number(place, isOnly) {
    const of = `of part ${place + 1}`;
    path.setAttribute("aria-label", `Path ${of}`);
    form.setAttribute("aria-label", `Form ${of}`);
    extra.setAttribute("aria-label", `${FORMS[form.value].extra?.label ?? "Detail"} ${of}`);
    unit.setAttribute("aria-label", `Unit ${of}`);
    remove.setAttribute("aria-label", `Remove part ${place + 1}`);
    show(remove, !isOnly);
  }

  function read() {
    const part = { path: path.value.trim() };
    const chosen = form.value;
    const { extra: field, isTime } = FORMS[chosen];
    if (chosen !== "plain" && !field) part.bucket = chosen;
    if (field) part[chosen] = field.type === "number" ? Number(extra.value) : extra.value;
    if (isTime && unit.value !== "s") part.unit = unit.value;
    return Object.keys(part).length === 1 ? part.path : part;
  }

  return { element, read, number, focus: () => path.focus() };
}

function suffixFields() {
  const kind = h(
    "select",
    {},
    ...options({ none: "none", random: "drawn for each item", hash: "by the hash of a property" }),
  );
  const count = input({ type: "number", value: "10" });
  const path = input({ placeholder: "/vin" });
  const separator = input({ value: "." });
  const hint = h("p.faint.small", {});
  const fields = {
    count: labeled("suffix-count", "Suffixes, from 1 to", count),
    path: labeled("suffix-path", "Path of the property", path),
    separator: labeled("suffix-separator", "Separator of the suffix", separator),
  };
  const element = h("div", {}, h("div.row", {}, labeled("suffix-kind", "Suffix", kind), ...Object.values(fields)), hint);

  function follow() {
    show(fields.count, kind.value !== "none");
    show(fields.separator, kind.value !== "none");
    show(fields.path, kind.value === "hash");
    hint.textContent = {
      none: "",
      random: "Writes of one value spread over all suffixes. A read that does not name the suffix asks all of them.",
      hash: "Writes of one value spread. A read that names the property asks one logical partition.",
    }[kind.value];
  }
  kind.addEventListener("change", follow);
  follow();

  function read() {
    if (kind.value === "none") return undefined;
    const suffix = { kind: kind.value, count: Number(count.value), separator: separator.value };
    return kind.value === "hash" ? { ...suffix, path: path.value.trim() } : suffix;
  }

  return { element, read };
}

// { element, read() }: the rule as a container declares it.
export function keyRuleForm() {
  const parts = [];
  const list = h("ol.parts", { "aria-label": "Parts of the key" });
  const add = h("button.small", { type: "button", onclick: () => addPart().focus() }, "Add a part");
  const separator = input({ value: "-" });
  const separatorField = labeled("part-separator", "Separator of the parts", separator);
  const suffix = suffixFields();
  const missing = h(
    "select",
    {},
    ...options({ refuse: "is refused", absent: "is stored without a key value" }),
  );
  const element = h(
    "div.key-rule",
    {},
    list,
    h("div.row", {}, add),
    separatorField,
    suffix.element,
    labeled("missing", "An item that lacks one of the properties", missing),
  );

  function renumber() {
    parts.forEach((part, place) => part.number(place, parts.length === 1));
    show(separatorField, parts.length > 1);
    add.disabled = parts.length >= PARTS_MAX;
  }

  function addPart() {
    const part = partRow(() => {
      parts.splice(parts.indexOf(part), 1);
      part.element.remove();
      renumber();
      // The preview follows the form by this event.
      element.dispatchEvent(new Event("input", { bubbles: true }));
    });
    parts.push(part);
    list.append(part.element);
    renumber();
    return part;
  }

  addPart();
  // The further field of a part has another name after another choice.
  element.addEventListener("change", renumber);
  return {
    element,
    read: () => ({
      parts: parts.map((part) => part.read()),
      separator: separator.value,
      suffix: suffix.read(),
      missing: missing.value,
    }),
  };
}
