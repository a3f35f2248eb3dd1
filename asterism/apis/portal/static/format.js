// Numbers as people read them; the same rules as figures.py on the server.
const UNITS = ["B", "KB", "MB", "GB", "TB", "PB"];

export function bytes(size) {
  if (size === null || size === undefined) return "–";
  let amount = size;
  let unit = 0;
  while (amount >= 1024 && unit < UNITS.length - 1) {
    amount /= 1024;
    unit += 1;
  }
  return `${amount.toFixed(unit === 0 || amount >= 100 ? 0 : 1)} ${UNITS[unit]}`;
}

export function count(number) {
  if (number === null || number === undefined) return "–";
  const isWhole = Number.isInteger(number) || Math.abs(number) >= 100;
  return number.toLocaleString("en-US", { maximumFractionDigits: isWhole ? 0 : 1 });
}

export function percent(share) {
  return share === null || share === undefined ? "–" : `${(share * 100).toFixed(share < 0.1 ? 1 : 0)} %`;
}

export function time(wallSeconds) {
  return new Date(wallSeconds * 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit" });
}

export function moment(wallSeconds) {
  return new Date(wallSeconds * 1000).toLocaleString();
}

export function duration(seconds) {
  for (const [size, unit] of [[86400, "day"], [3600, "hour"], [60, "minute"], [1, "second"]]) {
    if (seconds >= size) {
      const number = Math.round(seconds / size);
      return `${number.toLocaleString("en-US")} ${unit}${number === 1 ? "" : "s"}`;
    }
  }
  return "less than a second";
}
