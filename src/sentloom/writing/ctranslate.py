"""Run the model with CTranslate2, which is fast on a CPU: converted when first needed, and cached by its hash."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from sentloom.encoder.device import device_for
from sentloom.encoder.loading import quiet
from sentloom.errors import MissingPart, ModelError
from sentloom.files import is_sealed, new_folder, seal
from sentloom.writing.generator import WritingRequest, writing_ids
from sentloom.writing.sampling import Sampling
from sentloom.writing.scorer import Pair, chance_of_true, judge, judging_ids
from sentloom.writing.text_to_text import Ids, TextToText

BATCH = 32  # texts that a worker runs at a time; finished ones leave the batch
AT_ONCE = 512  # pairs whose logits over the whole vocabulary fit in memory together
SCALES = ("t5", "mt5")
WANTED, NEXT_STEP = "T5, mT5 or BART", "use the backend transformers"
PROBES = [
    ("A man is playing a guitar.", "Someone makes music."),
    ("Two dogs run through the snow.", "The dogs are asleep in the house."),
    ("It rained all night, and the river rose above its banks.", "The river is dry."),
]
FAR = {"float32": 1e-3, "int8": 0.25}  # mean difference of P(true), larger than rounding explains

Precision = Literal["float32", "int8"]


class CTranslate2Backend:
    """CTranslate2 with its own sampler, one worker per core.

    Each worker has one random stream that starts from the seed: a text depends on what was written before it, and two
    runs may write different texts. Greedy texts and judgements depend on nothing else. With `int8`, weights are
    rounded, and scores change a little.
    """

    def __init__(self, model: TextToText, sampling: Sampling, cache: Path, precision: Precision = "float32") -> None:
        """`cache` is the folder for converted models."""
        package = _package()
        self.name = "ctranslate2" if precision == "float32" else f"ctranslate2-{precision}"
        self._model, self._sampling = model.eval(), sampling
        self._words = model.tokenizer.convert_ids_to_tokens(list(range(len(model.tokenizer))))
        folder = cache / f"{model.sha256}-{precision}-{package.__version__}"
        if not is_sealed(folder):
            _convert(model, folder, precision)
            seal(folder)
        package.set_random_seed(sampling.seed)  # before the workers start: each reads it once
        self._translator = _open(package, folder, precision)
        self._prove(precision)

    def write(self, requests: Sequence[WritingRequest]) -> list[str]:
        """See `Backend`."""
        how = self._sampling
        limits = {"sampling_topk": how.top_k, "sampling_topp": how.top_p, "sampling_temperature": how.temperature}
        results = self._run(
            writing_ids(self._model, requests),
            min_decoding_length=0,  # as in transformers: a text may be empty
            max_decoding_length=how.max_tokens,
            **({"sampling_topk": 1} if how.greedy else limits),
        )
        ids: Any = self._model.tokenizer.convert_tokens_to_ids
        return [self._model.text_of(ids(result.hypotheses[0])) for result in results]

    def judge(self, pairs: Sequence[Pair]) -> NDArray[np.float64]:
        """See `Backend`."""
        verdicts = list(self._model.verdict_ids)
        logits = np.empty((len(pairs), 2))
        for at in range(0, len(pairs), AT_ONCE):
            ids = judging_ids(self._model, pairs[at : at + AT_ONCE])
            for row, result in enumerate(self._run(ids, max_decoding_length=1, return_logits_vocab=True), at):
                logits[row] = np.asarray(result.logits[0][0])[verdicts]
        return chance_of_true(logits[:, 0], logits[:, 1])

    def _prove(self, precision: Precision) -> None:
        """Refuse a conversion whose judgements differ from the model's: converters lag behind transformers."""
        off = np.abs(self.judge(PROBES) - judge(self._model, PROBES)).mean()
        if not off <= FAR[precision]:
            found = (
                f"a {self._model.model.config.model_type} model whose converted form judges differently, by {off:.2g}"
            )
            raise ModelError("backend ctranslate2", found, WANTED, NEXT_STEP)

    def _run(self, ids: Sequence[Ids], **options: Any) -> list[Any]:
        """One result per row, in order; CTranslate2 sorts rows by length itself."""
        words = [[self._words[i] for i in row] for row in ids]
        return self._translator.translate_batch(words, beam_size=1, max_batch_size=BATCH, **options) if words else []


def _package() -> Any:
    try:
        import ctranslate2
    except ImportError:
        found, fix = (
            "no package ctranslate2",
            "pip install 'sentloom[ctranslate2]', or use the backend transformers",
        )
        raise MissingPart("backend ctranslate2", found, "it installed", fix) from None
    return ctranslate2


def _convert(model: TextToText, folder: Path, precision: Precision) -> None:
    from ctranslate2.converters import TransformersConverter

    class Converter(TransformersConverter):  # type: ignore[misc]
        def load_model(self, *given: Any, **named: Any) -> Any:
            return _as_expected(super().load_model(*given, **named))

    with tempfile.TemporaryDirectory() as saved, new_folder(folder) as part, quiet():
        model.save(Path(saved) / "model")
        try:
            Converter(str(Path(saved) / "model")).convert(str(part), quantization=precision, force=True)
        except (ValueError, NotImplementedError, KeyError, AttributeError) as error:
            found = f"a {model.model.config.model_type} model, which CTranslate2 does not convert ({error})"
            raise ModelError("backend ctranslate2", found[:300], WANTED, NEXT_STEP) from None


def _as_expected(model: Any) -> Any:
    """A model whose configuration has the keys that CTranslate2 reads, those of older versions of transformers."""
    config = model.config
    if config.model_type in SCALES:  # CTranslate2 reads it as: are the decoder's outputs scaled?
        config.tie_word_embeddings = getattr(config, "scale_decoder_outputs", False)
    if config.model_type == "bart":
        config.normalize_before = False
    return model


def _device() -> str:
    """CTranslate2 runs on CPUs and NVIDIA GPUs."""
    return "cuda" if device_for().type == "cuda" else "cpu"


def _open(package: Any, folder: Path, precision: Precision) -> Any:
    try:
        return package.Translator(
            str(folder),
            device=_device(),
            compute_type=precision,
            inter_threads=torch.get_num_threads(),
            intra_threads=1,
        )
    except (RuntimeError, ValueError) as error:
        found = f"a converted model that does not open ({error})"
        raise ModelError(
            str(folder), found, "a sound one", f"delete the folder, and it is made anew; or {NEXT_STEP}"
        ) from None
