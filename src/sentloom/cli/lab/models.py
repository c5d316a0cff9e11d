"""The lab's commands about models: init-model, vocabulary, geometry."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

import typer

from sentloom.cli.common import (
    ColumnsOption,
    Data,
    DeviceOption,
    PoolingOption,
    PrecisionOption,
    ShapeOption,
    load,
    read,
    show,
)
from sentloom.errors import InputError

if TYPE_CHECKING:
    from sentloom.encoder import Encoder
    from sentloom.evaluation.geometry import ScoredPairs, UniformityVariant

LEARNED_ROWS = 1_000_000  # per column: enough to learn a vocabulary from, and it fits in memory
COMPARED_ROWS = 2_000


def init_model(
    data: Data,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="The model folder to write.")],
    family: Annotated[str, typer.Option(help="The architecture: bert, t5 or mt5.")] = "bert",
    vocabulary: Annotated[int, typer.Option(min=50, help="How many tokens the tokenizer learns from the data.")] = 8000,
    layers: Annotated[int, typer.Option(min=1, help="The number of layers; T5 has as many again in its decoder.")] = 4,
    width: Annotated[int, typer.Option(min=32, help="The size of the hidden states, a multiple of 32.")] = 256,
    max_length: Annotated[int, typer.Option(min=8, help="The maximum number of tokens per sentence.")] = 128,
    seed: Annotated[int, typer.Option(help="The seed of the random weights.")] = 0,
    shape: ShapeOption = None,
    columns: ColumnsOption = None,
) -> None:
    """Create a small model with random weights and a tokenizer learned from your text. Needs no download."""
    from sentloom.lab.init_model import Size, build_model

    texts = (text for _, _, text in read(data, shape, columns).sentences())
    build_model(
        output,
        family,
        texts,
        seed=seed,
        size=Size(vocabulary=vocabulary, layers=layers, width=width, max_length=max_length),
    )
    show(f"written: {output}")


def vocabulary(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="embedded, a model folder, or a hub name.")],
    data: Data,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="The model folder to write.")],
    size: Annotated[int, typer.Option(min=50, help="How many tokens to learn from the text.")] = 8000,
    column: Annotated[
        list[str] | None,
        typer.Option(help="A text column to learn from; repeatable. For translations, by default the target."),
    ] = None,
    replace: Annotated[
        bool,
        typer.Option("--replace", help="Replace the old tokens: for a model that will only read this kind of text."),
    ] = False,
    shape: ShapeOption = None,
    columns: ColumnsOption = None,
) -> None:
    """Extend a model's vocabulary with words of your text; their embeddings start from those of their old tokens."""
    from sentloom.data.columns import sampled_texts, text_column
    from sentloom.data.hygiene.inspection import count_tokens
    from sentloom.data.shapes import Shape, text_columns
    from sentloom.lab.vocabulary import new_vocabulary, same_tokens

    encoder, dataset = load(model, None), read(data, shape, columns)
    asked: list[str | None] = [*column] if column else [None]
    is_target = not column and dataset.shape is Shape.PARALLEL
    names = ["target"] if is_target else [text_column(dataset, name) for name in asked]
    texts = [text for name in names for text in sampled_texts(dataset, name, LEARNED_ROWS)]
    student = new_vocabulary(encoder, texts, size, keep_old=not replace)
    student.save(output)
    before, after = (
        count_tokens(dataset, tokens.bare, tokens.tokenizer.unk_token_id) for tokens in (encoder.tokens, student.tokens)
    )
    for name, old, new in zip(text_columns(dataset.shape), before, after, strict=True):
        same = same_tokens(encoder, student, sampled_texts(dataset, name, COMPARED_ROWS))
        show(f"{old.column}: {old.share} before, {new.share} after; {same:.1%} of the sentences keep their tokens")
    known, has = len(encoder.tokens.tokenizer), len(student.tokens.tokenizer)
    show(f"{known:,} tokens before, {has:,} after", f"written: {output}")


def geometry(
    models: Annotated[list[str], typer.Argument(metavar="MODEL", help="embedded, model folders or hub names.")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="The folder for numbers and plots.")],
    data: Annotated[Path | None, typer.Option(help="A data folder with sts/STSB.test.tsv. By default the hub.")] = None,
    pairs: Annotated[
        str | None,
        typer.Option(help="Measure on this file instead: pairs scored from 0 to 5, or positive pairs or translations."),
    ] = None,
    source: Annotated[
        list[str] | None,
        typer.Option(
            "--source",
            metavar="MODEL",
            help="Another model encodes the first sides of the pairs, as in a dual encoder. Once, or for each MODEL.",
        ),
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
    from sentloom.evaluation.set_source import SetSource, read_part
    from sentloom.lab.suites.sts import STS_PARTS
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
        plots = Plots(sweep, tsne, trajectory)
        _write_geometry(
            _with_sources(models, source or ()), output, lambda model: load(model, pooling), scored, reading, plots
        )
    show(f"written: {output}")


def _with_sources(models: Sequence[str], sources: Sequence[str]) -> dict[str, str | None]:
    """Each model with the one that encodes the first sides for it."""
    if len(sources) not in (0, 1, len(models)):
        expected = f"one for all, or one for each of the {len(models)} models"
        raise InputError("--source", f"{len(sources)} are given", expected, "leave some out, or add some")
    each = sources if len(sources) == len(models) else [sources[0] if sources else None] * len(models)
    return dict(zip(models, each, strict=True))


class Plots(NamedTuple):
    """Which plots are drawn besides alignment and uniformity."""

    sweep: bool
    tsne: bool
    trajectory: bool


def _write_geometry(
    models: Mapping[str, str | None],
    output: Path,
    opened: Callable[[str], "Encoder"],
    scored: "ScoredPairs",
    reading: "UniformityVariant",
    drawn: Plots,
) -> None:
    """Measure every model, with its source if it has one, write the numbers and the plots, and show the tables."""
    from functools import partial

    from sentloom.evaluation import geometry as space
    from sentloom.lab import geometry_figures
    from sentloom.lab.geometry import pair_map
    from sentloom.lab.geometry import sweep as run_sweep
    from sentloom.report import plots

    measurements, layers = {}, {}
    for number, (model, source) in enumerate(models.items(), start=1):
        encoder = opened(model)
        encode_source = partial(opened(source).encode, show_progress=True) if source else None
        encode = partial(encoder.encode, show_progress=True)
        measurements[model] = space.geometry(encode, scored, reading, encode_source)
        if drawn.sweep:
            layers[model] = run_sweep(encoder, scored)
            plots.write(geometry_figures.heat_map(model, layers[model]), output / f"layers-{number}.png")
        if drawn.tsne:
            places = pair_map(encoder.encode, scored)
            plots.write(geometry_figures.pairs_on_a_plane(model, places), output / f"tsne-{number}.png")
    points = {model: (measured.uniformity, measured.alignment) for model, measured in measurements.items()}
    plots.write(geometry_figures.align_uniform(points, reading), output / "align-uniform.png")
    if drawn.trajectory:
        labels = [Path(model).name for model in points]
        plots.write(
            geometry_figures.trajectory(list(points)[-1], list(points.values()), labels, reading),
            output / "trajectory.png",
        )
    geometry_figures.write_numbers(output / "geometry.json", measurements, layers)
    show(geometry_figures.geometry(measurements))
    show(*(geometry_figures.sweep(model, scores) for model, scores in layers.items()))
