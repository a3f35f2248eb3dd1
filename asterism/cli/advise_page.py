"""The page of `asterism advise --html`: complete in itself, for light and dark screens, without scripts."""

from __future__ import annotations

from html import escape
from typing import Final

from asterism.advisor.keys.assessment import Assessment
from asterism.advisor.keys.report import Report
from asterism.advisor.wording import about_share
from asterism.cli.advise_charts import bar_chart, bars_of, heat_strip, hottest_cell
from asterism.cli.advise_table import headline, last_line

_STYLE: Final = """
:root { color-scheme: light dark; --page: #f6f7f9; --card: #ffffff; --text: #16202c; --soft: #5b6776; --line: #dfe4ea;
  --accent: #1f6feb; --calm: #8a97a6; --rest: #c3cbd5; --heat: #c2410c; --good: #1a7f4b; --bad: #b42318;
  --tint: #eef4ff; }
@media (prefers-color-scheme: dark) { :root { --page: #0e1319; --card: #171e27; --text: #e6ebf1; --soft: #96a3b3;
  --line: #2a3441; --accent: #6ea8fe; --calm: #74818f; --rest: #3c4856; --heat: #fb923c; --good: #4ade80;
  --bad: #f87171; --tint: #16263d; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--text);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
main { max-width: 1240px; margin: 0 auto; padding: 32px 24px 64px; }
h1 { font-size: 26px; margin: 0 0 4px; letter-spacing: -0.01em; }
h2 { font-size: 17px; margin: 36px 0 12px; }
h3 { font-size: 14px; margin: 0 0 12px; font-weight: 600; }
p { margin: 0 0 8px; } .soft, .none { color: var(--soft); }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 18px 20px; }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(440px, 1fr)); gap: 18px; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(170px, 1fr)); gap: 14px; margin-top: 22px; }
.tile b { display: block; font-size: 23px; font-weight: 650; font-variant-numeric: tabular-nums; }
.tile span { color: var(--soft); font-size: 13px; }
.advice { background: var(--tint); border-color: var(--accent); margin-top: 22px; }
.advice strong { font-size: 18px; } code { font: 13px/1.6 ui-monospace, "SF Mono", Menlo, Consolas, monospace; }
pre { margin: 10px 0 0; padding: 10px 12px; overflow-x: auto; background: var(--page); border-radius: 6px; }
svg + p { margin-top: 12px; }
svg { width: 100%; height: auto; display: block; }
svg text { font: 12px system-ui, sans-serif; fill: var(--text); font-variant-numeric: tabular-nums; }
svg .value, svg .axis { fill: var(--soft); font-size: 11px; }
.proposed .bar { fill: var(--accent); } .present .bar { fill: var(--calm); } svg .rest { fill: var(--rest); }
svg .heat { fill: var(--heat); }
.scroll { overflow-x: auto; padding: 0; } table { border-collapse: collapse; width: 100%; font-size: 14px; }
th { text-align: left; font-weight: 600; color: var(--soft); font-size: 12px; white-space: nowrap; }
th, td { padding: 9px 12px; border-bottom: 1px solid var(--line); vertical-align: top; }
tr:last-child td { border-bottom: 0; } td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
td.key { font: 13px/1.6 ui-monospace, "SF Mono", Menlo, Consolas, monospace; min-width: 180px; }
td.why { min-width: 280px; color: var(--soft); } tr.best td { background: var(--tint); }
.mark { border-radius: 999px; padding: 1px 8px; font: 600 11px system-ui, sans-serif; white-space: nowrap; }
.mark.ok { color: var(--good); border: 1px solid var(--good); }
.mark.no { color: var(--bad); border: 1px solid var(--bad); }
.mark.now { color: var(--soft); border: 1px solid var(--calm); }
ul { margin: 0; padding-left: 20px; }
"""


def page_of(report: Report, names: tuple[str, str], *, replayed: str = "") -> str:
    """Return the page; every text of the user is escaped. `replayed` is the section about a replay."""
    title = f"Partition key of {'/'.join(names)}"
    parts = [
        f"<h1>{escape(title)}</h1>",
        f'<p class="soft">{escape(headline(report, names).partition(": ")[2])}</p>',
        _advice(report, names),
        _tiles(report),
        _distributions(report),
        _strips(report),
        _candidates(report),
        replayed,
        _warnings(report),
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>\n<body><main>{''.join(parts)}</main></body></html>\n"
    )


def _compared(report: Report) -> list[tuple[str, str, Assessment]]:
    """Return the keys side by side: class, heading and figures of the present and of the proposed one."""
    best, present = report.best, report.present
    if best is None:
        return []
    if present is None or present is best:
        return [("proposed", "Present and best" if best.is_present else "Proposed", best)]
    return [("present", "Present", present), ("proposed", "Proposed", best)]


def _advice(report: Report, names: tuple[str, str]) -> str:
    best = report.best
    if best is None:
        return ""
    return (
        f'<section class="card advice"><strong><code>{escape(best.candidate.name)}</code></strong>'
        f"<p>{escape(best.why)}</p><pre><code>{escape(last_line(report, names))}</code></pre></section>"
    )


