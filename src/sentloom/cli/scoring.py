"""The commands about scores: evaluate, geometry."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from sentloom.cli.common import PoolingOption, load, read, show
from sentloom.errors import InputError

if TYPE_CHECKING:
    from sentloom.evaluation.geometry import ScoredPairs, UniformityVariant

MODELS = "[LABEL=]MODEL[,MODEL...]"


def evaluate(
    models: Annotated[
        list[str],
        typer.Argument(
            metavar=MODELS + " ...",
            help="embedded, folders, hub names, or baselines: tf-idf, words:FILE, whitening:MODEL, wk:MODEL. "
            "Several with commas between them are seeds of one model.",
        ),
    ],
    suite: Annotated[
        list[str] | None,
        typer.Option(
            help="sts, transfer, sentglue, multilingual, domain, afs; one set of them, such as STS-B/dev; or your "
            "file: retrieval:FILE, pairs:FILE, classification:FILE. Repeatable; by default sts."
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(help="A data folder (sts/STS12.tsv, senteval/MR.tsv ...), or SentEval's; without it, the hub."),
    ] = None,
    aggregation: Annotated[str, typer.Option(help="How sub-sets are joined: all, mean or wmean.")] = "all",
    fast: Annotated[
        bool, typer.Option("--fast", help="Five folds, not ten; at most 10,000 rows of training parts.")
    ] = False,
    hidden: Annotated[int, typer.Option(help="Of the classifiers of transfer: 0, logistic regression, or 50.")] = 0,
    unchecked: Annotated[
        bool, typer.Option("--unchecked", help="Score sets whose counts are not the published ones, and say so.")
    ] = False,
    published: Annotated[bool, typer.Option("--published", help="Show beneath what the papers print.")] = False,
    mteb: Annotated[
        list[str] | None,
        typer.Option(
            help="Instead: tasks of the mteb package, such as STS or STSBenchmark; its result files go to -o."
        ),
    ] = None,
    pooling: PoolingOption = None,
    cache: Annotated[
        Path | None, typer.Option(help="Where vectors and scores are kept; by default ~/.cache/sentloom.")
    ] = None,
    cache_size: Annotated[float, typer.Option(min=0, help="GB of vectors at most; 0: keep nothing.")] = 2.0,
    output: Annotated[
        list[Path] | None,
        typer.Option("--output", "-o", help="Where the scores go: .json, .csv, .md, .png; repeatable."),
    ] = None,
) -> None:
    """Score models on suites, side by side, with intervals. Stopped or killed, the same command goes on."""
    from sentloom.evaluation.evaluate import evaluate as run
    from sentloom.evaluation.evaluate import open_memory, parse_models
    from sentloom.locks import in_turn
    from sentloom.report import score_tables
    from sentloom.report.score_files import check_scores_file, write_scores

    chosen = parse_models(models)
    if mteb:
        _run_mteb(chosen, mteb, pooling, output)
        return
    targets = output or [Path("scores.json")]
    for target in targets:
        check_scores_file(target)
    try:
        found = run(
            chosen,
            suite or ["sts"],
            data=data,
            pooling=pooling,
            aggregation=aggregation,
            fast=fast,
            hidden=hidden,
            checked=not unchecked,
            memory=open_memory(cache, cache_size * 1e9) if cache_size else None,
            log=show,
            show_progress=True,
        )
    except KeyboardInterrupt:
        show("stopped; the same command again goes on from here")
        raise
    for one in found.suites:
        show(score_tables.suite(one, list(chosen)))
        if published:
            show(score_tables.with_published(one, list(chosen)))
    with ExitStack() as turns:  # two processes must not mix their files
        for target in sorted(set(targets)):
            turns.enter_context(in_turn(target, show))
        for target in targets:
            write_scores(target, found.models, found.suites)
            show(f"written: {target}")


def _run_mteb(
    models: Mapping[str, Sequence[str]], tasks: list[str], pooling: str | None, output: list[Path] | None
) -> None:
    """Each model on tasks of mteb, whose result files go below the output folder."""
    from sentloom.evaluation.mteb_files import run_mteb
    from sentloom.report import score_tables

    folder = output[0] if output else Path("mteb-results")
    if output and (len(output) > 1 or folder.suffix in (".json", ".csv", ".md")):
        found = " and ".join(map(str, output))
        raise InputError("--output", found, "one folder, for mteb's own files", "say -o mteb-results")
    scores = {
        name: run_mteb(load(name, pooling), tasks, folder, model=name, show_progress=True)
        for names in models.values()
        for name in names
    }
    show(score_tables.mteb(scores), f"written: {folder}")


def geometry(
    models: Annotated[list[str], typer.Argument(metavar="MODEL", help="embedded, model folders or hub names.")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Where the numbers and pictures go.")],
    data: Annotated[Path | None, typer.Option(help="A data folder (sts/STSB.test.tsv); without it, the hub.")] = None,
    pairs: Annotated[
        str | None,
        typer.Option(help="Instead: a file of pairs scored from 0 to 5; or of pairs or translations, all positives."),
    ] = None,
    sweep: Annotated[bool, typer.Option("--sweep", help="Also score every layer under every pooling.")] = False,
    tsne: Annotated[bool, typer.Option("--tsne", help="Also draw high and low pairs on a plane.")] = False,
    trajectory: Annotated[
        bool, typer.Option("--trajectory", help="The models are checkpoints in order: draw the way.")
    ] = False,
    variant: Annotated[
        Literal["reference", "sentence-t5", "printed"], typer.Option(help="How alignment and uniformity are read.")
    ] = "reference",
    pooling: PoolingOption = None,
) -> None:
    """Measure how a model's vectors lie in their space: alignment, uniformity, isotropy, rank; and draw it."""
    from sentloom.data.shapes import Shape
    from sentloom.evaluation import geometry as space
    from sentloom.evaluation.metrics import is_constant
    from sentloom.evaluation.suites.set_source import SetSource, read_part
    from sentloom.evaluation.suites.sts import STS_PARTS
    from sentloom.locks import alone_in

    if pairs:
        scored = space.pairs_of(read(pairs, None, None))
    else:
        scored = space.scored_pairs(read_part(STS_PARTS["STS-B"], SetSource(data), Shape.SCORED_PAIRS))
    if (sweep or tsne) and is_constant(scored.gold):
        option = "--sweep" if sweep else "--tsne"
        raise InputError(option, "pairs without scores, or all alike", "scored pairs, high and low", "leave it out")
    reading = space.UniformityVariant(variant)
    with alone_in(output):
        _write_geometry(models, output, scored, reading, pooling, sweep=sweep, tsne=tsne, trajectory=trajectory)
    show(f"written: {output}")


