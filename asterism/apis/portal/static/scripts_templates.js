// The text that a new script begins with.
export const TEMPLATES = {
  sprocs: `// Runs in one logical partition: all of its writes are stored, or none.
function storedProcedure(prefix) {
  const container = getContext().getCollection();
  const accepted = container.queryDocuments(
    container.getSelfLink(),
    "SELECT * FROM c",
    (error, items) => {
      if (error) throw error;
      console.log(\`found \${items.length} items\`);
      getContext().getResponse().setBody({ prefix, items: items.length });
    },
  );
  if (!accepted) throw new Error("The query was not accepted.");
}
`,
  triggers: `// Runs when a request names it; this one before an item is written.
function trigger() {
  const request = getContext().getRequest();
  const item = request.getBody();
  if (item.createdAt === undefined) item.createdAt = new Date().toISOString();
  request.setBody(item);
}
`,
  udfs: `// Called in queries as udf.NAME(...).
function userDefinedFunction(value) {
  return value;
}
`,
};
