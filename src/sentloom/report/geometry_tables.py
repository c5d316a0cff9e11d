"""Geometry of the vectors and scores by layer, for the terminal and as JSON."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from rich.console import Group, RenderableType
from rich.text import Text

from sentloom.evaluation.geometry import Geometry, UniformityVariant
from sentloom.evaluation.layers import Sweep
from sentloom.report.tables import plain_table
from sentloom.report.text_files import json_text, write_text

NOTES = {
    UniformityVariant.SENTENCE_T5: "variant sentence-t5: vectors are also paired with themselves, as in its code",
    UniformityVariant.PRINTED: "variant printed: distances not squared, alignment negated, as the papers print them",
}


def geometry(found: Mapping[str, Geometry]) -> RenderableType:
    """One row per model."""
    one = next(iter(found.values()))
    columns = ("alignment", "uniformity", "cosine", "isotropy", "rank")
    head = f"Geometry: {one.positives:,} positive pairs, {one.sentences:,} sentences"
    table = plain_table(head, "model", *columns, numbers=len(columns))
    for name, its in found.items():
        numbers = (its.alignment, its.uniformity, its.mean_cosine, its.isotropy)
        table.add_row(Text(name), *(f"{x:.3f}" for x in numbers), f"{its.effective_rank:.1f} of {its.dimension}")
    return Group(table, Text(NOTES[one.variant])) if one.variant in NOTES else table


def sweep(model: str, found: Sweep) -> RenderableType:
    """One row per layer; the best score is bold."""
    table = plain_table(f"Layers of {model}: Spearman", "layer", *found.poolings, numbers=len(found.poolings))
    best = found.spearman.max()
    for layer, scores in zip(found.layers, found.spearman, strict=True):
        table.add_row(str(layer), *(Text(f"{x:.2f}", style="bold" if x == best else "") for x in scores))
    layer, pooling, score = found.best
    return Group(table, Text(f"best: {pooling} pooling of layer {layer}, {score:.2f}"))


def write_numbers(path: Path, found: Mapping[str, Geometry], layers: Mapping[str, Sweep]) -> None:
    """Every number as JSON, with the scores of layers (layer, pooling) if there are any."""
    numbers = {
        model: {**asdict(one), "layers": layers[model].spearman.tolist() if model in layers else None}
        for model, one in found.items()
    }
    write_text(path, json_text(numbers))
