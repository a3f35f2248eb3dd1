// A container's definition and offer, read from and written to the NoSQL door.
import { ask } from "./api.js";

const INDEX_PROGRESS = "x-ms-documentdb-collection-index-transformation-progress";
const SYSTEM_MARK = "_";

// { definition, etag, rid, indexPercent }. `definition` is without the properties that the server adds.
export async function readContainer({ account, link }) {
  const { body, headers } = await ask("GET", account, "nosql", link, {
    headers: { "x-ms-documentdb-populatequotainfo": "true" },
  });
  return describe(body, headers);
}

// Write the whole definition, if the container still has the etag. ApiError 412 if it has another one.
export async function replaceContainer({ account, link }, definition, etag) {
  const { body, headers } = await ask("PUT", account, "nosql", link, {
    body: definition,
    headers: { "if-match": etag },
  });
  return describe(body, headers);
}

function describe(body, headers) {
  const own = Object.entries(body).filter(([name]) => !name.startsWith(SYSTEM_MARK));
  return {
    definition: Object.fromEntries(own),
    etag: body._etag,
    rid: body._rid,
    indexPercent: Number(headers.get(INDEX_PROGRESS) ?? 100),
  };
}

// The offer that governs the container, its own or that of its database (`isShared`); null if there is none.
export async function readOffer({ account, database }, rid) {
  const own = await findOffer(account, rid);
  if (own !== null) return { ...own, isShared: false };
  const { body } = await ask("GET", account, "nosql", `dbs/${database}`);
  const shared = await findOffer(account, body._rid);
  return shared === null ? null : { ...shared, isShared: true };
}

async function findOffer(account, rid) {
  const { body } = await ask("POST", account, "nosql", "offers", {
    headers: { "content-type": "application/query+json", "x-ms-documentdb-isquery": "true" },
    body: {
      query: "SELECT * FROM offers o WHERE o.offerResourceId = @rid",
      parameters: [{ name: "@rid", value: rid }],
    },
  });
  const [offer] = body.Offers;
  return offer === undefined ? null : describeOffer(offer);
}

// Change the RU/s, of autoscale the maximum. An offer cannot change between manual and autoscale in place.
export async function replaceOffer({ account }, offer, ru) {
  const content = offer.isAutoscale ? { offerAutopilotSettings: { maxThroughput: ru } } : { offerThroughput: ru };
  await ask("PUT", account, "nosql", `offers/${offer.stored.id}`, {
    body: { ...offer.stored, content },
    headers: { "if-match": offer.etag },
  });
}

function describeOffer(stored) {
  const autoscale = stored.content.offerAutopilotSettings;
  return {
    stored,
    etag: stored._etag,
    isAutoscale: autoscale !== undefined,
    ru: autoscale === undefined ? stored.content.offerThroughput : autoscale.maxThroughput,
    isPending: stored.content.isOfferReplacePending === true,
  };
}
