// Containers with synthetic keys, as the official client for JavaScript uses them. Prints what it saw as one JSON text,
// by section; test_synthetic_keys_node.py says what it must be.
const { CosmosClient } = require("@azure/cosmos");

const [endpoint, key, databaseName] = process.argv.slice(2);
const client = new CosmosClient({ endpoint, key });
// Four physical partitions.
const RU_PER_SECOND = 24000;
const HASHED = { parts: ["/date"], suffix: { kind: "hash", path: "/vin", count: 50 } };

const containerOf = async (database, id, rule) => {
  const partitionKey = { paths: ["/pk"], kind: "Hash", version: 2, synthetic: { "/pk": rule } };
  return (await database.containers.create({ id, partitionKey, throughput: RU_PER_SECOND })).container;
};

// The status of a refusal, which the client throws.
const statusOf = async (request) => {
  try {
    return (await request).statusCode;
  } catch (error) {
    return error.code;
  }
};

const newCar = (number, date = "2026-01-01") => ({ id: String(number), date, vin: `vin-${number}` });

async function declaration(database) {
  const container = await containerOf(database, "declared", HASHED);
  const { resource } = await container.read();
  const bad = { parts: ["/date"], suffix: { kind: "random", count: 0 } };
  return { synthetic: resource.partitionKey.synthetic, refused: await statusOf(containerOf(database, "bad", bad)) };
}

async function singleItems(database) {
  const container = await containerOf(database, "devices", { parts: ["/deviceId", "/date"] });
  const plain = { id: "1", deviceId: "abc", date: 2018, n: 1 };
  const created = await container.items.create({ ...plain });
  const upserted = await container.items.upsert({ ...plain, n: 2 });
  const byKey = await container.item("1", "abc-2018").read();
  const bySources = await container.item("1", ["abc", 2018]).read();
  const throughAnswer = await created.item.read();
  const replaced = await container.item("1", "abc-2018").replace({ ...plain, n: 3 });
  const moved = await statusOf(container.item("1", "abc-2018").replace({ ...plain, date: 2019 }));
  const patched = await container.item("1", ["abc", 2018]).patch([{ op: "incr", path: "/n", value: 1 }]);
  const again = await statusOf(container.items.create({ ...plain }));
  const deleted = await container.item("1", ["abc", 2018]).delete();
  const missing = await container.item("1", "abc-2018").read();
  return {
    created: created.resource.pk,
    upserted: [upserted.resource.pk, upserted.statusCode],
    read: [byKey, bySources].map((answer) => answer.resource.n),
    readCharges: [byKey, bySources].map((answer) => answer.requestCharge),
    throughAnswer: throughAnswer.statusCode,
    replaced: [replaced.resource.pk, replaced.resource.n],
    moved,
    patched: patched.resource.n,
    again,
    deleted: deleted.statusCode,
    missing: missing.statusCode,
  };
}

async function queries(database) {
  const container = await containerOf(database, "queried", HASHED);
  for (let number = 0; number < 60; number += 1) await container.items.create(newCar(number, `day-${number % 2}`));
  const ask = async (query, options = {}) => (await container.items.query(query, options).fetchAll()).resources;
  const text = "SELECT VALUE c.id FROM c WHERE c.date = @date AND c.vin = @vin";
  const parameters = [
    { name: "@date", value: "day-1" },
    { name: "@vin", value: "vin-7" },
  ];
  const ordered = await ask("SELECT VALUE c.vin FROM c WHERE c.date = 'day-0' ORDER BY c.vin");
  return {
    fixed: await ask({ query: text, parameters }),
    ofDay: (await ask("SELECT VALUE c.id FROM c WHERE c.date = 'day-1'")).length,
    isOrdered: ordered.length === 30 && ordered.every((vin, place) => place === 0 || ordered[place - 1] < vin),
    counted: await ask("SELECT VALUE COUNT(1) FROM c WHERE c.date = 'day-0'"),
    withSources: await ask("SELECT VALUE c.id FROM c", { partitionKey: ["day-0", "vin-8"] }),
    all: (await ask("SELECT * FROM c")).length,
  };
}

