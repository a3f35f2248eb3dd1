// Queries that were run on this container, kept in this browser.
const ENTRIES_MAX = 50;

// `storage` is localStorage, or anything with its methods.
export function queryHistory(storage, name) {
  const place = `asterism-queries:${name}`;

  function entries() {
    try {
      const read = JSON.parse(storage.getItem(place) ?? "[]");
      return Array.isArray(read) ? read.filter((entry) => typeof entry?.query === "string") : [];
    } catch {
      return [];
    }
  }

  function keep(kept) {
    try {
      storage.setItem(place, JSON.stringify(kept));
    } catch {
      // The browser's storage is full or turned off: the query was run all the same.
    }
  }

  return {
    entries,
    // The newest first; a query that was run before moves to the front.
    add: (query, parameters) =>
      keep(
        [
          { query, parameters },
          ...entries().filter((entry) => entry.query !== query || entry.parameters !== parameters),
        ].slice(0, ENTRIES_MAX),
      ),
    clear: () => storage.removeItem(place),
  };
}
