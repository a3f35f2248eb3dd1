// What a client for JavaScript can do with a server. Run in the folder where the client is installed:
//
//     node check_javascript.js FOLDER ENDPOINT KEY
//
// prints one line of JSON: the client's version, and for each check "ok" or what went wrong.
"use strict";

const assert = require("node:assert");
const path = require("node:path");
const { randomUUID } = require("node:crypto");

const [folder, endpoint, key] = process.argv.slice(2);
const home = path.join(folder, "node_modules", "@azure", "cosmos");
const { CosmosClient } = require(home);
const { version } = require(path.join(home, "package.json"));

const SPLIT_MILLISECONDS_MAX = 120_000;
const ITEMS = 40;
const KEYS = 10;
// More than one partition can serve, so that the container begins with two.
const RU_OF_TWO_PARTITIONS = 12_000;
const RU_OF_ONE_PARTITION = 400;

const numbers = (count) => Array.from({ length: count }, (_, number) => number);
const byNumber = (left, right) => left - right;

async function containerWith(database, throughput) {
  const settings = { id: `container-${randomUUID()}`, partitionKey: { paths: ["/pk"] }, throughput };
  const { container } = await database.containers.create(settings);
  for (const number of numbers(ITEMS)) {
    const id = `item ${String(number).padStart(2, "0")}`;
    await container.items.create({ id, pk: `key ${number % KEYS}`, n: number, g: 1 + (number % 4) });
  }
  return container;
}

async function all(container, query, options = {}) {
  const { resources } = await container.items.query(query, options).fetchAll();
  return resources;
}

async function checkItems(database) {
  const { container } = await database.containers.create({ id: "items", partitionKey: { paths: ["/pk"] } });
  const created = await container.items.create({ id: "a", pk: "x", name: "Ä ☃" });
  const read = await container.item("a", "x").read();
  assert.deepStrictEqual([read.resource.name, read.resource._etag], ["Ä ☃", created.resource._etag]);
  assert.strictEqual((await container.items.upsert({ id: "a", pk: "x", n: 1 })).resource.n, 1);
  assert.strictEqual((await container.item("a", "x").replace({ id: "a", pk: "x", n: 2 })).resource.n, 2);
  await assert.rejects(container.items.create({ id: "a", pk: "x" }), (problem) => problem.code === 409);
  assert.strictEqual((await container.items.readAll().fetchAll()).resources.length, 1);
  await container.item("a", "x").delete();
  assert.strictEqual((await container.item("a", "x").read()).statusCode, 404);
}

async function checkIds(database) {
  const { container } = await database.containers.create({ id: "ids", partitionKey: { paths: ["/pk"] } });
  for (const id of ["a b", "a+b", "100%", "ünï", "a;b=c&d", "(1)", "a?b", "tab\tbed", "line\nfeed", "Test "]) {
    let created;
    try {
      created = await container.items.create({ id, pk: "x" });
    } catch (problem) {
      // The client refuses such an id itself, before it sends.
      if (problem.code === undefined && id === "Test ") continue;
      throw problem;
    }
    const read = await container.item(id, "x").read();
    assert.strictEqual(read.statusCode, 200, `${JSON.stringify(id)} is read as ${read.statusCode}`);
    assert.strictEqual(read.resource._rid, created.resource._rid);
    await container.item(id, "x").replace({ id, pk: "x", n: 1 });
    await container.item(id, "x").delete();
  }
}

async function checkFilter(_, container) {
  const found = await all(container, "SELECT * FROM c WHERE c.n > 29");
  assert.deepStrictEqual(found.map((item) => item.n).sort(byNumber), numbers(40).slice(30));
  const within = await all(container, "SELECT VALUE c.n FROM c ORDER BY c.n", { partitionKey: "key 3" });
  assert.deepStrictEqual(within, [3, 13, 23, 33]);
}

