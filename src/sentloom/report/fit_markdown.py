"""The report of a fit as Markdown, and the pieces of it that the model card shares."""

from collections.abc import Mapping, Sequence
from itertools import zip_longest

from sentloom.fitting.result import FitResult, Near, Neighbours
from sentloom.markdown import fenced, plain, table
from sentloom.report import formatting
from sentloom.report.formatting import interval, number, signed

CAPTIONS = {
    "scores": "Scores before and after, with intervals",
    "routes": "Routes tried, by round",
    "training": "Training loss",
    "trajectory": "Alignment and uniformity on the way",
    "similarities": "Cosines of related and unrelated pairs",
}


def report(result: FitResult, pictures: Sequence[str]) -> str:
    """The whole report; `pictures` names those that stand in plots/."""
    parts = [
        f"# {plain(result.title)}",
        f"**{formatting.HEADLINES[result.verdict]}.** {plain(result.reason)}",
        deciding(result),
        *map(plain, result.advice),
        *(f"> **Warning:** {plain(warning)}" for warning in result.warnings),
        *_section(
            "Before and after", _picture("scores", pictures), measures(result), plain(formatting.stability(result))
        ),
        *_section("Routes", _picture("routes", pictures), _runs(result), _not_run(result)),
        *_section("Training", _picture("training", pictures)),
        *_section("Alignment and uniformity", _picture("trajectory", pictures), _trails(result)),
        *_section("Similarities", _picture("similarities", pictures), _overlaps(result)),
        *_section("Nearest texts", *map(_neighbours, result.neighbours)),
        *_section("Data", sources(result)),
        *_section("How it was made", *_small_print(result)),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _section(title: str, *parts: str) -> list[str]:
    """A title and what stands below it, or nothing."""
    return [f"## {title}", *parts] if any(parts) else []


def _picture(name: str, pictures: Sequence[str]) -> str:
    return f"![{CAPTIONS[name]}](plots/{name}.png)" if name in pictures else ""


def deciding(result: FitResult) -> str:
    """The number that decided, before and after."""
    if (one := result.total) is None:
        return ""
    change = f"{signed(one.difference)} (95% interval {interval(one.low, one.high)}, {formatting.chance(one.p)})"
    return f"Deciding score ({plain(one.label)}): {number(one.before)} → **{number(one.after)}**, {change}."


def measures(result: FitResult) -> str:
    """Every measure, before and after."""
    rows = [
        (
            one.label, part, f"{one.metric}, {one.items:,} items",
            f"{number(one.before)} ({interval(one.before_low, one.before_high)})",
            f"{number(one.after)} ({interval(one.after_low, one.after_high)})",
            formatting.change(one),
        )
        for part, group in formatting.titled_parts(result).items()
        for one in group
    ]  # fmt: skip
    return table(("measure", "part", "score", "before", "after", "difference"), rows, 3) if rows else ""


def _runs(result: FitResult) -> str:
    rows = [
        (
            run.route, run.verdict, "; then ".join(run.stages), str(run.rung),
            f"{run.steps:,}", formatting.duration(run.seconds), number(run.score),
            formatting.change(run),
        )
        for runs in result.ladder.values()
        for run in runs.values()
    ]  # fmt: skip
    head = ("route", "verdict", "stages", "round", "steps", "time", "score", "difference to the base")
    return table(head, rows, 3) if rows else ""


def _not_run(result: FitResult) -> str:
    return "\n".join(f"- Not tried: **{plain(one.name)}**. {plain(one.why)}" for one in result.skipped)


def _trails(result: FitResult) -> str:
    rows = [
        (trail.route, label, number(alignment, 3), number(uniformity, 3))
        for trail in result.trails
        for label, alignment, uniformity in trail.points
    ]
    return table(("route", "at", "alignment", "uniformity"), rows, 2) if rows else ""


def _overlaps(result: FitResult) -> str:
    if (found := result.histogram) is None:
        return ""
    before, after = found.before.overlap, found.after.overlap
    return f"Related and unrelated pairs overlap by {before:.0f}% before and by {after:.0f}% after."


def _neighbours(one: Neighbours) -> str:
    before = [_near(near, one.gone, "gone") for near in one.before]
    after = [_near(near, one.new, "new") for near in one.after]
    rows = list(zip_longest(before, after, fillvalue=""))
    return f"**{plain(one.sentence)}**\n\n{table(('before', 'after'), rows, 2)}"


def _near(near: Near, changed: set[str], mark: str) -> str:
    cosine, text = near
    return f"{number(cosine)} {text}" + (f" ({mark})" if text in changed else "")


def sources(result: FitResult) -> str:
    """What the data are and what became of their rows."""
    rows = [
        (
            one.name, "; ".join((one.shape, *one.notes)), formatting.language(one), f"{one.rows:,}",
            f"{one.distinct:,}", f"{one.duplicates:,}", f"{one.held_out:,}", f"{one.trained:,}", number(one.words, 0),
        )
        for one in result.sources
    ]  # fmt: skip
    head = ("input", "what", "language", "rows", "distinct", "repeated", "held out", "trained on", "words")
    return table(head, rows, 3) if rows else ""


def _small_print(result: FitResult) -> list[str]:
    hashes = {**{source.name: source.sha256 for source in result.sources}, **result.hashes}
    return [
        fenced(result.command, "sh"),
        f"Budget: {plain(result.budget)}." if result.budget else "",
        _facts("cost", {name: formatting.duration(cost) for name, cost in result.cost.items()}),
        _facts("version", result.versions),
        _facts("SHA-256", hashes),
        fenced(result.recipe, "yaml") if result.recipe else "",
    ]


def _facts(title: str, facts: Mapping[str, str]) -> str:
    return table(("", title), facts.items(), 2) if facts else ""
