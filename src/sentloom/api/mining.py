"""`mine`."""

from pathlib import Path
from typing import Literal

from sentloom.api.common import refuse_options_in_memory
from sentloom.arguments import typed
from sentloom.corpus.opening import open_data
from sentloom.data.dataset import Dataset
from sentloom.data.in_memory import Data
from sentloom.data.sentences import distinct_sentences
from sentloom.data.shapes import Columns, Shape, as_columns, as_shape
from sentloom.data.writers import check_ending, write
from sentloom.encoder import Encoder
from sentloom.encoder.device import Device, Precision, running_on
from sentloom.errors import checked
from sentloom.search.cross_encoder import CrossEncoder
from sentloom.search.mining import MineReport, MineSettings
from sentloom.search.mining import mine as find_negatives


@typed
def mine(
    data: Data,
    output: str | Path | None = None,
    *,
    model: str | Path | Encoder = "embedded",
    corpus: Data | None = None,
    negatives: int = 1,
    margin: float = 0.05,
    at_most: float | None = None,
    guide: str | Path | Encoder | None = None,
    teacher: str | Path | CrossEncoder | None = None,
    teacher_margin: float = 1.0,
    skip: int = 0,
    depth: int = 50,
    search: Literal["exact", "faiss"] = "exact",
    pooling: str | None = None,
    shape: Shape | str | None = None,
    columns: Columns = None,
    spreadsheet_safe: bool = False,
    device: Device | None = None,
    precision: Precision | None = None,
    show_progress: bool = False,
) -> tuple[Dataset, MineReport]:
    """Find hard negatives for pairs: texts that rank close to the anchor but are not known to be right.

    Each pair gets up to `negatives` texts from `corpus` (by default the positives of the pairs) whose cosine with the
    anchor is at least `margin` below its positive's, and at most the share `at_most` of it; with a `guide`, a
    second model, by its cosines too. With a `teacher`, a cross-encoder, a negative's score must also be at least
    `teacher_margin` below the positive's. The search looks at `depth` candidates and skips the first `skip`. Returns
    the triplets, without the pairs for which none is found, and a report; `output` is a file for the triplets.

    >>> pairs = [(f"What does key {n} open?", f"Key {n} opens door {n}.") for n in range(20)]
    >>> triplets, report = mine(pairs, margin=0.0)
    >>> triplets.shape.value, report.rows
    ('triplets', 20)
    """
    limits = {"negatives": negatives, "margin": margin, "skip": skip, "depth": depth, "at_most": at_most}
    settings = checked(MineSettings, "mine", {**limits, "search": search, "teacher_margin": teacher_margin})
    refuse_options_in_memory([model], pooling=pooling)
    refuse_options_in_memory([model, guide, teacher], device=device, precision=precision)
    if output is not None:
        check_ending(Path(output), Shape.TRIPLETS)  # before the work
    pairs = open_data(data, shape=as_shape(shape), columns=as_columns(columns))
    texts = None if corpus is None else distinct_sentences(open_data(corpus)).column("text").to_pylist()
    with running_on(device, precision):
        encoder = model if isinstance(model, Encoder) else Encoder.load(model, pooling=pooling, precision=precision)
        guiding = Encoder.load(guide) if isinstance(guide, str | Path) else guide
        judge = CrossEncoder.load(teacher) if isinstance(teacher, str | Path) else teacher
    triplets, report = find_negatives(encoder, pairs, texts, settings, show_progress, guiding, judge)
    if output is not None:
        write(triplets, Path(output), spreadsheet_safe, own_names=True)
    return triplets, report