def _write_geometry(
    models: Sequence[str],
    output: Path,
    scored: "ScoredPairs",
    reading: "UniformityVariant",
    pooling: str | None,
    *,
    sweep: bool,
    tsne: bool,
    trajectory: bool,
) -> None:
    """Measure every model, write the numbers and the plots, and show the tables."""
    from functools import partial

    from sentloom.evaluation import geometry as space
    from sentloom.evaluation.layers import sweep as run_sweep
    from sentloom.evaluation.pair_map import pair_map
    from sentloom.report import geometry_plots, geometry_tables, plots

    found, layers = {}, {}
    for number, model in enumerate(models, start=1):
        encoder = load(model, pooling)
        found[model] = space.geometry(partial(encoder.encode, show_progress=True), scored, reading)
        if sweep:
            layers[model] = run_sweep(encoder, scored)
            plots.write(geometry_plots.heat_map(model, layers[model]), output / f"layers-{number}.png")
        if tsne:
            places = pair_map(encoder.encode, scored)
            plots.write(geometry_plots.pairs_on_a_plane(model, places), output / f"tsne-{number}.png")
    points = {model: (one.uniformity, one.alignment) for model, one in found.items()}
    plots.write(geometry_plots.align_uniform(points, reading), output / "align-uniform.png")
    if trajectory:
        labels = [Path(model).name for model in points]
        plots.write(
            geometry_plots.trajectory(models[-1], list(points.values()), labels, reading), output / "trajectory.png"
        )
    geometry_tables.write_numbers(output / "geometry.json", found, layers)
    show(geometry_tables.geometry(found), *(geometry_tables.sweep(model, one) for model, one in layers.items()))
