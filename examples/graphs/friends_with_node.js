// The same server with the client for Node.js and its defaults.
const gremlin = require("gremlin");

const url = process.env.ASTERISM_GREMLIN_URL || "ws://localhost:8901/";
const key = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";
const authenticator = new gremlin.driver.auth.PlainTextSaslAuthenticator("/dbs/graphs_example/colls/people", key);

async function main() {
  // As users of the service write it: a text, and plain JSON back.
  const client = new gremlin.driver.Client(url, {
    authenticator,
    traversalsource: "g",
    mimeType: "application/vnd.gremlin-v2.0+json",
  });
  const found = await client.submit("g.V([household, id]).out('knows').order().by('id')", { household: "h1", id: "thomas" });
  console.log(found.toArray().map((vertex) => vertex.id));
  await client.close();

  // The fluent form.
  const connection = new gremlin.driver.DriverRemoteConnection(url, { authenticator });
  const g = gremlin.process.AnonymousTraversalSource.traversal().withRemote(connection);
  const names = await g.V().hasLabel("person").id().order().toList();
  console.log(names);
  await connection.close();
}

main();
