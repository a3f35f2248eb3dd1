// A basket with the driver for Node.js: npm install mongodb, then node basket_with_node.js CONNECTION_STRING
const { MongoClient } = require("mongodb");

async function main(connection) {
  const client = new MongoClient(connection);
  try {
    const shop = client.db("basket_example");
    await shop.dropDatabase();
    const baskets = shop.collection("baskets");
    await baskets.createIndex({ owner: 1 }, { unique: true });
    await baskets.insertOne({ owner: "mira", lines: [{ sku: "a", count: 1 }] });
    await baskets.updateOne({ owner: "mira", "lines.sku": "a" }, { $inc: { "lines.$.count": 2 } });
    console.log((await baskets.findOne({ owner: "mira" })).lines[0].count);

    const session = client.startSession();
    await session.withTransaction(async () => {
      await baskets.deleteOne({ owner: "mira" }, { session });
      await shop.collection("orders").insertOne({ owner: "mira" }, { session });
    });
    await session.endSession();
    console.log(await baskets.countDocuments(), await shop.collection("orders").countDocuments());

    const numbers = Array.from({ length: 500 }, (_, number) => ({ _id: number, even: number % 2 === 0 }));
    await shop.collection("numbers").insertMany(numbers);
    let found = 0;
    for await (const _ of shop.collection("numbers").find({ even: true }).batchSize(60)) found += 1;
    console.log(found);
  } finally {
    await client.close();
  }
}

main(process.argv[2]);
