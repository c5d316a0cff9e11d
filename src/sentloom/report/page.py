"""The report of a fit as one HTML page that needs nothing but itself: styles and pictures stand in it."""

from collections.abc import Iterable, Mapping, Sequence
from importlib import resources

from sentloom.fitting.result import FitResult, Histogram, InputSummary, Measure, Near, Neighbours, Run, Trail
from sentloom.report import formatting, svg
from sentloom.report.formatting import interval, number, signed
from sentloom.report.markup import Markup, element, join

POLICY = "default-src 'none'; style-src 'unsafe-inline'"  # a browser is told to fetch nothing
SIGNS = {"written": "✓", "refused": "✕", "forced": "!"}
FINDINGS = {"better": "better", "worse": "worse", "unsure": "no sure difference"}
OPEN_NEIGHBOURS = 6  # more of them are folded away
NOTHING = Markup()


def page(result: FitResult) -> str:
    """The whole page. Parts that a story has nothing for are left out."""
    sections = [(title, part) for title, part in _sections(result) if part]
    style = Markup(resources.files("sentloom.report").joinpath("page.css").read_text("utf-8"))
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", result.title),
        element("style", style),
    )
    numbered = [element("section", element("h2", title), part, id=f"part-{k}") for k, (title, part) in _count(sections)]
    links = [element("a", title, href=f"#part-{k}") for k, (title, _) in _count(sections)]
    body = element("body", _head(result), element("nav", *_spaced(links)), element("main", *numbered))
    return f"<!DOCTYPE html>\n{element('html', head, body, lang='en')}\n"


def _count(sections: Sequence[tuple[str, Markup]]) -> list[tuple[int, tuple[str, Markup]]]:
    return list(enumerate(sections, 1))


def _spaced(parts: Iterable[Markup]) -> list[str]:
    return [piece for part in parts for piece in (part, " ")]


def _sections(result: FitResult) -> list[tuple[str, Markup]]:
    """Titles and what stands below them; nothing where there is nothing to show."""
    return [
        ("Before and after", _bars(result)),
        ("Every measure", _measures(result)),
        ("Routes", _routes(result)),
        ("Training", _curves(result)),
        ("Alignment and uniformity", _trails(result)),
        ("Similarities", _similarities(result.histogram)),
        ("Nearest texts", _neighbours(result.neighbours)),
        ("Data", _data(result.sources)),
        ("How it was made", _small_print(result)),
    ]


def _head(result: FitResult) -> Markup:
    made = f"sentloom fit · {result.created}"
    return element(
        "header", element("p", made, class_="eyebrow"), element("h1", result.title), _verdict(result), _warnings(result)
    )


def _verdict(result: FitResult) -> Markup:
    sign = element("span", SIGNS[result.verdict], class_="sign", aria_hidden="true")
    return element(
        "div",
        element("h2", sign, formatting.HEADLINES[result.verdict]),
        element("p", result.reason, class_="reason"),
        _deciding(result.total) if result.total else NOTHING,
        *(element("p", line, class_="advice") for line in result.advice),
        _facts(result),
        class_=f"verdict {result.verdict}",
    )


def _deciding(total: Measure) -> Markup:
    """The number that decided, before and after, its difference, and where that lies against 0."""
    was = element("span", f"{number(total.before)} → ", class_="was")
    scale = _scale([total])
    base = element("span", "base", class_="base", style=f"left:{_share(0.0, scale):.2f}%")
    return element(
        "div",
        _big(total.label, was, number(total.after)),
        _big(f"95% interval {interval(total.low, total.high)}", signed(total.difference)),
        element("div", _whisker(total, scale), base, class_="gate", aria_hidden="true"),
        class_="figures",
    )


def _big(label: str, *figure: str) -> Markup:
    return element("div", element("span", label, class_="label"), element("span", *figure, class_="big"))


def _facts(result: FitResult) -> Markup:
    rows = sum(source.rows for source in result.sources)
    files = f"{len(result.sources)} input{'s' * (len(result.sources) != 1)}"
    facts = {
        "Base": result.base,
        "Model": result.model or "not written",
        "Data": f"{rows:,} rows of {files}" if result.sources else "",
        "Budget": result.budget,
    }
    shown = [element("div", element("dt", name), element("dd", fact)) for name, fact in facts.items() if fact]
    return element("dl", *shown, class_="facts")


def _warnings(result: FitResult) -> Markup:
    if not result.warnings:
        return NOTHING
    title = "1 warning" if len(result.warnings) == 1 else f"{len(result.warnings)} warnings"
    listed = element("ul", *(element("li", warning) for warning in result.warnings))
    return element("div", element("h2", title), listed, class_="warnings", role="alert")


