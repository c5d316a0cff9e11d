"""The commands about scores: evaluate, geometry."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from sentloom.cli.common import DeviceOption, PoolingOption, PrecisionOption, load, read, resumable, show
from sentloom.errors import InputError

if TYPE_CHECKING:
    from sentloom.evaluation.geometry import ScoredPairs, UniformityVariant

MODELS = "[LABEL=]MODEL[,MODEL...]"
NOT_ALL_SCORED = 4  # the exit code


def evaluate(
    models: Annotated[
        list[str],
        typer.Argument(
            metavar=MODELS,
            help="embedded, model folders, hub names, or baselines: tf-idf, words:FILE, whitening:MODEL, wk:MODEL. "
            "Models joined by commas count as seeds of one model.",
        ),
    ],
    suite: Annotated[
        list[str] | None,
        typer.Option(
            help="sts, transfer, sentglue, multilingual, domain or afs; one of their sets, such as STS-B/dev; or a "
            "file: retrieval:FILE, pairs:FILE, classification:FILE. Repeatable. By default sts."
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            help="The folder of the sets (sts/STS12.tsv, senteval/MR.tsv ...), or SentEval's. By default the hub."
        ),
    ] = None,
    aggregation: Annotated[
        str, typer.Option(help="How the parts of an STS set are combined: all, mean or wmean.")
    ] = "all",
    fast: Annotated[
        bool, typer.Option("--fast", help="Five folds instead of ten, and at most 10,000 training rows.")
    ] = False,
    hidden: Annotated[
        int,
        typer.Option(
            help="Hidden units of the classifiers of transfer: 0 is logistic regression; SentEval also has 50."
        ),
    ] = 0,
    unchecked: Annotated[
        bool,
        typer.Option("--unchecked", help="Also score sets whose counts differ from the published ones, with a note."),
    ] = False,
    published: Annotated[bool, typer.Option("--published", help="Also show the published scores.")] = False,
    mteb: Annotated[
        list[str] | None,
        typer.Option(
            help="Run tasks of the mteb package instead, such as STS or STSBenchmark; its result files go to -o."
        ),
    ] = None,
    pooling: PoolingOption = None,
    cache: Annotated[
        Path | None, typer.Option(help="Where vectors and scores are cached. By default ~/.cache/sentloom.")
    ] = None,
    cache_size: Annotated[
        float, typer.Option(min=0, help="The maximum size of the vector cache in GB; 0 turns caching off.")
    ] = 2.0,
    output: Annotated[
        list[Path] | None,
        typer.Option(
            "--output",
            "-o",
            help="A file for the scores: .json, .csv, .md or .png; repeatable. By default scores.json.",
        ),
    ] = None,
    device: DeviceOption = None,
    precision: PrecisionOption = None,
) -> None:
    """Score models side by side on suites of tasks, with confidence intervals. Run it again to resume.

    The exit code is 4 if a suite or set that you named could not be scored because its data is not here, or its counts
    differ from the published ones; the others are scored.
    """
    from sentloom.api.scoring import evaluate as run
    from sentloom.evaluation.evaluate import parse_models
    from sentloom.report import score_tables

    chosen = parse_models(models)
    if mteb:
        _run_mteb(chosen, mteb, pooling, output, device, precision)
        return
    targets = output or [Path("scores.json")]
    with resumable():
        found = run(
            chosen,
            suite or ["sts"],
            data=data,
            pooling=pooling,
            aggregation=aggregation,
            fast=fast,
            hidden=hidden,
            unchecked=unchecked,
            cache=cache,
            cache_size=cache_size,
            output=targets,
            device=device,
            precision=precision,
            log=show,
            show_progress=True,
        )
    for one in found.suites:
        show(score_tables.suite(one, list(chosen)))
        if published:
            show(score_tables.with_published(one, list(chosen)))
    show(*(f"written: {target}" for target in targets))
    if found.not_scored:
        names = ", ".join(found.not_scored)
        show(f"not scored: {names}, for the reasons above. The files of a folder of data (--data DIR): docs/sets.md.")
        raise typer.Exit(NOT_ALL_SCORED)


def _run_mteb(
    models: Mapping[str, Sequence[str]],
    tasks: list[str],
    pooling: str | None,
    output: list[Path] | None,
    device: str | None,
    precision: str | None,
) -> None:
    """Each model on tasks of mteb, whose result files go to the output folder."""
    from sentloom.evaluation.mteb_files import run_mteb
    from sentloom.report import score_tables

    folder = output[0] if output else Path("mteb-results")
    if output and (len(output) > 1 or folder.suffix in (".json", ".csv", ".md")):
        found = f"found {' and '.join(map(str, output))}"
        raise InputError("--output", found, "one folder, for mteb's own files", "use -o mteb-results")
    scores = {
        name: run_mteb(load(name, pooling, device, precision), tasks, folder, model=name, show_progress=True)
        for names in models.values()
        for name in names
    }
    show(score_tables.mteb(scores), f"written: {folder}")


def geometry(
    models: Annotated[list[str], typer.Argument(metavar="MODEL", help="embedded, model folders or hub names.")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="The folder for numbers and plots.")],
    data: Annotated[Path | None, typer.Option(help="A data folder with sts/STSB.test.tsv. By default the hub.")] = None,
    pairs: Annotated[
        str | None,
        typer.Option(help="Measure on this file instead: pairs scored from 0 to 5, or positive pairs or translations."),
    ] = None,
    sweep: Annotated[bool, typer.Option("--sweep", help="Also score every layer with every pooling.")] = False,
    tsne: Annotated[
        bool, typer.Option("--tsne", help="Also plot similar and dissimilar pairs in two dimensions.")
    ] = False,
    trajectory: Annotated[
        bool, typer.Option("--trajectory", help="The models are checkpoints in order: also plot their path.")
    ] = False,
    variant: Annotated[
        Literal["reference", "sentence-t5", "printed"],
        typer.Option(help="Which definition of alignment and uniformity to use."),
    ] = "reference",
    pooling: PoolingOption = None,
    device: DeviceOption = None,
    precision: PrecisionOption = None,
) -> None:
    """Measure how vectors are distributed: alignment, uniformity, isotropy and rank, with plots."""
    from sentloom.data.shapes import Shape
    from sentloom.encoder.device import running_on
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
        raise InputError(option, "the pairs have no scores, or all the same", "scores that differ", "leave it out")
    reading = space.UniformityVariant(variant)
    with alone_in(output), running_on(device, precision):
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