async function checkOrder(_, container) {
  const options = { maxItemCount: 6 };
  const up = await all(container, "SELECT c.n FROM c ORDER BY c.n ASC", options);
  assert.deepStrictEqual(up.map((item) => item.n), numbers(ITEMS));
  const down = await all(container, "SELECT c.n FROM c ORDER BY c.n DESC", options);
  assert.deepStrictEqual(down.map((item) => item.n), numbers(ITEMS).reverse());
  for (const text of ["SELECT * FROM c ORDER BY c.g", "SELECT * FROM c WHERE c.n != 7 ORDER BY c.g DESC"]) {
    const whole = await all(container, text);
    const found = await resumed(container, text);
    if (found !== undefined) assert.deepStrictEqual(found.map((item) => item.id), whole.map((item) => item.id), text);
  }
}

/** All results, each page by an iterator of its own; undefined for clients that cannot go on within an order. */
async function resumed(container, text) {
  const seen = [];
  let continuationToken;
  for (let page = 0; page < 3 * ITEMS; page += 1) {
    const options = { maxItemCount: 3, continuationToken, enableQueryControl: true, forceQueryPlan: true };
    const answer = await container.items.query(text, options).fetchNext();
    seen.push(...(answer.resources ?? []));
    continuationToken = answer.continuationToken;
    if (!continuationToken && page === 0) return undefined;
    if (!continuationToken) break;
  }
  return seen;
}

async function checkAggregates(_, container) {
  const wanted = { "COUNT(1)": 40, "SUM(c.n)": 780, "MIN(c.n)": 0, "MAX(c.n)": 39, "AVG(c.n)": 19.5 };
  for (const [text, value] of Object.entries(wanted)) {
    assert.deepStrictEqual(await all(container, `SELECT VALUE ${text} FROM c`), [value], text);
  }
  const groups = await all(container, "SELECT c.g, COUNT(1) AS count FROM c GROUP BY c.g");
  assert.deepStrictEqual(groups.map((group) => group.count), [10, 10, 10, 10]);
}

async function checkDistinct(_, container) {
  const found = await all(container, "SELECT DISTINCT VALUE c.g FROM c");
  assert.deepStrictEqual(found.sort(byNumber), [1, 2, 3, 4]);
  assert.deepStrictEqual(await all(container, "SELECT DISTINCT VALUE c.g FROM c ORDER BY c.g"), [1, 2, 3, 4]);
}

async function checkTop(_, container) {
  assert.strictEqual((await all(container, "SELECT TOP 7 * FROM c")).length, 7);
  assert.deepStrictEqual(await all(container, "SELECT TOP 3 VALUE c.n FROM c ORDER BY c.n DESC"), [39, 38, 37]);
}

async function checkOffset(_, container) {
  const found = await all(container, "SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 5 LIMIT 4");
  assert.deepStrictEqual(found, [5, 6, 7, 8]);
  assert.strictEqual((await all(container, "SELECT * FROM c OFFSET 38 LIMIT 10")).length, 2);
}

async function checkPages(_, container) {
  const seen = [];
  let continuationToken;
  for (let page = 0; page < ITEMS + 5; page += 1) {
    const options = { maxItemCount: 7, continuationToken };
    const answer = await container.items.query("SELECT * FROM c", options).fetchNext();
    seen.push(...(answer.resources ?? []).map((item) => item.n));
    continuationToken = answer.continuationToken;
    if (!continuationToken) break;
  }
  assert.deepStrictEqual(seen.sort(byNumber), numbers(ITEMS));
}

async function checkFeed(_, container) {
  const seen = [];
  const feed = container.items.changeFeed
    ? container.items.changeFeed("key 3", { startFromBeginning: true })
    : container.items.readChangeFeed("key 3", { startFromBeginning: true });
  while (feed.hasMoreResults) {
    const page = await feed.fetchNext();
    if (page.statusCode === 304 || !page.result?.length) break;
    seen.push(...page.result.map((item) => item.n));
  }
  assert.deepStrictEqual(seen.sort(byNumber), [3, 13, 23, 33]);
}

