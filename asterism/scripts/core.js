// The start of every sandbox, for stored procedures, triggers and functions alike. It runs before the user's code, in
// the same context, and keeps the built-ins it needs in constants: a script that changes a built-in harms only itself.

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

// The host converts errors of the engine itself (out of time, out of memory) to text after the time limit was lifted.
// User code must not run then, so every property that the conversion reads is fixed here.
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

// The engine writes nested values by recursion, and checks the depth of its stack only when it calls a function. So
// there is always a function to call; without it, a deep value would end the process.
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

// The script's own part of a stack: the constructor of the error is above it, the prelude below.
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

// A thrown value as plain data. The user's own toString may run here, and may throw as well.
function describeThrown(thrown) {
    const description = { message: "an exception that has no text", stack: "", number: 0 };
    try {
        description.message = cut(textOf(thrown));
        if (thrown instanceof BuiltInError) {
            description.stack = ownFrames(String(thrown.stack));
        }
        const number = thrown === null || thrown === undefined ? undefined : thrown.number;
        if (typeof number === "number" && number > 0 && number < 1e6) {
            description.number = Math.floor(number);
        }
    } catch (second) {
        return description;
    }
    return description;
}

// --- the user's function --------------------------------------------------------------------------------------------

// `name` is that of the first declared function, for a body with several.
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
