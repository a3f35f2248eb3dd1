// A user-defined function: no context, no collection, values in and values out, as JSON text.
//
// The first character of an answer tells what it is: nothing at all is undefined, "!" is an exception.

let called;

function answer(work, given) {
    try {
        const result = work(parseJson(given));
        const text = typeof result === "object" ? writeJson(result) : stringify(result);
        return text === undefined ? "" : text;
    } catch (thrown) {
        return "!" + describeThrown(thrown).message;
    }
}

// The arguments, followed by the places of those that are undefined.
function callWith(message) {
    const values = message[0];
    for (let place = 1; place < message.length; place += 1) {
        values[message[place]] = undefined;
    }
    return apply(called, undefined, values);
}

function compileFrom(message) {
    called = compileFunction(message.source, message.name);
}

function call(text) {
    return answer(callWith, text);
}

function compile(text) {
    return answer(compileFrom, text);
}

return function port(name) {
    return { compile, call }[name];
};
