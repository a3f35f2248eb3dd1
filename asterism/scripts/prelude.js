// The service's server-side API, for stored procedures and triggers.
//
// The host talks to a script in turns. `enter` starts the script or passes results to it; meanwhile the script queues
// operations, and `collect` returns the outcome of the turn: operations to carry out, a failure, or the end.

const ErrorCodes = freeze({
    BadRequest: 400,
    Forbidden: 403,
    NotFound: 404,
    Conflict: 409,
    PreconditionFailed: 412,
    RequestEntityTooLarge: 413,
    RetryWith: 449,
    InternalServerError: 500,
});

const joinTexts = Array.prototype.join;

let setup;
let failure;
let isCompiling = false;
let acceptsUntil = 0;
let queuedTexts = [];
let queuedCharacters = 0;
let operationNumber = 0;
let receivers = Object.create(null);
let idsBySelfLink = Object.create(null);
let logText = "";
const bodies = { request: undefined, response: undefined };
// The request of a procedure is its parameters, parsed again on access: few scripts read it.
let parametersIn;
const bodyTexts = { request: "null", response: "null" };

function fail(thrown) {
    if (!failure) {
        failure = describeThrown(thrown);
        failure.isSyntax = isCompiling;
    }
}

function refuse(number, message) {
    throw new ScriptError(number, message);
}

function guard(work) {
    try {
        return work();
    } catch (thrown) {
        fail(thrown);
        return undefined;
    }
}

// --- queueing operations --------------------------------------------------------------------------------------------

function isAccepting() {
    return !failure && clockMilliseconds() < acceptsUntil && queuedCharacters < setup.queuedCharactersMax;
}

function optionsText(options) {
    if (options === plainOptions || options === blindOptions) {
        return options === plainOptions ? PLAIN_OPTIONS_TEXT : BLIND_OPTIONS_TEXT;
    }
    return writeJson(options);
}

const WRITES = freeze({ __proto__: null, create: true, upsert: true, replace: true, delete: true });
// Length that the server's properties add to a document's text.
const SYSTEM_PROPERTIES_CHARACTERS = 300;
let writes = 0;
let writtenCharacters = 0;

// Returns true, and counts the write, if the transaction can hold another.
function hasRoomFor(bodyText) {
    const characters = writtenCharacters + bodyText.length + SYSTEM_PROPERTIES_CHARACTERS;
    if (writes >= setup.writesMax || characters > setup.writtenCharactersMax) {
        return false;
    }
    writes += 1;
    writtenCharacters = characters;
    return true;
}

// Returns false near the end of the run: the script should answer with the point to resume from, and be called again.
function queue(kind, reference, bodyText, options, receive) {
    if (!isAccepting() || (WRITES[kind] === true && !hasRoomFor(bodyText))) {
        return false;
    }
    operationNumber += 1;
    const target = reference === null ? "null" : writeJson(reference);
    const head = (queuedTexts.length > 0 ? ",[" : "[") + operationNumber + ',"' + kind + '",' + target + ",";
    // In pieces: a document is copied once, when all of them are joined.
    const tail = "," + optionsText(options) + "]";
    queuedTexts[queuedTexts.length] = head;
    queuedTexts[queuedTexts.length] = bodyText;
    queuedTexts[queuedTexts.length] = tail;
    queuedCharacters += head.length + bodyText.length + tail.length;
    receivers[operationNumber] = receive;
    return true;
}

function remember(resource) {
    if (resource && typeof resource._self === "string" && typeof resource.id === "string") {
        idsBySelfLink[resource._self] = resource.id;
    }
}

function operationError(error) {
    const made = new ScriptError(error.number, error.body);
    made.body = error.body;
    return made;
}

function receiver(callback) {
    return function receive(error, resource, options) {
        if (error) {
            const made = operationError(error);
            if (!callback) {
                throw made;
            }
            callback(made);
        } else {
            if (isArray(resource)) {
                for (let index = 0; index < resource.length; index += 1) {
                    remember(resource[index]);
                }
            } else {
                remember(resource);
            }
            if (callback) {
                callback(undefined, resource === null ? undefined : resource, options);
            }
        }
    };
}

// --- arguments ------------------------------------------------------------------------------------------------------

function needArguments(name, wanted, given) {
    if (given < wanted) {
        const suffix = " argument(s); it was called with " + given + ".";
        refuse(400, 'The function "' + name + '" takes at least ' + wanted + suffix);
    }
}

function optionsAndCallback(options, callback) {
    if (callback === undefined && typeof options === "function") {
        return { options: {}, callback: options };
    }
    if (options !== undefined && typeof options !== "object") {
        refuse(400, 'The "options" parameter must be an object, not "' + typeof options + '".');
    }
    if (callback !== undefined && callback !== null && typeof callback !== "function") {
        refuse(400, 'The "callback" parameter must be a function, not "' + typeof callback + '".');
    }
    return { options: options || {}, callback: callback || undefined };
}