def _lead(text: str) -> Markup:
    return element("p", text, class_="lead")


Scale = tuple[float, float]


def _scale(ones: Iterable[Measure | Run]) -> Scale:
    """From the least end of all intervals to the greatest, with 0 and some room to both sides."""
    ends = [0.0, *(end for one in ones for end in (one.low, one.high, one.difference) if end is not None)]
    room = 0.06 * (max(ends) - min(ends)) or 1.0
    return min(ends) - room, max(ends) + room


def _share(value: float, scale: Scale) -> float:
    """Where a value stands on a scale, in percent."""
    return min(100.0, max(0.0, 100 * (value - scale[0]) / (scale[1] - scale[0])))


def _piece(kind: str, left: float, right: float | None = None) -> Markup:
    wide = "" if right is None else f";width:{right - left:.2f}%"
    return element("i", class_=kind, style=f"left:{left:.2f}%{wide}")


def _whisker(one: Measure | Run, scale: Scale) -> Markup:
    """A difference and its interval as a dot on a line; a dashed line stands at 0."""
    if one.low is None or one.high is None or one.difference is None:
        return NOTHING
    low, middle, high = (_share(value, scale) for value in (one.low, one.difference, one.high))
    pieces = (_piece("zero", _share(0.0, scale)), _piece("span", low, high), _piece("dot", middle))
    return element("span", *pieces, class_=f"whisker {one.finding}", aria_hidden="true")


def _bars(result: FitResult) -> Markup:
    groups = formatting.titled_parts(result)
    ones = [one for group in groups.values() for one in group]
    if not ones:
        return NOTHING
    ends = [0.0, *(end for one in ones for end in (one.before_low, one.before_high, one.after_low, one.after_high))]
    scale = (min(ends), max(ends) if max(ends) > min(ends) else min(ends) + 1)
    text = "Scores on held-out rows that chose nothing, with 95% intervals. Grey is the base, blue the fitted model."
    parts = [
        part
        for title, group in groups.items()
        for part in (element("h3", title), *(_bar_pair(one, scale) for one in group))
    ]
    return join([_lead(text), element("div", *parts, class_="bars")])


def _bar_pair(one: Measure, scale: Scale) -> Markup:
    about = element("small", f"{one.metric}, {one.items:,} items", class_="soft")
    return element(
        "div",
        element("div", element("span", one.label), about, class_="name"),
        _bar("before", one.before, one.before_low, one.before_high, scale),
        _bar("after", one.after, one.after_low, one.after_high, scale),
    )


def _bar(name: str, value: float, low: float, high: float, scale: Scale) -> Markup:
    zero, end = _share(0.0, scale), _share(value, scale)
    fill = _piece("fill", min(zero, end), max(zero, end))
    error = _piece("error", _share(low, scale), _share(high, scale))
    return element(
        "div",
        element("span", name, class_="soft"),
        element("span", fill, error, class_="track", aria_hidden="true"),
        element("span", number(value), class_="value"),
        class_=f"bar {name}",
    )


def _table(head: Sequence[str], rows: Iterable[Markup], kind: str = "", numbers: Sequence[int] = ()) -> Markup:
    titles = [
        element("th", title, scope="col", class_="num" if place in numbers else None)
        for place, title in enumerate(head)
    ]
    return element("table", element("thead", element("tr", *titles)), element("tbody", *rows), class_=kind or None)


def _cell(label: str, *content: str, kind: str | None = "num") -> Markup:
    return element("td", *content, class_=kind, data_label=label)


def _measures(result: FitResult) -> Markup:
    groups = formatting.titled_parts(result)
    if not groups:
        return NOTHING
    scale = _scale(one for group in groups.values() for one in group)
    rows = []
    for title, group in groups.items():
        rows.append(element("tr", element("th", title, colspan=5, scope="rowgroup"), class_="group"))
        rows += [_measure(one, scale, "total" if one is result.mean else None) for one in group]
    text = "A difference is sure when its whole 95% interval lies on one side of 0 (paired bootstrap over the items)."
    head = ("", "before", "after", "difference", "← worse · better →")
    stable = formatting.stability(result)
    return join([_lead(text), _table(head, rows, numbers=(1, 2, 3)), *([_lead(stable)] if stable else [])])


