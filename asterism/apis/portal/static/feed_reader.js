// The change feed of a container, page by page. The door reads the whole line of the container behind one position, so
// a partition that splits between two pages needs nothing here.
import { ask } from "./api.js";
import { parseJson, property } from "./json_text.js";

export const LATEST = "Incremental feed";
export const ALL_VERSIONS = "Full-Fidelity Feed";
const PAGE_ITEMS = 100;
const NOW = "*";

// `read()` resolves to { texts, charge, isCaughtUp, accept }: the changes of a page as JSON texts, in the order of the
// log. Until `accept()` is called, the next read begins at the same place.
export function createReader({ account, link }, { mode, fromBeginning }) {
  let position = fromBeginning ? null : NOW;
  return {
    async read() {
      const headers = { "a-im": mode, "x-ms-max-item-count": String(PAGE_ITEMS) };
      if (position !== null) headers["if-none-match"] = position;
      const answer = await ask("GET", account, "nosql", `${link}/docs`, { headers });
      const next = answer.headers.get("etag") ?? position;
      const charge = Number(answer.headers.get("x-ms-request-charge") ?? 0);
      // 304 says that there is nothing new.
      return {
        texts: answer.status === 304 ? [] : textsOf(answer.text),
        charge,
        isCaughtUp: answer.status === 304,
        accept: () => (position = next),
      };
    },
  };
}

// Each document as it stands in the answer: parsing would change large numbers.
function textsOf(page) {
  return property(parseJson(page), "Documents").values.map((value) => page.slice(value.from, value.to));
}