async function checkMore(database) {
  const { container } = await database.containers.create({ id: "more", partitionKey: { paths: ["/pk"] } });
  await container.items.create({ id: "a", pk: "x", n: 1 });
  const patched = await container.item("a", "x").patch([{ op: "incr", path: "/n", value: 2 }]);
  assert.strictEqual(patched.resource.n, 3);
  const operations = [
    { operationType: "Create", resourceBody: { id: "b", pk: "x" } },
    { operationType: "Read", id: "b" },
    { operationType: "Delete", id: "b" },
  ];
  const batch = await container.items.batch(operations, "x");
  assert.deepStrictEqual(batch.result.map((one) => one.statusCode), [201, 200, 204]);
  const many = numbers(20).map((number) => ({
    operationType: "Create",
    resourceBody: { id: `bulk ${number}`, pk: `key ${number}` },
  }));
  const bulk = container.items.bulk ?? container.items.executeBulkOperations;
  const done = await bulk.call(container.items, many);
  assert.deepStrictEqual([...new Set(done.map((one) => one.statusCode ?? one.response?.statusCode))], [201]);
  const body = "function (name) { getContext().getResponse().setBody('hello ' + name); }";
  await container.scripts.storedProcedures.create({ id: "greet", body });
  const said = await container.scripts.storedProcedure("greet").execute("x", ["you"]);
  assert.strictEqual(said.resource, "hello you");
}

async function rest(query, seen) {
  while (query.hasMoreResults()) {
    const { resources } = await query.fetchNext();
    seen.push(...(resources ?? []).map((item) => item.n));
  }
  return seen;
}

async function checkSplit(database) {
  const container = await containerWith(database, RU_OF_ONE_PARTITION);
  const plain = container.items.query("SELECT * FROM c", { maxItemCount: 6 });
  const ordered = container.items.query("SELECT * FROM c ORDER BY c.n", { maxItemCount: 6 });
  const seenPlain = (await plain.fetchNext()).resources.map((item) => item.n);
  const seenOrdered = (await ordered.fetchNext()).resources.map((item) => item.n);
  await split(container);
  assert.deepStrictEqual((await rest(plain, seenPlain)).sort(byNumber), numbers(ITEMS));
  assert.deepStrictEqual(await rest(ordered, seenOrdered), numbers(ITEMS));
  assert.deepStrictEqual(await all(container, "SELECT VALUE COUNT(1) FROM c"), [ITEMS]);
  for (const number of numbers(ITEMS)) {
    const id = `item ${String(number).padStart(2, "0")}`;
    assert.strictEqual((await container.item(id, `key ${number % KEYS}`).read()).statusCode, 200);
  }
}

async function split(container) {
  const { resource, offer } = await container.readOffer();
  await offer.replace({ ...resource, content: { ...resource.content, offerThroughput: RU_OF_TWO_PARTITIONS } });
  const deadline = Date.now() + SPLIT_MILLISECONDS_MAX;
  while (Date.now() < deadline) {
    const now = await container.readOffer();
    if (!now.resource.content.isOfferReplacePending) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  assert.fail("the split takes too long");
}

const CHECKS = {
  items: checkItems,
  ids: checkIds,
  "patch, batch, scripts": checkMore,
  "split while paging": checkSplit,
  filter: checkFilter,
  "ORDER BY": checkOrder,
  aggregates: checkAggregates,
  DISTINCT: checkDistinct,
  TOP: checkTop,
  "OFFSET LIMIT": checkOffset,
  pages: checkPages,
  "change feed": checkFeed,
};

async function main() {
  const client = new CosmosClient({ endpoint, key });
  const { database } = await client.databases.create({ id: `database-${randomUUID()}` });
  const twoPartitions = await containerWith(database, RU_OF_TWO_PARTITIONS);
  const checks = {};
  for (const [name, check] of Object.entries(CHECKS)) {
    try {
      await check(database, twoPartitions);
      checks[name] = "ok";
    } catch (problem) {
      checks[name] = `${problem.name}: ${problem.message ?? JSON.stringify(problem)}`.slice(0, 400);
    }
  }
  await database.delete();
  client.dispose();
  console.log(JSON.stringify({ version, checks }));
}

main().catch((problem) => {
  console.error(problem);
  process.exitCode = 1;
});