def _measure(one: Measure, scale: Scale, kind: str | None) -> Markup:
    found = one.finding
    said = element("span", FINDINGS[found], class_=f"{found}-word")
    about = f"{one.name} · {one.metric} · {one.items:,} items · {formatting.chance(one.p)}"
    return element(
        "tr",
        element("th", one.label, element("small", about), scope="row"),
        _cell("before", number(one.before), _small(interval(one.before_low, one.before_high))),
        _cell("after", number(one.after), _small(interval(one.after_low, one.after_high))),
        _cell("difference", signed(one.difference), _small(interval(one.low, one.high))),
        _cell("", _whisker(one, scale), element("small", said), kind="picture"),
        class_=kind,
    )


def _small(text: str) -> Markup:
    return join([" ", element("small", text)])


def _routes(result: FitResult) -> Markup:
    if not result.runs and not result.routes:
        return NOTHING
    return join([_ladder(result) if result.runs else NOTHING, _stages(result.runs), _not_run(result)])


def _ladder(result: FitResult) -> Markup:
    """A row a route, a column a rung: where a row ends, the route was dropped."""
    rungs, scale = result.rounds, _scale(result.runs)
    why = {route.name: route.why for route in result.routes}
    rows = []
    for route, runs in result.ladder.items():
        name = element("th", route, *([element("small", why[route])] if route in why else []), scope="row")
        cells = [_step(runs[rung], rung, scale) if rung in runs else element("td") for rung in rungs]
        last = runs[max(runs)]
        rows.append(element("tr", name, *cells, class_=None if last.is_best else "stopped"))
    head = ["route", *(f"round {rung}: {formatting.steps_in_words(steps)}" for rung, steps in rungs.items())]
    text = (
        "Every run starts from the base. The better routes go on to a longer round, the others are dropped. "
        "Shown is the difference to the base, with its 95% interval, on held-out rows kept for choosing: "
        "the verdict above rests on others."
    )
    table = element("div", _table(head, rows, "ladder"), style=f"--rungs:{len(rungs)}")
    return join([_lead(text), table])


def _step(run: Run, rung: int, scale: Scale) -> Markup:
    kind = run.verdict.partition(":")[0].split(" ")[0].strip(",")  # goes, dropped, won, best or failed
    kind = {"goes": "on", "dropped": "out"}.get(kind, kind)
    words = {"on": "goes on →", "won": "✓ won", "out": "✕ dropped"}.get(kind, run.verdict)
    line = [element("span", signed(run.difference)), element("span", words, class_="end small")]
    told = f"{interval(run.low, run.high)} · {run.steps:,} steps, {formatting.duration(run.seconds)}"
    box = element(
        "div",
        element("div", *line, class_="line"),
        _whisker(run, scale),
        title=f"{number(run.score)} on the rows that choose; {told}",
        class_=f"step {kind}",
    )
    return element("td", box, data_label=f"round {rung}")


def _stages(runs: Sequence[Run]) -> Markup:
    """What each run did, stage by stage, folded away."""
    told = [run for run in runs if run.stages]
    if not told:
        return NOTHING
    rows = [
        element(
            "tr",
            element("th", run.route, element("small", "; then ".join(run.stages)), scope="row"),
            _cell("round", str(run.rung)),
            _cell("steps", f"{run.steps:,}"),
            _cell("time", formatting.duration(run.seconds)),
            _cell("score", number(run.score)),
            _cell("difference", signed(run.difference), _small(interval(run.low, run.high))),
        )
        for run in told
    ]
    head = ("run", "round", "steps", "time", "score", "difference")
    return _folded("Every run, stage by stage", _table(head, rows, numbers=range(1, 6)))


def _not_run(result: FitResult) -> Markup:
    if not result.skipped:
        return NOTHING
    listed = [element("li", one.name, element("small", f" {one.why}", class_="soft")) for one in result.skipped]
    title = element("h3", "Not tried", style="margin:1.75rem 0 0.5rem")
    return join([title, element("ul", *listed, class_="plain")])


def _folded(title: str, *content: str, is_open: bool = False) -> Markup:
    return element("details", element("summary", title), *content, open="" if is_open else None)


def _figure(title: str, about: str, picture: Markup) -> Markup:
    caption = element("figcaption", title, " ", element("span", about))
    return element("figure", caption, picture)


def _curves(result: FitResult) -> Markup:
    drawn = [(curve, svg.loss_curve(curve)) for curve in result.curves]
    figures = [_figure(curve.route, curve.stage, picture) for curve, picture in drawn if picture]
    if not figures:
        return NOTHING
    text = (
        "The loss by step: each value faintly, their running mean on top. Losses of different methods do not compare."
    )
    return join([_lead(text), element("div", *figures, class_="grid")])


