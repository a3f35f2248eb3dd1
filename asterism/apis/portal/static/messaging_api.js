// Requests of the pages of hubs, queues and topics to the operator's door.
import { admin, adminPost } from "./api.js";

const data = document.getElementById("messaging").dataset;

export const subject = {
  namespace: data.namespace,
  path: data.path,
  kind: data.kind,
  page: data.page,
  hasSessions: data.sessions === "yes",
};

// The visitor's account: an operator reaches every namespace, others the one of their name.
const account = document.body.dataset.account;
const named = subject.kind === "hub" ? { hub: subject.path } : { entity: subject.path };
const names = { namespace: subject.namespace, ...named };

export function read(route, query = {}, options = {}) {
  return admin(account, route, { ...names, ...query }, options);
}

export function send(route, body = {}) {
  return adminPost(account, route, { ...names, ...body });
}

// The containers of blobs of the server, by account.
export async function blobContainers() {
  const { collections } = await admin(account, "overview", { limit: 1000 });
  return collections.filter((row) => row.kind === "container of blobs");
}
