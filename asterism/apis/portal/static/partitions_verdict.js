// The verdict on the partition key in a sentence, and the figures of the whole container.
import { bytes, count, percent } from "./format.js";
import { h } from "./ui.js";

// From here on a finding of the server hurts now; the next step hurts soon.
const SEVERITY_BAD = 80;
const SEVERITY_WARN = 30;

export function mountVerdict(place) {
  const tag = h("span.tag", { "data-verdict": true });
  const sentence = h("p.verdict-sentence", { "aria-live": "polite" });
  const advice = h("p.faint.verdict-advice");
  const others = h("ul.verdict-others.small");
  const figures = h("dl.figures", { "aria-label": "Figures of the whole" });
  const key = h("code");
  const about = h("span.faint.small.verdict-key", {}, "partition key ", key);
  const top = h("div.row", {}, h("h2", {}, "Verdict"), tag, about);
  place.append(top, sentence, advice, others, figures);
  return ({ answer, usage, meter, span }) => {
    const { verdict } = answer;
    setText(tag, verdict.kind);
    setText(key, answer.partition_key.paths.join(", "));
    tag.className = `tag ${tagClass(verdict)}`;
    setText(sentence, verdict.sentence);
    setText(advice, verdict.advice);
    const more = verdict.findings.slice(1, 4);
    others.hidden = more.length === 0;
    others.replaceChildren(...more.map(({ kind, sentence: text }) => h("li", {}, h("strong", {}, `${kind}: `), text)));
    figures.replaceChildren(...figuresOf(answer, usage, meter, span).map((named) => figure(...named)));
  };
}

// A live region that is written again is read again, so the same text is left alone.
function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function tagClass({ kind, findings }) {
  if (kind === "even") return "good";
  const severity = findings[0]?.severity ?? 0;
  if (severity >= SEVERITY_BAD) return "bad";
  return severity >= SEVERITY_WARN ? "warn" : "";
}

function figure(name, value, note) {
  return h("div", {}, h("dt", {}, name), h("dd", {}, value, note ? h("span.small.faint", {}, ` ${note}`) : null));
}

function figuresOf(answer, usage, meter, span) {
  const { totals, throughput, partitions, verdict } = answer;
  const rate = meter.total(partitions);
  const hasHistory = Boolean(usage?.history_seconds);
  const used = throughput.ru && rate > 0 ? percent(rate / throughput.ru) : "";
  const skew = verdict.figures.storage_skew;
  return [
    ["Items", count(totals.items)],
    ["Size", bytes(totals.bytes)],
    ["Logical partitions", count(totals.logical_partitions) + (totals.is_partial ? " or more" : "")],
    ["Physical partitions", count(partitions.length)],
    ["RU/s provisioned", throughput.ru === null ? "–" : count(throughput.ru), throughputNote(throughput)],
    ["RU/s in use", count(rate === null ? null : Math.round(rate * 10) / 10), used],
    ["Fullest partition", skew === null ? "–" : `${skew.toFixed(1)} ×`, skew === null ? "" : "the mean"],
    hasHistory ? [`429s in ${span.label}`, count(throttledIn(usage))] : ["429s", count(totals.throttled)],
  ];
}

function throughputNote({ mode }) {
  if (mode === "none") return "not limited";
  return mode === "manual" ? "" : mode;
}

export function throttledIn(usage) {
  return usage.partitions.reduce((sum, { throttled }) => sum + throttled.reduce((all, number) => all + number, 0), 0);
}
