// A user-defined function: no context, no collection, values in and values out, as JSON text.
//
// The first character of an answer tells what it is: nothing at all is undefined, "!" is an exception.

let called;
// A bunch that lasts longer is answered as far as it came, so that each call in it has nearly all of the time that one
// call may take.
let bunchMilliseconds;
// So is one whose results are longer: they are kept in the heap that the function was promised.
const BUNCH_CHARACTERS_MAX = 256 * 1024;

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

// Many calls: the (call, place) of each argument that is undefined, and the arguments of each call. The answer is the
// numbers of the calls whose result is undefined, and the result of each call. It ends before the first call that
// throws, for whatever reason: alone, that call will tell.
function callMany(text) {
    const bunch = parseJson(text);
    const undefinedArguments = bunch[0];
    for (let each = 0; each < undefinedArguments.length; each += 1) {
        bunch[1 + undefinedArguments[each][0]][undefinedArguments[each][1]] = undefined;
    }
    const endsAt = clockMilliseconds() + bunchMilliseconds;
    let undefinedResults = "";
    let results = "";
    for (let number = 1; number < bunch.length; number += 1) {
        let result;
        try {
            result = textOfResult(apply(called, undefined, bunch[number]));
        } catch (thrown) {
            break;
        }
        if (result === "") {
            undefinedResults += (undefinedResults === "" ? "" : ",") + (number - 1);
            result = "null";
        }
        results += "," + result;
        if (results.length > BUNCH_CHARACTERS_MAX || clockMilliseconds() >= endsAt) {
            break;
        }
    }
    return "[[" + undefinedResults + "]" + results + "]";
}

function compile(text) {
    try {
        const message = parseJson(text);
        bunchMilliseconds = message.bunchMilliseconds;
        called = compileFunction(message.source, message.name);
        return "";
    } catch (thrown) {
        return "!" + describeThrown(thrown).message;
    }
}

return function port(name) {
    return { compile, call, callMany }[name];
};
