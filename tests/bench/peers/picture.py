"""The picture of a comparison: a panel of bars for each test, drawn as SVG by hand, readable on a
light and on a dark page."""
from xml.sax.saxutils import escape

import report

WIDTH, PANEL, GAP, LABEL, VALUE = 860, 418, 24, 150, 96
BAR, STEP, HEAD, TOP = 18, 26, 30, 58
STYLE = """
text { font: 13px system-ui, sans-serif; fill: #1f2328 }
.head { font-weight: 600; font-size: 14px } .note { font-size: 11.5px; fill: #59636e }
.ours { fill: #c2410c } .theirs { fill: #8c959f }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 } .note { fill: #9198a1 } .ours { fill: #fb923c } .theirs { fill: #656c76 }
}
"""


def text(x, y, said, kind="", anchor="start"):
    return (f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}">'
            f"{escape(said)}</text>")


def panel(results, bars, test, left, top):
    """One test: the bars are the best settings, drawn to the longest of them."""
    out = [text(left, top, f"{report.title_of(test)}, tokens/s", "head")]
    longest = max(report.median(bar) for bar in bars)
    for i, bar in enumerate(bars):
        y, value = top + 14 + i * STEP, report.median(bar)
        kind = "ours" if bar["peer"] == report.OURS else "theirs"
        length = max(1.0, value / longest * (PANEL - LABEL - VALUE))
        said = report.number(value, test)
        ours = report.ours_of(results, bar)
        if ours and kind == "theirs":
            said += f"  ({report.times(report.ratios(ours, bar))})"
        out += [text(left + LABEL - 8, y + BAR - 4.5, bar["title"], anchor="end"),
                f'<rect x="{left + LABEL}" y="{y}" width="{length:.1f}" height="{BAR}" rx="2" '
                f'class="{kind}"/>', text(left + LABEL + length + 6, y + BAR - 4.5, said)]
    return out


def draw(results):
    model, threads = report.first_group(results)
    here = report.find(results, model=model, threads=threads)
    panels = []
    for test in report.unique([s["test"] for s in here]):
        peers = report.unique([s["peer"] for s in here if s["test"] == test])
        if test["test"] != "start":
            panels.append((test, [report.best([s for s in here if s["test"] == test
                                               and s["peer"] == peer]) for peer in peers]))
    high = HEAD + STEP * max((len(bars) for _, bars in panels), default=0)
    height = TOP + (len(panels) + 1) // 2 * (high + 14)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
           f'width="{WIDTH}" height="{height}" role="img">',
           f"<title>{escape(model)}: tokens per second of stele and its peers</title>",
           f"<style>{STYLE}</style>", text(0, 18, f"{model}, {threads} threads", "head"),
           text(0, 36, f"{results['machine']}, {results['date']}; medians of {results['rounds']} "
                "rounds in turns, best setting of each; in brackets: stele as many times as fast",
                "note")]
    for i, (test, bars) in enumerate(panels):
        out += panel(results, bars, test, (i % 2) * (PANEL + GAP), TOP + 14 + i // 2 * (high + 14))
    return "\n".join([*out, "</svg>"]) + "\n"
