"""Made-up stories of fits: a full one, and any one."""

from dataclasses import fields, is_dataclass, replace
from random import Random

from hypothesis import strategies as st

from sentloom.fitting.advice import Advice, AdviceKind
from sentloom.fitting.measures import Measure, Power
from sentloom.fitting.result import (
    BaseSummary,
    Curve,
    Example,
    FitResult,
    Histogram,
    InputSummary,
    NearestTexts,
    RouteSummary,
    RowCounts,
    Run,
    Stability,
    Threshold,
    Trail,
)


def measure(name="halves", before=58.31, after=69.84, spread=2.1, part="deciding", p=0.0004):
    """With intervals of `spread` to both sides; the difference's is half as wide."""
    difference = after - before
    ends = (before, before - spread, before + spread, after, after - spread, after + spread)
    label = f"the label of {name}"
    return Measure(
        *(name, label, part, "mrr@10", 812, *ends, difference, difference - spread / 2, difference + spread / 2, p),
        clusters=640,
        effective=512.36,
        documents=900,
        of_documents=1456,
        also={"recall@10": (81.5, 84.25)},
    )


def run(route, rung, difference, verdict):
    return Run(
        route,
        rung,
        60 * rung,
        14.2,
        61.2 + difference,
        difference,
        difference - 2,
        difference + 2,
        verdict,
        ("simcse on a.txt, 60 steps",),
    )


ROWS = RowCounts(18422, 16890, 401, 411, {"repeated rows": 462, "rows that share a text with held-out rows": 258})
FULL = FitResult(
    title="A fit of notes",
    verdict="better",
    reason="It is better, and that is sure.",
    base="embedded",
    model="models/notes",
    created="2025-03-14",
    command="sentloom fit notes.txt -o models/notes",
    started_from="owner/large",
    bases=(BaseSummary("embedded", 22713216, 384, 60.25, True), BaseSummary("owner/large", 568000000, 1024, 57.75, False, True, True)),
    sources=(InputSummary("notes.txt", "texts", ROWS, 17960, "en", 14.0, 462, "9f" * 32, ("a note",)),),
    routes=(RouteSummary("simcse", "raw text", True), RouteSummary("pairs", "pairs", True), RouteSummary("nli triplets", "no labels", False)),
    runs=(
        run("pairs", 1, 1.25, "dropped"),
        run("simcse", 1, 4.5, "advanced"),
        run("simcse", 2, 12.75, "won"),
        Run("broken", 1, 60, 3.0, None, None, None, None, "failed: the loss is no number"),
    ),
    measures=(
        measure(),
        measure("views", 88.42, 90.15, 1.4),
        measure("sts-b", 82.03, 80.11, 0.8, "general"),
        measure("own rows", 91.07, 90.66, 1.3, "watched"),
    ),
    total=measure("mean", 73.36, 79.99, 1.8),
    by_language=(replace(measure("notes.txt, de", 61.07, 57.66), label="German: halves"),),
    by_dimension=(replace(measure("64", 41.21, 55.32), label="64 dimensions"),),
    power=Power(2.14, 0.8, 0.7, 640, effective=512.36),
    uses=3,
    test_sha256="5e" * 32,
    believe="Validation and test rows agree.",
    cluster_notes=("notes.txt: clustered by equal texts",),
    threshold=Threshold(0.63, 0.9, 0.91, 0.74, 0.89, 0.72, 812, 660),
    won=(Example("notes.txt", "How do I open it?", "Turn the lid.", 0.0, 100.0, "Shut it.", "Turn the lid."),),
    lost=(Example("notes.txt", "Where is it?", "In the cellar.", 100.0, 38.7, "In the cellar.", "On the roof."),),
    stability=Stability(97.72, 97.1, 98.34, 250, 10),
    advice=(Advice(AdviceKind.KEEP_BETTER_BASE),),
    curves=(Curve("simcse", "simcse on notes.txt", tuple(range(1, 31)), tuple(2 / step for step in range(1, 31))),),
    trails=(
        Trail("pairs", (("base", 0.412, -2.31), ("rung 1", 0.39, -2.44))),
        Trail("simcse", (("base", 0.412, -2.31), ("rung 1", 0.35, -2.62), ("rung 2", 0.301, -2.88))),
    ),
    histogram=Histogram((-1.0, 0.0, 0.5, 1.0), (0, 5, 5), (5, 5, 0), (0, 1, 9), (9, 1, 0)),
    neighbours=(NearestTexts("Open it.", ((0.83, "Open a file."), (0.71, "Shut it.")), ((0.91, "Open a file."), (0.77, "Undo the lid."))),),
    warnings=("General ability fell by 1.92 points.",),
    recipe="encoder: embedded\nseed: 1\n",
    budget="5 minutes",
    versions={"torch": "2.9.0"},
    hashes={"model": "77" * 32},
    cost={"training": 269.7, "machine": "2 cores"},
)  # fmt: skip
# Nothing was run: all lists are empty.
BARE = FitResult(
    "Words", "no difference shown", "Too little.", "embedded", None, "2025-03-14", "sentloom fit words.txt -o m"
)

WORDS = st.text(max_size=12) | st.sampled_from(
    ["<script>x</script>", '" onload="x', "a|b `c` </svg>", "&lt;", "\n\n# x", "---", "```\n<i>"]
)
KEPT = ("verdict", "part", "edges")


def spoiled(texts, numbers, seed):
    """The full story with other texts and numbers everywhere, lists cut short and parts missing."""
    random = Random(seed)

    def changed(value, name=""):
        if name in KEPT:
            return value
        if is_dataclass(value):
            if name in ("total", "histogram", "stability", "power", "threshold") and random.random() < 0.25:
                return None
            return replace(
                value, **{part.name: changed(getattr(value, part.name), part.name) for part in fields(value)}
            )
        if isinstance(value, tuple):
            listed = bool(value) and (
                name in ("stages", "notes", "warnings", "advice") or not isinstance(value[0], str | float | int)
            )
            return tuple(map(changed, value[: random.randint(0, len(value))] if listed else value))
        if isinstance(value, dict):
            return {changed(key): changed(one) for key, one in value.items()}
        pool = {str: texts, float: numbers}.get(type(value))
        return random.choice(pool) if pool else value

    return replace(
        changed(FULL), verdict=random.choice(["better", "no difference shown", "worse"]), forced=random.random() < 0.3
    )


STORIES = st.builds(
    spoiled,
    st.lists(WORDS, min_size=1, max_size=6),
    st.lists(st.floats(-1e4, 1e4), min_size=1, max_size=6),
    st.integers(0, 10**6),
)