def _tiles(report: Report) -> str:
    tiles = []
    for _, heading, assessment in _compared(report):
        predicted = assessment.predicted
        needed = "never enough" if predicted.ru_needed is None else f"{predicted.ru_needed:,.0f}"
        tiles += [
            (needed, f"RU/s needed for no 429, {heading.lower()} key"),
            (about_share(assessment.routes.routed), f"of requests to one logical partition, {heading.lower()} key"),
            (
                about_share(predicted.throttled_share),
                f"refused at {predicted.throttled_at_ru:,} RU/s, {heading.lower()} key",
            ),
        ]
    shown = "".join(
        f'<div class="card tile"><b>{escape(value)}</b><span>{escape(label)}</span></div>' for value, label in tiles
    )
    return f'<section class="tiles">{shown}</section>'


def _distributions(report: Report) -> str:
    compared = [(*each, bars_of(report.tables[each[2].candidate.name], each[2])) for each in _compared(report)]
    widest = max((bar.share for *_, bars in compared for bar in bars if not bar.is_rest), default=1.0)
    charts = "".join(
        f'<div class="card {kind}"><h3>{heading}: {escape(each.candidate.name)}</h3>'
        + bar_chart(bars, widest=widest, title=f"Bytes by logical partition under {each.candidate.name}")
        + f'<p class="soft">Gini {each.storage.gini:.2f}; '
        f"the ten largest have {about_share(each.storage.top_ten_share)}.</p></div>"
        for kind, heading, each, bars in compared
    )
    return f'<h2>Data by logical partition</h2><section class="pair">{charts}</section>'


def _strips(report: Report) -> str:
    if not report.requests:
        return ""
    compared = _compared(report)
    most = max((hottest_cell(each.windows) for _, _, each in compared), default=0.0)
    strips = "".join(
        f'<div class="card {kind}"><h3>{heading}: {escape(each.candidate.name)}</h3>'
        + heat_strip(each.windows, most=most, title=f"RU by physical partition under {each.candidate.name}")
        + f'<p class="soft">{_skew_sentence(each)}</p></div>'
        for kind, heading, each in compared
    )
    return (
        "<h2>Request units by physical partition, in time</h2>"
        '<p class="soft">A row for each partition, a column for each window; stronger is more, on one scale.</p>'
        f'<section class="pair">{strips}</section>'
    )


def _skew_sentence(assessment: Assessment) -> str:
    physical, logical = assessment.windows.physical, assessment.windows.logical
    return (
        f"The hottest partition has {about_share(physical.mean)} of a window on average, {about_share(physical.worst)} "
        f"at worst; the hottest key {about_share(logical.mean)}."
    )


def _candidates(report: Report) -> str:
    heads = [
        "",
        "key",
        "RU/s needed",
        "for no 429",
        "RU/s",
        "429",
        "to one",
        "to all",
        "hottest",
        "keys",
        "largest",
        "why",
    ]
    numeric = {"RU/s needed", "for no 429", "RU/s", "429", "to one", "to all", "hottest", "keys", "largest"}
    head = "".join(f'<th class="{"n" if name in numeric else ""}">{name}</th>' for name in heads)
    rows = "".join(_candidate_row(rank, each, each is report.best) for rank, each in enumerate(report.ranked, start=1))
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    return f'<h2>Candidates</h2><div class="card scroll">{table}</div>'


def _candidate_row(rank: int, assessment: Assessment, is_best: bool) -> str:
    predicted, routes = assessment.predicted, assessment.routes
    rough = "~" if assessment.is_estimate else ""
    mark = '<span class="mark no">no</span>' if assessment.problems else str(rank)
    if is_best and not assessment.problems:
        mark = '<span class="mark ok">best</span>'
    present = ' <span class="mark now">present</span>' if assessment.is_present else ""
    figures = [
        "never enough" if predicted.ru_needed is None else f"{rough}{assessment.ru_ranked:,.0f}",
        "never enough" if predicted.ru_needed is None else f"{rough}{predicted.ru_needed:,.0f}",
        f"{predicted.ru_per_second:,.0f}",
        f"{predicted.throttled_share:.1%}",
        f"{routes.routed:.0%}",
        f"{routes.fan_out:.0%}",
        f"{assessment.windows.physical.mean:.0%}",
        f"{assessment.storage.cardinality:,}",
        f"{assessment.storage.largest_share:.1%}",
    ]
    cells = "".join(f'<td class="n">{figure}</td>' for figure in figures)
    return (
        f'<tr class="{"best" if is_best else ""}"><td>{mark}</td><td class="key">{escape(assessment.candidate.name)}'
        f'{present}</td>{cells}<td class="why">{escape(assessment.why)}</td></tr>'
    )


def _warnings(report: Report) -> str:
    if not report.warnings:
        return ""
    said = "".join(f"<li>{escape(warning)}</li>" for warning in report.warnings)
    return f'<h2>What the data cannot tell</h2><div class="card"><ul>{said}</ul></div>'
