// JSON as text: numbers and the order of properties stay as they were written. JSON.parse would turn
// 12345678901234567890 into another number and 1.0 into 1, and an editor that saves such a number has changed the data.

// The service refuses deeper items long before; a browser's stack would end somewhat later.
const DEPTH_MAX = 500;

const SPACE = /[ \t\n\r]*/y;
const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?/y;
const WORD = /[A-Za-z_$][\w$]*|[^\s]/y;

// A problem in a JSON text, with the offsets between which it is.
export class JsonProblem extends Error {
  constructor(message, from, to) {
    super(message);
    this.name = "JsonProblem";
    this.from = from;
    this.to = to;
  }
}

// Values are { kind: "object", entries: [[name, value]] }, { kind: "array", values }, { kind: "string", text },
// { kind: "number", text }, { kind: "word", text } (true, false, null). Each `text` is as written, strings with quotes.
// `from` and `to` are offsets of the value; names are decoded.
export function parseJson(text) {
  const reader = new Reader(text);
  const value = reader.value(0);
  reader.skipSpace();
  if (reader.at < text.length) {
    throw new JsonProblem(
      "The value has ended before this. Remove it, or add what is missing.",
      reader.at,
      text.length,
    );
  }
  return value;
}

class Reader {
  constructor(text) {
    this.text = text;
    this.at = 0;
  }

  skipSpace() {
    SPACE.lastIndex = this.at;
    SPACE.test(this.text);
    this.at = SPACE.lastIndex;
  }

  take(pattern) {
    pattern.lastIndex = this.at;
    if (!pattern.test(this.text)) return null;
    const taken = this.text.slice(this.at, pattern.lastIndex);
    this.at = pattern.lastIndex;
    return taken;
  }

  fail(message) {
    const from = this.at;
    const found = this.take(WORD);
    const length = this.text.length;
    if (found === null) throw new JsonProblem(`${message} The text ends here.`, Math.max(0, length - 1), length);
    throw new JsonProblem(message, from, this.at);
  }

  value(depth) {
    if (depth > DEPTH_MAX) throw new JsonProblem(`Values can be nested ${DEPTH_MAX} deep.`, this.at, this.at + 1);
    this.skipSpace();
    const from = this.at;
    const value = this.bareValue(depth);
    value.from = from;
    value.to = this.at;
    return value;
  }

  bareValue(depth) {
    const first = this.text[this.at];
    if (first === "{") return this.object(depth);
    if (first === "[") return this.array(depth);
    if (first === '"') return { kind: "string", text: this.string() };
    for (const word of ["true", "false", "null"]) {
      if (this.text.startsWith(word, this.at)) {
        this.at += word.length;
        return { kind: "word", text: word };
      }
    }
    const number = this.take(NUMBER);
    if (number === null) this.fail("A value is missing: a text in double quotes, a number, true, false, null, { or [.");
    return { kind: "number", text: number };
  }

  string() {
    const from = this.at;
    // Not with a pattern: one that steps through 2 MB exhausts the browser's memory for it.
    let end = this.text.indexOf('"', from + 1);
    while (end > 0 && this.isEscaped(end)) end = this.text.indexOf('"', end + 1);
    const taken = end < 0 ? "" : this.text.slice(from, end + 1);
    if (!isString(taken)) {
      const lineEnd = this.text.indexOf("\n", from);
      throw new JsonProblem(
        "This text does not end with a double quote, or has a character that must be written with a backslash.",
        from,
        lineEnd < 0 ? this.text.length : lineEnd,
      );
    }
    this.at = end + 1;
    return taken;
  }

  isEscaped(place) {
    let before = place;
    while (this.text[before - 1] === "\\") before -= 1;
    return (place - before) % 2 === 1;
  }

  object(depth) {
    const entries = [];
    this.at += 1;
    this.skipSpace();
    if (this.text[this.at] === "}") {
      this.at += 1;
      return { kind: "object", entries };
    }
    for (;;) {
      this.skipSpace();
      if (this.text[this.at] !== '"') this.fail("A property's name in double quotes is missing.");
      const name = JSON.parse(this.string());
      this.skipSpace();
      if (this.text[this.at] !== ":") this.fail("A colon is missing after the property's name.");
      this.at += 1;
      entries.push([name, this.value(depth + 1)]);
      if (this.isLast("}", "A comma or } is missing after the property.")) return { kind: "object", entries };
    }
  }

  array(depth) {
    const values = [];
    this.at += 1;
    this.skipSpace();
    if (this.text[this.at] === "]") {
      this.at += 1;
      return { kind: "array", values };
    }
    for (;;) {
      values.push(this.value(depth + 1));
      if (this.isLast("]", "A comma or ] is missing after the value.")) return { kind: "array", values };
    }
  }

  isLast(closing, message) {
    this.skipSpace();
    const next = this.text[this.at];
    if (next !== "," && next !== closing) this.fail(message);
    this.at += 1;
    return next === closing;
  }
}

function isString(text) {
  try {
    return typeof JSON.parse(text) === "string";
  } catch {
    return false;
  }
}

// The value as text with two spaces for each level.
export function printJson(value, indent = "") {
  const deeper = `${indent}  `;
  if (value.kind === "object") {
    if (value.entries.length === 0) return "{}";
    const lines = value.entries.map(([name, inner]) => `${deeper}${JSON.stringify(name)}: ${printJson(inner, deeper)}`);
    return `{\n${lines.join(",\n")}\n${indent}}`;
  }
  if (value.kind === "array") {
    if (value.values.length === 0) return "[]";
    const lines = value.values.map((inner) => `${deeper}${printJson(inner, deeper)}`);
    return `[\n${lines.join(",\n")}\n${indent}]`;
  }
  return value.text;
}

// The value as text without spaces.
export function compactJson(value) {
  if (value.kind === "object") {
    return `{${value.entries.map(([name, inner]) => `${JSON.stringify(name)}:${compactJson(inner)}`).join(",")}}`;
  }
  if (value.kind === "array") return `[${value.values.map(compactJson).join(",")}]`;
  return value.text;
}

// A property of an object, the last of that name as JSON.parse has it; undefined if there is none.
export function property(value, name) {
  if (value?.kind !== "object") return undefined;
  for (let place = value.entries.length - 1; place >= 0; place -= 1) {
    if (value.entries[place][0] === name) return value.entries[place][1];
  }
  return undefined;
}

// A value below a path of names, such as ["address", "city"].
export function valueAt(value, names) {
  return names.reduce((inner, name) => property(inner, name), value);
}

// The text of a string, or undefined for another kind.
export function stringOf(value) {
  return value?.kind === "string" ? JSON.parse(value.text) : undefined;
}

// Problems of a text as [{ from, to, message }]: none, or the first.
export function problemsOf(text) {
  try {
    parseJson(text);
    return [];
  } catch (problem) {
    if (!(problem instanceof JsonProblem)) throw problem;
    return [{ from: problem.from, to: problem.to, message: problem.message }];
  }
}