async function batches(database) {
  const container = await containerOf(database, "batched", HASHED);
  const cars = [1, 2, 3].map((number) => ({ id: String(number), date: "d", vin: "v" }));
  const create = cars.map((resourceBody) => ({ operationType: "Create", resourceBody }));
  const made = await container.items.batch(create, ["d", "v"]);
  const own = made.result[0].resourceBody.pk;
  const later = await container.items.batch([{ operationType: "Read", id: "1" }, { operationType: "Delete", id: "2" }], own);
  const foreign = await container.items
    .batch([{ operationType: "Create", resourceBody: newCar(9, "d") }], own)
    .catch((error) => error.message);
  return {
    statuses: made.result.map((result) => result.statusCode),
    keys: new Set(made.result.map((result) => result.resourceBody.pk)).size,
    later: later.result.map((result) => result.statusCode),
    foreign,
  };
}

// The client sorts operations by the physical partition of the key that they name: here the absent one, or the sources,
// and neither is where the items are.
async function bulk(database) {
  const container = await containerOf(database, "bulk", HASHED);
  // The older form takes a hundred operations for each physical partition, and all plain items have the absent key.
  const numbers = [...Array(100).keys()];
  const run = async (operations) => {
    const done = await container.items.executeBulkOperations(operations);
    return done.map(({ response, error }) => response?.statusCode ?? error.code);
  };
  const distinct = (statuses) => [...new Set(statuses)];
  const absent = {};
  const sourcesOf = (number) => ["2026-01-01", `vin-${number}`];
  const create = numbers.map((number) => ({ operationType: "Create", partitionKey: absent, resourceBody: newCar(number) }));
  const upsert = numbers.map((number) => ({
    operationType: "Upsert",
    partitionKey: sourcesOf(number),
    resourceBody: { ...newCar(number), n: 1 },
  }));
  const created = await run(create);
  const upserted = await run(upsert);
  const { resources } = await container.items.query("SELECT c.id, c.pk, c.n FROM c").fetchAll();
  const read = resources.map(({ id, pk }) => ({ operationType: "Read", id, partitionKey: pk }));
  const ranges = (await container.readPartitionKeyRanges().fetchAll()).resources;
  const older = await container.items.bulk(numbers.map((number) => ({ operationType: "Upsert", resourceBody: newCar(number) })));
  const remove = numbers.map((number) => ({ operationType: "Delete", id: String(number), partitionKey: sourcesOf(number) }));
  return {
    ranges: ranges.length,
    created: distinct(created),
    upserted: distinct(upserted),
    items: resources.length,
    changed: resources.every(({ n }) => n === 1),
    keys: new Set(resources.map(({ pk }) => pk)).size > 20,
    read: distinct(await run(read)),
    older: distinct(older.map((result) => result.statusCode)),
    removed: distinct(await run(remove)),
    left: (await container.items.readAll().fetchAll()).resources.length,
  };
}

async function moreSuffixes(database) {
  const container = await containerOf(database, "raised", HASHED);
  for (let number = 0; number < 20; number += 1) await container.items.create(newCar(number));
  const { resource: definition } = await container.read();
  const withCount = (count) => {
    const rule = definition.partitionKey.synthetic["/pk"];
    const synthetic = { "/pk": { ...rule, suffix: { ...rule.suffix, count } } };
    return { ...definition, partitionKey: { ...definition.partitionKey, synthetic } };
  };
  const raised = await container.replace(withCount(80));
  const reads = [];
  for (let number = 0; number < 20; number += 1) {
    reads.push((await container.item(String(number), ["2026-01-01", `vin-${number}`]).read()).statusCode);
  }
  const lowered = await container.replace(withCount(10)).catch((error) => error);
  return {
    suffix: raised.resource.partitionKey.synthetic["/pk"].suffix,
    reads: [...new Set(reads)],
    lowered: [lowered.code, String(lowered.message ?? lowered.body?.message)],
  };
}

async function main() {
  const { database } = await client.databases.create({ id: databaseName });
  const sections = { declaration, singleItems, queries, batches, bulk, moreSuffixes };
  const seen = {};
  for (const [name, section] of Object.entries(sections)) {
    seen[name] = await section(database).catch((error) => ({ failed: String(error.stack ?? JSON.stringify(error)) }));
  }
  await database.delete();
  client.dispose();
  console.log(JSON.stringify(seen));
}

main();
