// Facts for drawings, computed from the answers of the operator's door; nothing here touches the page.

// Version 2 keys hash to 126 bits, of which the first 50 place a point far more precisely than a screen can show.
const HASH_DIGITS = 13;
const HASH_SIZE = 2 ** 50;
const HASH_1_SIZE = 2 ** 32;
const NUMBER_MARK = 0x05;
// Shorter spans make a rate that jumps, longer ones a rate that lags behind.
const RATE_SECONDS = 12;

// The place of a point on the line of hashes, from 0 to 1. `text` is hexadecimal.
export function positionOf(text, version) {
  if (text === "") return 0;
  if (version === 1) return text === "FF" ? 1 : Math.min(1, versionOneHash(text) / HASH_1_SIZE);
  return Math.min(1, parseInt(text.slice(0, HASH_DIGITS).padEnd(HASH_DIGITS, "0"), 16) / HASH_SIZE);
}

// Version 1 writes a hash as a number: a mark, eight bits, then groups of seven with a low bit if another one follows.
function versionOneHash(text) {
  const octets = (text.match(/../g) ?? []).map((pair) => parseInt(pair, 16));
  if (octets.length < 3 || octets[0] !== NUMBER_MARK) return 0;
  let bits = BigInt(octets[1]) << 56n;
  let shift = 49n;
  for (const octet of octets.slice(2, 10)) {
    bits |= shift >= 0n ? BigInt(octet >> 1) << shift : BigInt(octet >> 1) >> -shift;
    shift -= 7n;
    if (!(octet & 1)) break;
  }
  const view = new DataView(new ArrayBuffer(8));
  view.setBigUint64(0, bits ^ (1n << 63n));
  return Math.max(0, view.getFloat64(0));
}

export const isOrdered = (definition) => definition.kind === "Range";

// Each partition with its part of the line, from 0 to 1. Text has no scale, so parts of an ordered line are equal.
export function layoutLine(partitions, definition) {
  return partitions.map((partition, place) => ({
    partition,
    from: isOrdered(definition) ? place / partitions.length : positionOf(partition.min, definition.version),
    to: isOrdered(definition) ? (place + 1) / partitions.length : positionOf(partition.max, definition.version),
  }));
}

// The bounds of a range as people read them.
export function boundsOf(partition, definition) {
  if (isOrdered(definition)) return [partition.start_key ?? "the first key", partition.end_key ?? "the last key"];
  return [partition.min === "" ? "00" : shortHash(partition.min), shortHash(partition.max)];
}

export function shortHash(text) {
  return text.length > 6 ? text.slice(0, 6) : text;
}

// The values of a partition key as text; a value that is absent from the items is an empty object.
export function keyText(key) {
  if (!key?.partition_key) return `hash ${shortHash(key?.effective_key ?? "")}`;
  return key.partition_key.map(valueText).join(" / ");
}

function valueText(value) {
  if (value !== null && typeof value === "object") return "(no value)";
  if (value === "") return '""';
  return typeof value === "string" ? value : JSON.stringify(value);
}

const EXPLORED = new Set(["container", "collection", "table"]);

// The address of a logical partition in the data explorer; null where its values are not known, or nothing shows them.
export function keyAddress(collection, key) {
  if (!key.partition_key || !EXPLORED.has(collection.kind)) return null;
  const explorer = collection.isTable ? "entities" : "items";
  return `${collection.page}/${explorer}?key=${encodeURIComponent(JSON.stringify(key.partition_key))}`;
}

const DETAILS = ["largest", "hottest", "logical_partitions", "is_partial"];

// Fresh figures without details, completed with the details of an earlier answer.
export function withDetails(fresh, detailed) {
  if (!detailed || fresh.largest) return fresh;
  const known = new Map(detailed.partitions.map((partition) => [partition.id, partition]));
  const partitions = fresh.partitions.map((partition) => {
    const earlier = known.get(partition.id);
    return earlier ? { ...pick(earlier, DETAILS), ...partition } : partition;
  });
  const { logical_partitions, is_partial } = detailed.totals;
  return {
    ...fresh,
    partitions,
    totals: { ...fresh.totals, logical_partitions, is_partial },
    largest: detailed.largest,
    verdict: detailed.verdict,
  };
}

function pick(source, names) {
  return Object.fromEntries(names.filter((name) => name in source).map((name) => [name, source[name]]));
}

// The jobs on the partitions of a container, each once: a merge stands at both of its partitions.
export function jobsOf(partitions) {
  const jobs = new Map();
  for (const { job } of partitions) if (job) jobs.set(job.id, job);
  return [...jobs.values()];
}

// Request units per second of each partition, from counters that were read some seconds apart.
export class RateMeter {
  #readings = [];

  read(partitions, nowSeconds) {
    const counters = new Map(partitions.map((partition) => [partition.id, partition.ru_consumed]));
    this.#readings = this.#readings.filter((reading) => reading.at > nowSeconds - RATE_SECONDS);
    this.#readings.push({ at: nowSeconds, counters });
  }

  // Null before the second reading, and after a restart of the server, which begins to count again.
  rateOf(id) {
    const last = this.#readings.at(-1);
    const first = this.#readings.find((reading) => reading.counters.has(id));
    if (!last?.counters.has(id) || !first || last.at - first.at < 0.5) return null;
    const used = last.counters.get(id) - first.counters.get(id);
    return used < 0 ? null : used / (last.at - first.at);
  }

  total(partitions) {
    const rates = partitions.map((partition) => this.rateOf(partition.id)).filter((rate) => rate !== null);
    return rates.length ? rates.reduce((sum, rate) => sum + rate, 0) : null;
  }
}

// The time of day. The browser's own words for it take it 80 ms to prepare, more than a whole drawing.
export function minuteText(wallSeconds) {
  const at = new Date(wallSeconds * 1000);
  return [at.getHours(), at.getMinutes()].map((part) => String(part).padStart(2, "0")).join(":");
}

export function secondText(wallSeconds) {
  return `${minuteText(wallSeconds)}:${String(new Date(wallSeconds * 1000).getSeconds()).padStart(2, "0")}`;
}

// Of numbers such as label positions: those that lie at least `gap` after the one kept before.
export function thinOut(entries, positionOfEntry, gap) {
  const kept = [];
  let last = -Infinity;
  for (const entry of entries) {
    const position = positionOfEntry(entry);
    if (position - last >= gap) {
      kept.push(entry);
      last = position;
    }
  }
  return kept;
}
