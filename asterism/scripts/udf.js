// A user-defined function: no context, no collection, values in and values out, as JSON text.
//
// The first character of an answer tells what it is: nothing at all is undefined, "!" is an exception.

let called;

function textOfResult(result) {
    const text = typeof result === "object" ? writeJson(result) : stringify(result);
    return text === undefined ? "" : text;
}

// The arguments, followed by the places of those that are undefined.
function callWith(message) {
    const values = message[0];
    for (let place = 1; place < message.length; place += 1) {
        values[message[place]] = undefined;
    }
    return apply(called, undefined, values);
}

function call(text) {
    try {
        const message = parseJson(text);
        return textOfResult(message.length === 1 ? apply(called, undefined, message[0]) : callWith(message));
    } catch (thrown) {
        return "!" + describeThrown(thrown).message;
    }
}

function compile(text) {
    try {
        const message = parseJson(text);
        called = compileFunction(message.source, message.name);
        return "";
    } catch (thrown) {
        return "!" + describeThrown(thrown).message;
    }
}

return function port(name) {
    return { compile, call }[name];
};
