// What every sandbox begins with, stored procedures, triggers and functions alike. It runs before the user's code, in
// a context of its own, and keeps the built-ins it needs in constants: a script that changes a built-in harms itself.

const parseJson = JSON.parse;
const stringify = JSON.stringify;
const apply = Reflect.apply;
const construct = Reflect.construct;
const defineProperty = Object.defineProperty;
const isArray = Array.isArray;
const freeze = Object.freeze;
const clockMilliseconds = Date.now;
const BuiltInError = Error;
const BuiltInPromise = Promise;
const promiseThen = Promise.prototype.then;
const evaluate = globalThis.eval;

const FAILURE_CHARACTERS_MAX = 8000;

function hide(name, value) {
    defineProperty(globalThis, name, { value, writable: true, configurable: true, enumerable: false });
}

// Errors of the engine itself (time is up, memory is full) are turned into text by the host, after the time limit was
// lifted. Nothing of the user's may run then, so everything that this asks for is fixed here.
(function fixEngineErrors() {
    const prototype = InternalError.prototype;
    const toString = BuiltInError.prototype.toString;
    const fixed = { name: "InternalError", message: "", stack: "", toString, valueOf: null };
    for (const name in fixed) {
        defineProperty(prototype, name, { value: fixed[name], writable: false, configurable: false });
    }
    defineProperty(prototype, Symbol.toPrimitive, { value: undefined, writable: false, configurable: false });
    freeze(prototype);
})();

// The engine writes nested values by recursion, and looks at the depth of its stack only when it calls a function. So
// there is always a function to call; without one, a deep value would end the process.
function same(_, value) {
    return value;
}

function onlyNames(names) {
    return function (name, value) {
        return name === "" || isArray(this) || names.some((known) => String(known) === name) ? value : undefined;
    };
}

function writeJson(value, replacer, space) {
    const chosen = typeof replacer === "function" ? replacer : isArray(replacer) ? onlyNames(replacer) : same;
    return stringify(value, chosen, space);
}
defineProperty(writeJson, "name", { value: "stringify" });
defineProperty(JSON, "stringify", { value: writeJson, writable: true, configurable: true, enumerable: false });

// `new Error(number, message)` beside the usual form; `number` is a status code.
function ScriptError(first, second) {
    const isNumbered = arguments.length > 1 && typeof first === "number";
    const message = isNumbered ? second : first;
    const error = construct(BuiltInError, message === undefined ? [] : [message], new.target || ScriptError);
    if (isNumbered) {
        defineProperty(error, "number", { value: first, writable: true, configurable: true, enumerable: true });
    }
    return error;
}
defineProperty(ScriptError, "name", { value: "Error" });
defineProperty(ScriptError, "length", { value: 1 });
ScriptError.prototype = BuiltInError.prototype;
defineProperty(BuiltInError.prototype, "constructor", { value: ScriptError, writable: true, configurable: true });
hide("Error", ScriptError);

function cut(text) {
    return text.length > FAILURE_CHARACTERS_MAX ? text.slice(0, FAILURE_CHARACTERS_MAX) : text;
}

// The script's own part of a stack: what makes an error lies above it, and the prelude below.
const FRAMES_ABOVE = ["    at construct (native)", "    at Error ("];
const FRAMES_BELOW = ["    at apply (native)", "    at receive (", "    at eval (native)"];

function ownFrames(stack) {
    const begins = (frame, beginnings) => beginnings.some((beginning) => frame.startsWith(beginning));
    const frames = stack.split("\n");
    const start = frames.findIndex((frame) => !begins(frame, FRAMES_ABOVE));
    const end = frames.findIndex((frame) => begins(frame, FRAMES_BELOW));
    return cut(frames.slice(start, end < 0 ? frames.length : end).join("\n"));
}

function textOf(thrown) {
    if (typeof thrown === "object" && thrown !== null && !(thrown instanceof BuiltInError)) {
        const text = writeJson(thrown);
        return text === undefined ? String(thrown) : text;
    }
    return String(thrown);
}

// What was thrown, as plain data. The user's own toString may run here, and may throw in turn.
function describeThrown(thrown) {
    const told = { message: "an exception that has no text", stack: "", number: 0 };
    try {
        told.message = cut(textOf(thrown));
        if (thrown instanceof BuiltInError) {
            told.stack = ownFrames(String(thrown.stack));
        }
        const number = thrown === null || thrown === undefined ? undefined : thrown.number;
        if (typeof number === "number" && number > 0 && number < 1e6) {
            told.number = Math.floor(number);
        }
    } catch (second) {
        return told;
    }
    return told;
}

// --- the user's function --------------------------------------------------------------------------------------------

// `name` is that of the first function declared, for a body that holds several.
function compileFunction(source, name) {
    let compiled;
    try {
        compiled = evaluate("(" + source + "\n)");
    } catch (error) {
        if (!(error instanceof SyntaxError) || !name) {
            throw error;
        }
        evaluate(source);
        compiled = evaluate(name);
    }
    if (typeof compiled !== "function") {
        throw new ScriptError(400, "The body of the script is not a function.");
    }
    return compiled;
}
