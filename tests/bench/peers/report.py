"""What the measured rounds say: medians with their spread, ratios of rounds, shares of the read
bandwidth, and the texts that show them. Pure functions of the results.

results = {"machine", "features", "threads_at_hand", "date", "load", "versions": {title: version},
           "level", "rounds", "ahead",
           "series": [{"model", "threads", "test", "peer", "name", "answers", "bytes"}, ...],
           "absent": [{"what", "reason"}, ...]}
An answer of a round has tokens_per_s (or seconds, for a start); stele's also has read_gb_per_s and
bytes_per_token.
"""
import statistics

OURS = "stele"
BEGIN, END = "<!-- peers: begin -->", "<!-- peers: end -->"


def title_of(test):
    if test["test"] == "start":
        return "start to first token"
    if test["test"] == "prefill":
        return f"prompt of {test['prompt']}"
    return f"decode at {test['prompt']}" if test["prompt"] else "decode"


def values(series):
    key = "seconds" if series["test"]["test"] == "start" else "tokens_per_s"
    return [answer[key] for answer in series["answers"]]


def median(series):
    return statistics.median(values(series))


def ratios(ours, theirs):
    """How many times as fast we were, round by round."""
    pairs = zip(values(ours), values(theirs))
    if ours["test"]["test"] == "start":
        return [b / a for a, b in pairs]
    return [a / b for a, b in pairs]


def share(series, ours):
    """The bytes it read as a part of what plain loads read in the same round; None: not known."""
    if series["test"]["test"] != "decode" or not ours:
        return None
    if series["peer"] != OURS and series["test"]["prompt"]:
        return None  # what a peer's cache takes is its own affair
    parts = []
    for own, answer in zip(ours["answers"], series["answers"]):
        size = answer.get("bytes_per_token", series["bytes"])
        if own["read_gb_per_s"] > 0:
            parts.append(answer["tokens_per_s"] * size / own["read_gb_per_s"] / 1e9)
    return statistics.median(parts) if parts else None


def find(results, **wanted):
    return [s for s in results["series"] if all(s[key] == value for key, value in wanted.items())]


def best(candidates):
    """The setting that counts: the fastest by its median."""
    if not candidates:
        return None
    faster = min if candidates[0]["test"]["test"] == "start" else max
    return faster(candidates, key=median)


def ours_of(results, series):
    return best(find(results, peer=OURS, model=series["model"], threads=series["threads"],
                     test=series["test"]))


def number(value, test):
    if test["test"] == "start":
        return f"{value * 1000:.0f} ms"
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}"


def unique(items):
    return [item for i, item in enumerate(items) if item not in items[:i]]


def times(found):
    middle = statistics.median(found)
    return f"{middle:.0f} ×" if middle >= 20 else f"{middle:.2f} ×"


def cell(results, series, full):
    if not series:
        return "–"
    ours, test = ours_of(results, series), series["test"]
    parts = [number(median(series), test)]
    if full:
        low, high = min(values(series)), max(values(series))
        parts[0] += f" ({number(low, test)} to {number(high, test)})"
    if ours and series["peer"] != OURS:
        parts.append(f"**{times(ratios(ours, series))}**")
    part = share(series, ours) if full else None
    if part is not None:
        parts.append(f"{part:.0%}")
    return ", ".join(parts)


def rows(lines):
    """A Markdown table of lists of cells; the first line is its head."""
    shown = [f"| {' | '.join(line)} |" for line in lines]
    return "\n".join([shown[0], "|" + "---|" * len(lines[0]), *shown[1:]])


def heading(results):
    features = ", ".join(results["features"]) or "none of AVX2 and after"
    level = f" Held to {results['level']}." if results["level"] else ""
    ahead = ", what was measured ahead of it by real-time priority" if results["ahead"] else ""
    versions = ", ".join(f"{title} {version}" for title, version in results["versions"].items())
    return (f"{results['machine']} ({features}; {results['threads_at_hand']} processors), "
            f"{results['date']}. {versions}. Medians of {results['rounds']} rounds in turns; load "
            f"of the machine at the end {results['load']:.1f}{ahead}.{level}")


def full_text(results):
    """Every setting of every peer, with the spread: the file that a run leaves."""
    parts = ["# stele beside its peers", heading(results),
             "Tokens per second: median (slowest to fastest round), how many times as fast stele "
             "was (median of rounds), share of the read bandwidth in the same minute."]
    for model, threads in unique([(s["model"], s["threads"]) for s in results["series"]]):
        here = find(results, model=model, threads=threads)
        tests = unique([s["test"] for s in here])
        lines = [[f"{model}, threads: {threads}", *map(title_of, tests)]]
        for name in unique([s["name"] for s in here]):
            cells = [best(find(results, model=model, threads=threads, test=t, name=name))
                     for t in tests]
            lines.append([name, *(cell(results, c, True) for c in cells)])
        parts.append(rows(lines))
    if results["absent"]:
        parts.append("Not measured:\n\n" + "\n".join(
            f"- {a['what']}: {a['reason']}" for a in results["absent"]))
    return "\n\n".join(parts) + "\n"


def first_group(results):
    """The model and the number of threads that the picture shows: the first, the most."""
    model = results["series"][0]["model"]
    return model, max(s["threads"] for s in find(results, model=model))


def peers_table(results):
    model, threads = first_group(results)
    here = find(results, model=model, threads=threads)
    tests = unique([s["test"] for s in here])
    lines = [[f"{model}, {threads} threads", *map(title_of, tests)]]
    for peer in unique([s["peer"] for s in here]):
        cells = [best(find(results, model=model, threads=threads, test=t, peer=peer))
                 for t in tests]
        title = next(s["title"] for s in here if s["peer"] == peer)
        lines.append([title, *(cell(results, c, False) for c in cells)])
    return rows(lines)


def models_table(results, rival="llama"):
    """Every model and number of threads: our decoding, and ratios to one peer's best setting."""
    rival_title = next((s["title"] for s in results["series"] if s["peer"] == rival), None)
    tests = [t for t in unique([s["test"] for s in results["series"]]) if t["test"] != "start"]
    lines = [["", "stele's decode", "share of read bandwidth",
              *(f"{title_of(t)}, to {rival_title}" for t in tests)]]
    for model, threads in unique([(s["model"], s["threads"]) for s in results["series"]]):
        own = {title_of(t): best(find(results, peer=OURS, model=model, threads=threads, test=t))
               for t in tests}
        plain = next((s for s in own.values() if s and s["test"] == decode_of(tests)), None)
        line = [f"{model}, {threads} threads", "–", "–"]
        if plain:
            part = share(plain, plain)
            line[1] = number(median(plain), plain["test"])
            line[2] = "–" if part is None else f"{part:.0%}"
        for t in tests:
            theirs = best(find(results, peer=rival, model=model, threads=threads, test=t))
            ours = own[title_of(t)]
            line.append(times(ratios(ours, theirs)) if ours and theirs else "–")
        lines.append(line)
    return rows(lines) if rival_title else ""


def decode_of(tests):
    return next((t for t in tests if t["test"] == "decode" and not t["prompt"]), None)


def block(results, picture):
    """What stands in README between the two marks."""
    return "\n\n".join([
        BEGIN, heading(results), f"![tokens per second of stele and its peers]({picture})",
        "Tokens per second, each peer in its best setting; bold: how many times as fast stele was.",
        peers_table(results), models_table(results), END])


def put_block(text, made):
    """README's text with the block made anew."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"no '{BEGIN}' and '{END}' to write between")
    return before + made + after
