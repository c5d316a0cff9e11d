"""The report of a fit as Markdown, and the pieces of it that the model card shares."""

from collections.abc import Mapping, Sequence

from sentloom.markdown import fenced, plain, table
from sentloom.report import wording
from sentloom.report.story import Neighbours, Story
from sentloom.report.wording import interval, number, signed

CAPTIONS = {
    "scores": "Scores before and after, with intervals",
    "routes": "Routes tried, by round",
    "training": "Training loss",
    "trajectory": "Alignment and uniformity on the way",
    "similarities": "Cosines of related and unrelated pairs",
}


def report(story: Story, pictures: Sequence[str]) -> str:
    """The whole report; `pictures` names those that stand in plots/."""
    parts = [
        f"# {plain(story.title)}",
        f"**{wording.HEADLINES[story.verdict]}.** {plain(story.reason)}",
        deciding(story),
        *map(plain, story.advice),
        *(f"> **Warning:** {plain(warning)}" for warning in story.warnings),
        *_section("Before and after", _picture("scores", pictures), measures(story), plain(wording.stability(story))),
        *_section("Routes", _picture("routes", pictures), _runs(story), _not_run(story)),
        *_section("Training", _picture("training", pictures)),
        *_section("Alignment and uniformity", _picture("trajectory", pictures), _trails(story)),
        *_section("Similarities", _picture("similarities", pictures), _overlaps(story)),
        *_section("Nearest texts", *map(_neighbours, story.neighbours)),
        *_section("Data", sources(story)),
        *_section("How it was made", *_small_print(story)),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _section(title: str, *parts: str) -> list[str]:
    """A title and what stands below it, or nothing."""
    return [f"## {title}", *parts] if any(parts) else []


def _picture(name: str, pictures: Sequence[str]) -> str:
    return f"![{CAPTIONS[name]}](plots/{name}.png)" if name in pictures else ""


def deciding(story: Story) -> str:
    """The number that decided, before and after."""
    if (one := story.total) is None:
        return ""
    change = f"{signed(one.difference)} (95% interval {interval(one.low, one.high)}, {wording.chance(one.p)})"
    return f"Deciding score ({plain(one.label)}): {number(one.before)} → **{number(one.after)}**, {change}."


def measures(story: Story) -> str:
    """Every measure, before and after."""
    rows = [
        (
            one.label, part, f"{one.metric}, {one.items:,} items",
            f"{number(one.before)} ({interval(one.before_low, one.before_high)})",
            f"{number(one.after)} ({interval(one.after_low, one.after_high)})",
            wording.change(one),
        )
        for part, group in wording.groups(story).items()
        for one in group
    ]  # fmt: skip
    return table(("measure", "part", "score", "before", "after", "difference"), rows, 3) if rows else ""


def _runs(story: Story) -> str:
    rows = [
        (
            run.route, run.verdict, "; then ".join(run.stages), str(run.rung),
            f"{run.steps:,}", wording.duration(run.seconds), number(run.score),
            wording.change(run),
        )
        for runs in wording.routes_run(story).values()
        for run in runs.values()
    ]  # fmt: skip
    head = ("route", "verdict", "stages", "round", "steps", "time", "score", "difference to the base")
    return table(head, rows, 3) if rows else ""


def _not_run(story: Story) -> str:
    return "\n".join(f"- Not tried: **{plain(name)}**. {plain(why)}" for name, why in wording.routes_not_run(story))


def _trails(story: Story) -> str:
    rows = [
        (trail.route, label, number(alignment, 3), number(uniformity, 3))
        for trail in story.trails
        for label, alignment, uniformity in trail.points
    ]
    return table(("route", "at", "alignment", "uniformity"), rows, 2) if rows else ""


def _overlaps(story: Story) -> str:
    if (found := story.histogram) is None:
        return ""
    before = 100 * wording.overlap(found.related_before, found.unrelated_before)
    after = 100 * wording.overlap(found.related_after, found.unrelated_after)
    return f"Related and unrelated pairs overlap by {before:.0f}% before and by {after:.0f}% after."


def _neighbours(one: Neighbours) -> str:
    before, after = wording.marked(one)
    rows = [(_near(before, place, "gone"), _near(after, place, "new")) for place in range(max(len(before), len(after)))]
    return f"**{plain(one.sentence)}**\n\n{table(('before', 'after'), rows, 2)}"


def _near(listed: Sequence[tuple[float, str, bool]], place: int, mark: str) -> str:
    if place >= len(listed):
        return ""
    cosine, text, changed = listed[place]
    return f"{number(cosine)} {text}" + (f" ({mark})" if changed else "")


def sources(story: Story) -> str:
    """What the data are and what became of their rows."""
    rows = [
        (
            one.name, "; ".join((one.shape, *one.notes)), wording.language(one), f"{one.rows:,}",
            f"{one.distinct:,}", f"{one.duplicates:,}", f"{one.held_out:,}", f"{one.trained:,}", number(one.words, 0),
        )
        for one in story.sources
    ]  # fmt: skip
    head = ("input", "what", "language", "rows", "distinct", "repeated", "held out", "trained on", "words")
    return table(head, rows, 3) if rows else ""


def _small_print(story: Story) -> list[str]:
    hashes = {**{source.name: source.sha256 for source in story.sources}, **story.hashes}
    return [
        fenced(story.command, "sh"),
        f"Budget: {plain(story.budget)}." if story.budget else "",
        _facts("cost", {name: wording.duration(cost) for name, cost in story.cost.items()}),
        _facts("version", story.versions),
        _facts("SHA-256", hashes),
        fenced(story.recipe, "yaml") if story.recipe else "",
    ]


def _facts(title: str, facts: Mapping[str, str]) -> str:
    return table(("", title), facts.items(), 2) if facts else ""
