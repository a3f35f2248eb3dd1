// Values of BSON in JavaScript. What JSON has is itself; everything else crosses as an object with the field MARK, a
// name that no document can have: its kind, then what it is made of. Functions are constants: the script hosts take the
// first named function of a text for the one to call.
const MARK = "\u0000";

class ObjectIdValue {
    constructor(text) { this.str = text; }
    toString() { return 'ObjectId("' + this.str + '")'; }
    valueOf() { return this.str; }
    equals(other) { return other instanceof ObjectIdValue && other.str === this.str; }
}

class NumberText {
    constructor(kind, value) { this.kind = kind; this.text = String(value); }
    toNumber() { return Number(this.text); }
    valueOf() { return Number(this.text); }
    toString() { return this.text; }
}

// Kinds that scripts can only pass on.
class OpaqueValue {
    constructor(content) { this.content = content; }
};

const ObjectId = function (text) { return new ObjectIdValue(String(text)); };
const NumberLong = function (value) { return new NumberText("l", value); };
const NumberInt = function (value) { return new NumberText("n", value); };
const NumberDecimal = function (value) { return new NumberText("m", value); };
const ISODate = function (text) { return text === undefined ? new Date() : new Date(text); };

const REVIVERS = {
    d: (content) => Number(content[1]),
    i: (content) => new ObjectIdValue(content[1]),
    l: (content) => new NumberText("l", content[1]),
    m: (content) => new NumberText("m", content[1]),
    r: (content) => new RegExp(content[1], content[2].replace(/[^imsu]/g, "")),
    t: (content) => new Date(content[1]),
    u: () => undefined,
    x: (content) => new OpaqueValue(content),
};

const revive = function (value) {
    if (value === null || typeof value !== "object") { return value; }
    if (Array.isArray(value)) { return value.map(revive); }
    const content = value[MARK];
    if (content !== undefined) { return REVIVERS[content[0]](content); }
    const revived = {};
    for (const name of Object.keys(value)) { revived[name] = revive(value[name]); }
    return revived;
};

const packNumber = function (value) {
    return Number.isFinite(value) && !Object.is(value, -0) ? value : { [MARK]: ["d", Object.is(value, -0) ? "-0" : String(value)] };
};

const packObject = function (value) {
    if (value instanceof Date) { return { [MARK]: ["t", value.getTime()] }; }
    if (value instanceof RegExp) { return { [MARK]: ["r", value.source, value.flags] }; }
    if (value instanceof ObjectIdValue) { return { [MARK]: ["i", value.str] }; }
    if (value instanceof NumberText) { return { [MARK]: [value.kind, value.text] }; }
    if (value instanceof OpaqueValue) { return { [MARK]: value.content }; }
    if (Array.isArray(value)) { return value.map(pack); }
    const packed = {};
    for (const name of Object.keys(value)) {
        if (typeof value[name] !== "function") { packed[name] = pack(value[name]); }
    }
    return packed;
};

const pack = function (value) {
    switch (typeof value) {
    case "number": return packNumber(value);
    case "bigint": return { [MARK]: ["l", String(value)] };
    case "string": case "boolean": return value;
    case "object": return value === null ? null : packObject(value);
    default: return { [MARK]: ["u"] };
    }
};
