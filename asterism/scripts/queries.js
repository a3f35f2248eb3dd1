// Queries in JavaScript: `__.filter(…)`, `__.chain()` and their kin, over pages of the collection's documents.

const {
    ScriptError,
    feedOptions,
    intoResponse,
    isAccepting,
    isArray,
    optionsAndCallback,
    queue,
    receiver,
    refuse,
} = tools;

function flattened(values, isShallow, into) {
    for (let index = 0; index < values.length; index += 1) {
        const value = values[index];
        if (!isArray(value)) {
            into[into.length] = value;
        } else if (isShallow) {
            for (let inner = 0; inner < value.length; inner += 1) {
                into[into.length] = value[inner];
            }
        } else {
            flattened(value, false, into);
        }
    }
    return into;
}

function unwound(feed, collectionSelector, resultSelector) {
    const results = [];
    for (let index = 0; index < feed.length; index += 1) {
        const inner = collectionSelector(feed[index]);
        if (isArray(inner)) {
            for (let at = 0; at < inner.length; at += 1) {
                results[results.length] = resultSelector ? resultSelector(feed[index], inner[at]) : inner[at];
            }
        }
    }
    return results;
}

const TYPE_ORDER = { boolean: 1, number: 2, string: 3, object: 4 };

function compareKeys(left, right) {
    if (left === null || right === null) {
        return left === right ? 0 : left === null ? -1 : 1;
    }
    const byType = TYPE_ORDER[typeof left] - TYPE_ORDER[typeof right];
    return byType !== 0 ? byType : left < right ? -1 : left > right ? 1 : 0;
}

// Documents without a key are left out, as ORDER BY leaves them out.
function sorted(feed, keyOf, direction) {
    const keyed = [];
    for (let index = 0; index < feed.length; index += 1) {
        const key = keyOf(feed[index]);
        if (key !== undefined) {
            keyed[keyed.length] = { key, index, value: feed[index] };
        }
    }
    keyed.sort((left, right) => direction * compareKeys(left.key, right.key) || left.index - right.index);
    return keyed.map((entry) => entry.value);
}

function resultsOf(stages, values) {
    let results = values;
    for (let index = 0; index < stages.length; index += 1) {
        results = stages[index](results);
    }
    return results;
}

// Sorting needs all documents first.
function runOverAll(stages, asked, callback) {
    const gathered = [];
    function onPage(error, page, options) {
        if (error) {
            return callback(error);
        }
        for (let index = 0; index < page.length; index += 1) {
            gathered[gathered.length] = page[index];
        }
        if (options.continuation) {
            asked.continuation = options.continuation;
            if (!queue("feed", null, "null", asked, receiver(onPage))) {
                callback(new ScriptError(408, "The documents could not be sorted in the time of one run."));
            }
            return undefined;
        }
        let results;
        try {
            results = resultsOf(stages, gathered);
        } catch (thrown) {
            return callback(thrown);
        }
        return callback(undefined, results, options);
    }
    return queue("feed", null, "null", asked, receiver(onPage));
}

// Documents read at once while too few of them match.
const FURTHER_DOCUMENTS = 100;

// All other stages process document by document, until the page has the requested number of results: as with a WHERE
// clause, a page of a selective filter is never empty while further documents match.
function runInPages(stages, asked, callback) {
    const wanted = asked.pageSize >= 1 ? asked.pageSize : FURTHER_DOCUMENTS;
    const results = [];
    function takeFrom(page) {
        for (let index = 0; index < page.length; index += 1) {
            if (results.length >= wanted) {
                return index;
            }
            const some = resultsOf(stages, [page[index]]);
            for (let at = 0; at < some.length; at += 1) {
                results[results.length] = some[at];
            }
        }
        return page.length;
    }
    function onPage(error, page, options) {
        if (error) {
            return callback(error);
        }
        let taken;
        try {
            taken = takeFrom(page);
        } catch (thrown) {
            return callback(thrown);
        }
        if (taken < page.length) {
            // Read again up to that document: the continuation of that page is the start of the next one.
            asked.pageSize = taken;
            const onBeginning = (problem, _, where) => (problem ? callback(problem) : callback(undefined, results, where));
            if (!queue("feed", null, "null", asked, receiver(onBeginning))) {
                callback(new ScriptError(408, "The page could not be completed in the time of one run."));
            }
            return undefined;
        }
        if (options.continuation && results.length < wanted) {
            asked.continuation = options.continuation;
            asked.pageSize = Math.max(wanted, FURTHER_DOCUMENTS);
            if (queue("feed", null, "null", asked, receiver(onPage))) {
                return undefined;
            }
        }
        return callback(undefined, results, options);
    }
    return queue("feed", null, "null", asked, receiver(onPage));
}

function runStages(stages, needsAll, options, callback) {
    const run = needsAll ? runOverAll : runInPages;
    return { isAccepted: run(stages, feedOptions(options), callback) };
}

function needFunction(value, what) {
    if (typeof value !== "function") {
        refuse(400, "The " + what + " must be a function.");
    }
}

// Each returns its stage and the number of its own arguments; options and callback follow.
const STAGES = {
    filter([predicate]) {
        needFunction(predicate, "predicate");
        return [(feed) => feed.filter((value) => predicate(value)), 1];
    },
    map([transform]) {
        needFunction(transform, "transformation");
        return [(feed) => feed.map((value) => transform(value)), 1];
    },
    pluck([name]) {
        if (typeof name !== "string" || name === "") {
            refuse(400, "The name of the property must be a string that is not empty.");
        }
        return [(feed) => feed.map((value) => value[name]).filter((value) => value !== undefined), 1];
    },
    flatten([isShallow]) {
        return [(feed) => flattened(feed, isShallow === true, []), typeof isShallow === "boolean" ? 1 : 0];
    },
    unwind([collectionSelector, resultSelector]) {
        needFunction(collectionSelector, "collection selector");
        const hasResult = typeof resultSelector === "function";
        const stage = (feed) => unwound(feed, collectionSelector, hasResult ? resultSelector : undefined);
        return [stage, hasResult ? 2 : 1];
    },
    sortBy([keyOf]) {
        needFunction(keyOf, "key");
        return [(feed) => sorted(feed, keyOf, 1), 1];
    },
    sortByDescending([keyOf]) {
        needFunction(keyOf, "key");
        return [(feed) => sorted(feed, keyOf, -1), 1];
    },
};
const SORTS = { sortBy: true, sortByDescending: true };

function run(name, values) {
    const [stage, taken] = STAGES[name](values);
    const given = optionsAndCallback(values[taken], values[taken + 1]);
    return runStages([stage], SORTS[name] === true, given.options, given.callback || intoResponse);
}

function chainOf(stages, needsAll) {
    const chain = { isAccepted: isAccepting() };
    for (const name in STAGES) {
        chain[name] = function (...values) {
            const [stage, taken] = STAGES[name](values);
            if (values.length > taken) {
                refuse(400, "In a chain, options and callback are given to value().");
            }
            return chainOf([...stages, stage], needsAll || SORTS[name] === true);
        };
    }
    chain.value = function (options, callback) {
        const given = optionsAndCallback(options, callback);
        return runStages(stages, needsAll, given.options, given.callback || intoResponse);
    };
    return chain;
}

return { run, chain: () => chainOf([], false) };
