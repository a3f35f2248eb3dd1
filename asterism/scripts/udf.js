// A user-defined function: no context, no collection, values in and values out, as JSON text.
//
// An empty answer is undefined, one that begins with "!" is an exception.

let called;
// A batch that takes longer is answered with the results so far, so that each call in it has nearly all of the time of
// a single call.
let batchMilliseconds;
// So is one with longer results: they are kept in the heap that is promised to the function.
const BATCH_CHARACTERS_MAX = 256 * 1024;

function textOfResult(result) {
    const text = typeof result === "object" ? writeJson(result) : stringify(result);
    return text === undefined ? "" : text;
}

// The message is the arguments, followed by the positions of those that are undefined.
function callWith(message) {
    const values = message[0];
    for (let position = 1; position < message.length; position += 1) {
        values[message[position]] = undefined;
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

// Many calls: the (call, position) of each undefined argument, and the arguments of each call. The answer is the numbers
// of the calls whose result is undefined, and the result of each call. It ends before the first call that throws, for
// whatever reason: made by itself, that call reports it.
function callMany(text) {
    const batch = parseJson(text);
    const undefinedArguments = batch[0];
    for (let each = 0; each < undefinedArguments.length; each += 1) {
        batch[1 + undefinedArguments[each][0]][undefinedArguments[each][1]] = undefined;
    }
    const endsAt = clockMilliseconds() + batchMilliseconds;
    let undefinedResults = "";
    let results = "";
    for (let number = 1; number < batch.length; number += 1) {
        let result;
        try {
            result = textOfResult(apply(called, undefined, batch[number]));
        } catch (thrown) {
            break;
        }
        if (result === "") {
            undefinedResults += (undefinedResults === "" ? "" : ",") + (number - 1);
            result = "null";
        }
        results += "," + result;
        if (results.length > BATCH_CHARACTERS_MAX || clockMilliseconds() >= endsAt) {
            break;
        }
    }
    return "[[" + undefinedResults + "]" + results + "]";
}

function compile(text) {
    try {
        const message = parseJson(text);
        batchMilliseconds = message.batchMilliseconds;
        called = compileFunction(message.source, message.name);
        return "";
    } catch (thrown) {
        return "!" + describeThrown(thrown).message;
    }
}

return function port(name) {
    return { compile, call, callMany }[name];
};
