"""`shrink`."""

from pathlib import Path

from sentloom.api.common import scored_inputs, silent, training_in
from sentloom.arguments import typed
from sentloom.corpus.opening import open_data
from sentloom.data.in_memory import Data, Inputs
from sentloom.data.shapes import Columns, Shape, as_columns, as_shape
from sentloom.encoder.device import Device, Precision, running_on
from sentloom.export.shrink import ShrinkRequest, Shrunk, refuse_bad_output
from sentloom.export.shrink import shrink as train_student
from sentloom.fitting.request import Log
from sentloom.pipeline.runner import start_accelerator


@typed
def shrink(
    model: str | Path,
    output: str | Path,
    texts: Data = "embedded",
    *,
    layers: int | None = None,
    student: str | Path | None = None,
    against: Inputs = (),
    data: str | Path | None = None,
    epochs: float = 1.0,
    steps: int | None = None,
    pooling: str | None = None,
    shape: Shape | str | None = None,
    columns: Columns = None,
    seed: int = 1,
    device: Device | None = None,
    precision: Precision | None = None,
    log: Log = silent,
) -> Shrunk:
    """Train a smaller student that mimics an encoder on raw text, and measure what that costs in score.

    The student starts from `layers` of the model's own layers, evenly spaced, by default half of them; a decoder is
    dropped, and a decoder-first model gets a student with mean pooling. With `student`, another model is trained
    instead, with a projection if its vectors have other dimensions. `texts` are of any kind, by default the
    docstrings of installed packages. Both are scored on `against`, sets (from the folder `data`), files or rows in
    memory, whose sentences are left out of the training; without any, on how they rank pairs of held-out texts.
    `pooling` is the model's, if it states none. The same call resumes.

    >>> texts = [f"Ticket {n} costs {3 * n} euros and is valid on day {n % 7}." for n in range(500)]
    >>> done = shrink("embedded", "small", texts, layers=1, steps=2)
    >>> done.encoder.backbone.num_layers, done.total.name, done.total.before
    (1, 'agreement with the teacher', 100.0)
    """
    request = ShrinkRequest(
        str(model), Path(output), layers, str(student) if student else None, pooling, epochs, steps, seed
    )
    refuse_bad_output(request)
    given = open_data(texts, shape=as_shape(shape), columns=as_columns(columns))
    deciding = scored_inputs(against, request.folder, log)
    with running_on(device, precision):
        accelerator = start_accelerator((), request.folder)
        with training_in(request.folder, accelerator, deciding):
            said = log if accelerator.is_main_process else silent
            names = [one.name for one in deciding]
            return train_student(request, given, names, Path(data) if data else None, accelerator, said)
