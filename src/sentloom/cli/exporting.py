"""The command export."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from sentloom.cli.common import DeviceOption, PoolingOption, load, show


def export(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="The encoder: embedded, a model folder, or a hub name.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="The folder to write.")],
    to: Annotated[
        Literal["onnx", "onnx-int8", "ctranslate2", "ctranslate2-int8", "static", "sentence-transformers"],
        typer.Option("--to", help="The form to write."),
    ] = "onnx",
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
    pooling: PoolingOption = None,
    device: DeviceOption = None,
) -> None:
    """Write an encoder in another form, if its vectors are proven to be the same. Otherwise nothing is written."""
    from sentloom.export.export import export as run

    done = run(load(model, pooling, device), to, output, against=against or (), data=data, log=show)
    if done.agreement:
        show(f"mean cosine {done.agreement.mean:.6f} with the model's vectors, the least {done.agreement.least:.6f}")
    if done.score:
        show(f"{done.score.lost:+.2f} points lost: {done.score}")
    show(f"written: {output}")
