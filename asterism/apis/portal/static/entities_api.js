// Entities of a table, through the Table door.
import { ask } from "./api.js";
import { entityBody, entityPath, readEntities, readOneEntity } from "./entity_values.js";

const PAGE_ENTITIES = 100;
const JSON_WITH_TYPES = "application/json;odata=minimalmetadata";
const NEXT_PARTITION_KEY = "x-ms-continuation-nextpartitionkey";
const NEXT_ROW_KEY = "x-ms-continuation-nextrowkey";

// A page: { entities, next }. `next` is the token of the page after it, null at the end.
export async function readPage({ account, name }, { filter, token, signal }) {
  const query = { $top: String(PAGE_ENTITIES), ...(filter === null ? {} : { $filter: filter }), ...token };
  const { text, headers } = await ask("GET", account, "table", `${name}()`, {
    query,
    headers: { accept: JSON_WITH_TYPES },
    signal,
  });
  const partitionKey = headers.get(NEXT_PARTITION_KEY);
  const rowKey = headers.get(NEXT_ROW_KEY);
  const next =
    partitionKey === null
      ? null
      : { NextPartitionKey: partitionKey, ...(rowKey === null ? {} : { NextRowKey: rowKey }) };
  return { entities: readEntities(text), next };
}

export async function readEntity({ account, name }, entity) {
  const { text } = await ask("GET", account, "table", entityPath(name, entity), {
    headers: { accept: JSON_WITH_TYPES },
  });
  return readOneEntity(text);
}

export async function insertEntity({ account, name }, entity) {
  await ask("POST", account, "table", name, {
    body: entityBody(entity),
    headers: { accept: JSON_WITH_TYPES, prefer: "return-no-content" },
  });
}

export async function replaceEntity({ account, name }, entity, etag) {
  await ask("PUT", account, "table", entityPath(name, entity), {
    body: entityBody(entity),
    headers: { accept: JSON_WITH_TYPES, "if-match": etag },
  });
}

export async function deleteEntity({ account, name }, entity) {
  await ask("DELETE", account, "table", entityPath(name, entity), {
    headers: { accept: JSON_WITH_TYPES, "if-match": entity.etag },
  });
}