def _trails(result: FitResult) -> Markup:
    if not any(trail.points for trail in result.trails):
        return NOTHING
    text = (
        "Alignment: how far related sentences lie from each other. Uniformity: how evenly all sentences spread. "
        "Less is better on both, so a good way leads to the lower left; the base stands at the start."
    )
    winner = result.winner
    picture = element("figure", svg.trails(result.trails, winner))
    tables = [_trail(trail) for trail in result.trails if trail.route == winner]
    return join([_lead(text), element("div", picture, *tables, class_="grid")])


def _trail(trail: Trail) -> Markup:
    rows = [
        element(
            "tr",
            element("th", label, scope="row"),
            _cell("alignment", number(alignment, 3)),
            _cell("uniformity", number(uniformity, 3)),
        )
        for label, alignment, uniformity in trail.points
    ]
    return element("div", _table((trail.route, "alignment", "uniformity"), rows, "keep", numbers=(1, 2)))


def _similarities(found: Histogram | None) -> Markup:
    if not found:
        return NOTHING
    sides = {"Before": found.before, "After": found.after}
    top = 1.12 * max(share for side in sides.values() for share in (*side.related, *side.unrelated))
    figures = [
        _figure(name, f"overlap {side.overlap:.0f}%", svg.similarities(found.edges, side, top))
        for name, side in sides.items()
    ]
    text = (
        "Cosines of related and of unrelated held-out pairs. The less the two overlap, the better they are told apart."
    )
    return join([_lead(text), element("div", *figures, class_="grid")])


def _neighbours(found: Sequence[Neighbours]) -> Markup:
    if not found:
        return NOTHING
    shown = [_neighbour(one) for one in found]
    more = shown[OPEN_NEIGHBOURS:]
    folded = _folded(f"{len(more)} more", element("div", *more)) if more else NOTHING
    text = "What lies nearest to sample sentences, with the cosine. Marked is what left the list and what came into it."
    return join([_lead(text), *shown[:OPEN_NEIGHBOURS], folded])


def _neighbour(one: Neighbours) -> Markup:
    return element(
        "article",
        element("h3", one.sentence, dir="auto"),
        element(
            "div",
            _near_list("before", one.before, one.gone, "gone"),
            _near_list("after", one.after, one.new, "new"),
            class_="lists",
        ),
        class_="near",
    )


def _near_list(title: str, listed: Sequence[Near], changed: set[str], mark: str) -> Markup:
    items = [
        element(
            "li",
            element("span", number(cosine), class_="cosine"),
            element("span", text, dir="auto"),
            element("span", mark if text in changed else "", class_="tag"),
            class_=mark if text in changed else None,
        )
        for cosine, text in listed
    ]
    return element("div", element("h4", title), element("ol", *items))


def _data(sources: Sequence[InputSummary]) -> Markup:
    if not sources:
        return NOTHING
    head = ("", "rows", "distinct", "repeated", "held out", "trained on", "words", "language")
    text = "What each input holds and what became of its rows; words are the median of a text."
    return join([_lead(text), _table(head, [_source(one) for one in sources], numbers=range(1, 7))])


def _source(one: InputSummary) -> Markup:
    notes = [element("small", note) for note in (one.shape, *one.notes)]
    counts = {"rows": one.rows, "distinct": one.distinct, "repeated": one.duplicates, "held out": one.held_out}
    return element(
        "tr",
        element("th", one.name, *notes, scope="row"),
        *(_cell(name, f"{count:,}") for name, count in {**counts, "trained on": one.trained}.items()),
        _cell("words", f"{one.words:,.0f}"),
        _cell("language", formatting.language(one), kind=None),
    )


def _small_print(result: FitResult) -> Markup:
    hashes = {**{source.name: source.sha256 for source in result.sources}, **result.hashes}
    lists: dict[str, Mapping[str, str]] = {
        "Cost": {name: formatting.duration(cost) for name, cost in result.cost.items()},
        "Versions": result.versions,
        "Hashes (SHA-256)": hashes,
    }
    parts = [
        element("p", "To do it again:", class_="lead", style="margin-bottom:0.5rem"),
        element("pre", element("code", result.command), class_="wrap", style="margin-bottom:1.5rem"),
        *(_folded(title, _list(facts), is_open=title == "Cost") for title, facts in lists.items() if facts),
    ]
    if result.recipe:
        parts.append(
            _folded("Recipe of the best run, nothing left out", element("pre", element("code", result.recipe)))
        )
    return join(parts)


def _list(facts: Mapping[str, str]) -> Markup:
    rows = [row for name, fact in facts.items() for row in (element("dt", name), element("dd", fact))]
    return element("dl", *rows, class_="list")
