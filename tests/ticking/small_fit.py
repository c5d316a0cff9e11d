"""The folder of a fit, without fitting anything."""

from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq

from sentloom.data.shapes import Shape
from sentloom.data.writers import write
from sentloom.encoder import Encoder
from tests.encoder.small_models import build_model_folder
from tests.fitting import small_base
from tests.report.results_by_hand import FULL
from tests.small_data import build_dataset


def build_fit_folder(tmp_path):
    """The folder of a fit with 60 test rows and 300 texts to search, whose two models are both random."""
    folder, texts = tmp_path / "model.fit", small_base.sentences(300, 7)
    build_model_folder("bert", tmp_path / "base")
    build_model_folder("roberta", folder / "stages" / "1" / "model")
    (folder / "data").mkdir()
    write(build_dataset(Shape.TEXTS, [(text,) for text in texts[:60]]), folder / "data" / "1-texts-test.parquet")
    pq.write_table(pa.table({"text": texts, "of": ["1"] * len(texts)}), folder / "corpus.parquet")
    models = {"base": tmp_path / "base", "model": folder / "stages" / "1" / "model"}
    result = replace(
        FULL,
        verdict="no difference shown",
        model=None,
        base=str(models["base"]),
        tested="stages/1/model",
        label_free=True,
        hashes={name: Encoder.load(place).fingerprint() for name, place in models.items()},
        command="sentloom fit raw.txt -o model --labels old.jsonl",
        warnings=("General ability fell.",),
    )
    result.write(folder / "report.json")
    return folder