function feedOptions(options) {
    return {
        pageSize: typeof options.pageSize === "number" ? options.pageSize : 100,
        continuation: options.continuation ? String(options.continuation) : null,
    };
}

const plainOptions = freeze({ etag: null, ifNoneMatch: null, indexAction: "default", isBlind: false });
const blindOptions = freeze({ etag: null, ifNoneMatch: null, indexAction: "default", isBlind: true });
const PLAIN_OPTIONS_TEXT = writeJson(plainOptions);
const BLIND_OPTIONS_TEXT = writeJson(blindOptions);

// A function of at most one plain parameter that does not read its other arguments in another way.
const ONE_PARAMETER = /^(?:function\b\s*[\w$]*\s*\(\s*[\w$]*\s*\)\s*\{|\(\s*[\w$]*\s*\)\s*=>|[\w$]+\s*=>)/;
const OTHER_WAYS = ["arguments", "eval", "[native code]"];
const functionSource = Function.prototype.toString;
let lastCallback;
let lastIsBlind = true;

// Returns true if the callback cannot read the document that a write returns; then it need not be sent.
function isBlind(callback) {
    if (callback !== lastCallback) {
        lastCallback = callback;
        lastIsBlind = false;
        if (callback.length <= 1) {
            const source = apply(functionSource, callback, []);
            lastIsBlind = ONE_PARAMETER.test(source) && !OTHER_WAYS.some((way) => source.indexOf(way) >= 0);
        }
    }
    return lastIsBlind;
}

function readOptions(options) {
    return writeOptions(options, undefined, true);
}

function writeOptions(options, callback, isSeen) {
    const blind = !isSeen && (callback === undefined || isBlind(callback));
    if (!options.etag && !options.ifNoneMatch && !options.indexAction) {
        return blind ? blindOptions : plainOptions;
    }
    return {
        etag: options.etag ? String(options.etag) : null,
        ifNoneMatch: options.ifNoneMatch ? String(options.ifNoneMatch) : null,
        indexAction: options.indexAction ? String(options.indexAction) : "default",
        isBlind: blind,
    };
}

function withoutFinalSlash(link) {
    return link[link.length - 1] === "/" ? link.slice(0, -1) : link;
}

function checkCollectionLink(link) {
    if (typeof link !== "string") {
        refuse(400, "Invalid collection link: " + String(link) + ".");
    }
    if (link === setup.selfLink) {
        return;
    }
    const plain = withoutFinalSlash(link);
    if (plain !== withoutFinalSlash(setup.selfLink) && plain !== withoutFinalSlash(setup.altLink)) {
        refuse(400, 'A script works on its own collection only; "' + link + '" is not a link of it.');
    }
}

function partAfter(link, prefix) {
    const whole = withoutFinalSlash(prefix) + "/docs/";
    if (link.slice(0, whole.length) !== whole) {
        return undefined;
    }
    const rest = withoutFinalSlash(link.slice(whole.length));
    return rest === "" || rest.indexOf("/") >= 0 ? undefined : rest;
}

// By id, by resource id, or both: resources that the script has received are known by both.
function documentReference(link) {
    if (typeof link !== "string") {
        refuse(400, "Invalid document link: " + String(link) + ".");
    }
    const resourceId = partAfter(link, setup.selfLink);
    if (resourceId !== undefined) {
        const id = idsBySelfLink[link];
        return { id: id === undefined ? null : id, rid: resourceId };
    }
    const id = partAfter(link, setup.altLink);
    if (id === undefined) {
        refuse(400, 'A script works on its own collection only; "' + link + '" is not a link of a document in it.');
    }
    return { id, rid: null };
}

function randomHex(digits) {
    let text = "";
    while (text.length < digits) {
        text += Math.floor(Math.random() * 16).toString(16);
    }
    return text;
}

function newId() {
    return [8, 4, 4, 4, 12].map(randomHex).join("-");
}

function documentText(body, options, getsId) {
    if (body === null || (typeof body !== "object" && typeof body !== "string")) {
        refuse(400, "The document must be an object, or the JSON text of one.");
    }
    let document = typeof body === "string" ? parseJson(body) : body;
    if (document === null || typeof document !== "object" || isArray(document)) {
        refuse(400, "The document must be an object, or the JSON text of one.");
    }
    if (getsId && options.disableAutomaticIdGeneration !== true && !document.id) {
        document = Object.assign({}, document, { id: newId() });
    }
    const text = writeJson(document);
    if (text === undefined) {
        refuse(400, "The document must be an object, or the JSON text of one.");
    }
    return text;
}

// --- the collection -------------------------------------------------------------------------------------------------

const collection = {
    getSelfLink() {
        return setup.selfLink;
    },
    getAltLink() {
        return setup.altLink;
    },
    createDocument(link, body, options, callback) {
        needArguments("createDocument", 2, arguments.length);
        checkCollectionLink(link);
        const given = optionsAndCallback(options, callback);
        const text = documentText(body, given.options, true);
        return queue("create", null, text, writeOptions(given.options, given.callback), receiver(given.callback));
    },
    upsertDocument(link, body, options, callback) {
        needArguments("upsertDocument", 2, arguments.length);
        checkCollectionLink(link);
        const given = optionsAndCallback(options, callback);
        const text = documentText(body, given.options, true);
        return queue("upsert", null, text, writeOptions(given.options, given.callback), receiver(given.callback));
    },
    replaceDocument(link, body, options, callback) {
        needArguments("replaceDocument", 2, arguments.length);
        const reference = documentReference(link);
        const given = optionsAndCallback(options, callback);
        const text = documentText(body, given.options, false);
        return queue("replace", reference, text, writeOptions(given.options, given.callback), receiver(given.callback));
    },
    readDocument(link, options, callback) {
        needArguments("readDocument", 1, arguments.length);
        const reference = documentReference(link);
        const given = optionsAndCallback(options, callback);
        return queue("read", reference, "null", readOptions(given.options), receiver(given.callback));
    },
    // The callback gets the options as second argument, as in the service, and as third, as all others do.
    deleteDocument(link, options, callback) {
        needArguments("deleteDocument", 1, arguments.length);
        const reference = documentReference(link);
        const given = optionsAndCallback(options, callback);
        const receive = receiver(given.callback && ((error, _, options) => given.callback(error, options, options)));
        return queue("delete", reference, "null", readOptions(given.options), receive);
    },
    readDocuments(link, options, callback) {
        needArguments("readDocuments", 1, arguments.length);
        checkCollectionLink(link);
        const given = optionsAndCallback(options, callback);
        return queue("feed", null, "null", feedOptions(given.options), receiver(given.callback));
    },
    queryDocuments(link, query, options, callback) {
        needArguments("queryDocuments", 2, arguments.length);
        checkCollectionLink(link);
        if (typeof query !== "string" && (typeof query !== "object" || query === null)) {
            refuse(400, 'The "filterQuery" parameter must be a string or an object, not "' + typeof query + '".');
        }
        const given = optionsAndCallback(options, callback);
        const asked = typeof query === "string" ? { query } : { query: query.query, parameters: query.parameters };
        return queue("query", null, writeJson(asked), feedOptions(given.options), receiver(given.callback));
    },
};

for (const verb of ["create", "read", "replace", "upsert", "delete", "query"]) {
    const name = verb === "query" ? "queryAttachments" : verb + "Attachment";
    collection[name] = () => refuse(400, "Attachments are not stored by this server.");
}
collection.readAttachments = collection.readAttachment;

// --- parts that few scripts use ---------------------------------------------------------------------------------------

// They are loaded on first use: reading the whole prelude takes longer than a short script.
function loadPart(name, tools) {
    return evaluate(LATER_PARTS[name])(tools);
}

function intoResponse(error, feed) {
    if (error) {
        throw error;
    }
    if (!response) {
        refuse(400, "A query without a callback writes to the response, and there is none in a pre-trigger.");
    }
    response.appendBody(writeJson(feed));
}

let queries;
function queryPart() {
    if (!queries) {
        const ofArguments = { feedOptions, intoResponse, optionsAndCallback };
        queries = loadPart("queries", { ...ofArguments, ScriptError, isAccepting, isArray, queue, receiver, refuse });
    }
    return queries;
}

for (const name of ["filter", "map", "pluck", "flatten", "unwind", "sortBy", "sortByDescending"]) {
    collection[name] = function (...values) {
        const own = values[0] === collection || values[0] === shortcut ? values.slice(1) : values;
        return queryPart().run(name, own);
    };
}
collection.chain = () => queryPart().chain();

let spatial;
defineProperty(collection, "spatial", {
    enumerable: true,
    get() {
        spatial = spatial || freeze(loadPart("spatial", { ScriptError, isArray }));
        return spatial;
    },
});
freeze(collection);

// --- request and response -------------------------------------------------------------------------------------------

function bodyOf(side) {
    if (side === "request" && parametersIn !== undefined) {
        bodies.request = parseJson(parametersIn).start.parameters;
        parametersIn = undefined;
    }
    return bodies[side];
}

function messageObject(side, canWrite, fixedValues) {
    function checkSize(value) {
        const text = typeof value === "string" ? value : writeJson(value);
        if (text !== undefined && text.length > setup.resultCharactersMax) {
            const advice = "Return a part of it and the point to resume from, and call the script again.";
            refuse(413, "The message would be too large. " + advice);
        }
    }
    function read(name) {
        return name === "Body" || name === "body" ? bodyOf(side) : fixedValues[name];
    }
    function write(name, value) {
        if (name !== "Body" && name !== "body") {
            refuse(name in fixedValues ? 403 : 400, "The property cannot be set: " + String(name) + ".");
        }
        checkSize(value);
        bodies[side] = value;
    }
    function append(name, value) {
        const current = read(name);
        write(name, current === undefined || current === null ? value : current + value);
    }
    const message = { getBody: () => read("Body"), getValue: read };
    for (const name in fixedValues) {
        message["get" + name] = () => fixedValues[name];
    }
    if (canWrite) {
        message.setBody = (value) => write("Body", value);
        message.appendBody = (value) => append("Body", value);
        message.setValue = write;
        message.appendValue = append;
    }
    return freeze(message);
}

let request;
let response;
const shortcut = Object.create(collection);

const context = freeze({
    getCollection: () => collection,
    getRequest: () => request,
    getResponse() {
        if (!response) {
            refuse(400, "There is no response in a pre-trigger.");
        }
        return response;
    },
    abort(error) {
        fail(error === undefined ? new ScriptError("The script was aborted.") : error);
        throw new ScriptError("The script was aborted.");
    },
});

function formatLog(format, values) {
    if (values.length > 0 && typeof format !== "string") {
        refuse(400, "The first argument of console.log must be a string when there are others.");
    }
    let text = "";
    let used = 0;
    const source = String(format);
    for (let index = 0; index < source.length; index += 1) {
        const pair = values.length > 0 ? source.slice(index, index + 2) : "";
        if (pair === "%s" || pair === "%%") {
            text += pair === "%%" ? "%" : String(values[used++]);
            index += 1;
        } else {
            text += source[index];
        }
    }
    return text;
}

function log(format, ...values) {
    needArguments("log", 1, arguments.length);
    if (!setup.isLogging) {
        return;
    }
    const text = formatLog(format, values);
    if (logText.length + text.length > setup.logCharactersMax) {
        refuse(413, "The log of the script would be too large.");
    }
    logText += text;
}

function publish() {
    const isTrigger = setup.kind !== "procedure";
    const requestValues = isTrigger ? { OperationType: setup.operationType } : {};
    request = messageObject("request", setup.kind === "pre", requestValues);
    response = setup.kind === "pre" ? undefined : messageObject("response", true, setup.responseValues);
    shortcut.request = request;
    shortcut.response = response;
    freeze(shortcut);
    hide("getContext", () => context);
    hide("__", shortcut);
    hide("__request", request);
    hide("__response", response);
    hide("ErrorCodes", ErrorCodes);
    hide("console", freeze({ log, info: log, warn: log, error: log }));
}

// --- turns ----------------------------------------------------------------------------------------------------------

function start(message) {
    setup = message;
    bodies.request = message.requestBody;
    bodies.response = message.responseBody;
    remember(bodies.request);
    remember(bodies.response);
    publish();
    isCompiling = true;
    const main = compileFunction(message.source, message.name);
    isCompiling = false;
    const returned = apply(main, undefined, message.parameters);
    if (returned instanceof BuiltInPromise) {
        apply(promiseThen, returned, [undefined, fail]);
    }
}

function deliver(results) {
    for (let index = 0; index < results.length && !failure; index += 1) {
        const result = results[index];
        const receive = receivers[result[0]];
        delete receivers[result[0]];
        receive(result[1], result[2], result[3]);
    }
}

function enter(text) {
    guard(() => {
        if (!failure) {
            const message = parseJson(text);
            acceptsUntil = clockMilliseconds() + message.acceptMilliseconds;
            if (message.start) {
                parametersIn = message.start.kind === "procedure" ? text : undefined;
                start(message.start);
            } else {
                deliver(message.results);
            }
        }
    });
}

function closeBody(side) {
    const text = writeJson(bodies[side]);
    if (text !== undefined && text.length > setup.resultCharactersMax) {
        refuse(413, "The " + side + " of the script is too large.");
    }
    bodyTexts[side] = text === undefined ? "null" : text;
}

function collect() {
    if (!failure && queuedTexts.length > 0) {
        const text = '{"state":"waiting","operations":[' + apply(joinTexts, queuedTexts, [""]) + "]}";
        queuedTexts = [];
        queuedCharacters = 0;
        return text;
    }
    if (!failure) {
        guard(() => {
            // The request of a procedure is not read after its run.
            if (setup.kind !== "procedure") {
                closeBody("request");
            }
            closeBody("response");
        });
    }
    const state = failure ? "failed" : "done";
    return writeJson({ state, failure: failure || null, log: logText });
}

return function port(name) {
    return { enter, collect, output: (side) => bodyTexts[side] }[name];
};
