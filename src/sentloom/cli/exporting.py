"""The commands that write an encoder in another form: export, shrink."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from sentloom.cli.common import (
    ColumnsOption,
    DeviceOption,
    PoolingOption,
    PrecisionOption,
    ShapeOption,
    is_main_process,
    load,
    resumable,
    show,
)
from sentloom.encoder.formats.registry import target_names

if TYPE_CHECKING:
    TargetName = str
else:
    TargetName = Literal[tuple(target_names())]


def export(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="The encoder: embedded, a model folder, or a hub name.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="The folder to write.")],
    to: Annotated[TargetName, typer.Option("--to", help="The form to write.")] = "onnx",
    against: Annotated[
        list[str] | None,
        typer.Option(
            "--against",
            metavar="SET|FILE",
            help="What 8-bit and static models are scored on. By default the fit's validation rows, else everyday "
            "triplets. Repeatable.",
        ),
    ] = None,
    data: Annotated[
        Path | None, typer.Option("--data", metavar="DIR", help="The data folder that has the sets of --against.")
    ] = None,
    accept_loss: Annotated[
        float | None,
        typer.Option(
            "--accept-loss",
            metavar="POINTS",
            min=0,
            help="The most points of score that an 8-bit or static model may lose. Without it, neither is written.",
        ),
    ] = None,
    pooling: PoolingOption = None,
    device: DeviceOption = None,
) -> None:
    """Write an encoder in another form, such as ONNX, if its vectors are proven to be the same.

    Otherwise nothing is written. 8-bit and static models give other vectors. What they lose is measured, and they are
    written only with --accept-loss POINTS, if they lose no more than that.
    """
    from sentloom.export.export import export as run

    encoder = load(model, pooling, device)
    done = run(encoder, to, output, against=against or (), data=data, accept_loss=accept_loss, log=show)
    if done.agreement:
        show(f"mean cosine {done.agreement.mean:.6f} with the model's vectors, the least {done.agreement.least:.6f}")
    if done.score:
        show(f"{done.score.lost:.2f} points lost: {done.score}")
    before, after = done.dimensions
    if before != after:
        show(f"{after} dimensions instead of {before}: vectors of the two cannot be compared")
    show(f"written: {output}")


def shrink(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="The encoder to mimic: embedded, a model folder, or a hub name.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="The model folder to write.")],
    texts: Annotated[
        str,
        typer.Argument(
            metavar="TEXTS",
            help="What to train on: a file, a folder, a hub name, or embedded, the docstrings of installed packages.",
        ),
    ] = "embedded",
    layers: Annotated[
        int | None, typer.Option(min=1, help="How many of the model's layers to keep. By default half of them.")
    ] = None,
    student: Annotated[
        str | None,
        typer.Option(metavar="MODEL", help="Another model to train instead: a model folder, or a hub name."),
    ] = None,
    against: Annotated[
        list[str] | None,
        typer.Option(
            "--against",
            metavar="SET|FILE",
            help="What both models are scored on. By default how they rank pairs of held-out texts. Repeatable.",
        ),
    ] = None,
    data: Annotated[
        Path | None, typer.Option("--data", metavar="DIR", help="The data folder that has the sets of --against.")
    ] = None,
    epochs: Annotated[float, typer.Option(help="How often to go through the text.")] = 1.0,
    steps: Annotated[int | None, typer.Option(min=1, help="How many steps to train, instead of epochs.")] = None,
    pooling: PoolingOption = None,
    shape: ShapeOption = None,
    columns: ColumnsOption = None,
    seed: Annotated[int, typer.Option(min=0, help="The seed of the training.")] = 1,
    device: DeviceOption = None,
    precision: PrecisionOption = None,
) -> None:
    """Train a smaller model to give nearly the same vectors for your texts. Run the same command again to resume."""
    from sentloom.api.scoring import shrink as run

    with resumable():
        done = run(
            model,
            output,
            texts,
            layers=layers,
            student=student,
            against=against or (),
            data=data,
            epochs=epochs,
            steps=steps,
            pooling=pooling,
            shape=shape,
            columns=columns,
            seed=seed,
            device=device,
            precision=precision,
            log=show,
        )
    if is_main_process():
        show(str(done), f"written: {output}")
