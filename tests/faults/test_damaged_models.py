"""Damaged model folders: each loads with finite vectors, where the damage is harmless, or is refused in one sentence.

Every field of every JSON file is taken away, given a wrong type and a number out of range; weights are cut, flipped,
of other shapes and kinds, or not finite. Each folder is loaded in a child of its own: a hang, a crash, much memory or
an error of any other type than a SentloomError is a failure.
"""

import copy
import json
import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.faults.model_folders import build_bert, build_synthesizer, build_t5, read, write

FAULT = "damaged model folders"
ASKED = 90
QUICK, LONG = 15, 700

WRONG_TYPES = ("text", "", 7, 2.5, True, None, [], [1, "a"], {}, {"a": {"b": 1}})
OUT_OF_RANGE = (0, -1, 1_000_000, 10**15, 1e308, float("nan"), float("inf"))
FILES = {
    "bert": [
        *("config.json", "modules.json", "sentence_bert_config.json", "config_sentence_transformers.json"),
        *("sentloom.json", "tokenizer_config.json", "tokenizer.json", "1_Pooling/config.json", "2_Dense/config.json"),
    ],
    "t5": ["config.json", "modules.json", "sentloom.json", "tokenizer.json", "tokenizer_config.json"],
    "synthesizer": ["config.json", "generation_config.json", "synthesizer.json", "tokenizer_config.json"],
}
FITTING = {
    "config.json": ("model.safetensors", "its weights", "ids below"),
    "tokenizer.json": ("no tokenizer", "ids below", "no words"),
    "tokenizer_config.json": ("tokenizer.json", "ids below"),
    "model.safetensors": ("safetensors", "config.json", "encode: ", "judge: "),
    "2_Dense/model.safetensors": ("encode: ",),
    "sentence_bert_config.json": ("max_seq_length",),
    "1_Pooling/config.json": ("modules.json",),
    "2_Dense/config.json": ("modules.json",),
    "modules.json": ("config.json",),
}
Damage = Callable[[Path], None]


@pytest.fixture(scope="module")
def bases(tmp_path_factory):
    root = tmp_path_factory.mktemp("bases")
    return {
        "bert": build_bert(root / "bert"),
        "t5": build_t5(root / "t5"),
        "synthesizer": build_synthesizer(root / "synthesizer"),
    }


def fields(content: Any, depth: int = 3) -> Iterator[tuple[Any, ...]]:
    """The paths of all fields, but for the words of a vocabulary."""
    items = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    for key, value in items:
        yield (key,)
        if depth > 1 and key not in ("vocab", "merges", "added_tokens_decoder"):
            yield from ((key, *rest) for rest in fields(value, depth - 1))


def changed(content: Any, path: tuple[Any, ...], value: Any, *, gone: bool = False) -> Any:
    """A copy of JSON with one field changed, or taken away."""
    result = copy.deepcopy(content)
    place = result
    for key in path[:-1]:
        place = place[key]
    if gone:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return result


def json_damages(base: Path, file: str) -> Iterator[tuple[str, Damage]]:
    """A name and a damage for each field, with each wrong value."""
    content = read(base / file)
    for path in fields(content):
        place = f"{file} {'.'.join(map(str, path))}"
        yield f"{place} gone", lambda at, p=path: write(at / file, changed(content, p, None, gone=True))
        values = [*WRONG_TYPES, *OUT_OF_RANGE]
        for value in values:
            yield f"{place} = {value!r}", lambda at, p=path, v=value: write(at / file, changed(content, p, v))


def file_damages(base: Path, file: str) -> Iterator[tuple[str, Damage]]:
    """A whole file: gone, empty, cut, no UTF-8, no object, nested deep."""
    data = (base / file).read_bytes()
    contents = {
        "empty": b"",
        "cut": data[: len(data) // 2],
        "not UTF-8": b"\xff\xfe" + data,
        "a list": b"[]",
        "a text": b'"config"',
        "deep": b'{"a":' * 5000 + b"1" + b"}" * 5000,
        "rather deep": b'{"a":' * 300 + b"1" + b"}" * 300,
        "deep lists": b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        "digits": b'{"hidden_size": ' + b"9" * 5000 + b"}",
    }
    yield f"{file} gone", lambda at: (at / file).unlink()
    for name, content in contents.items():
        yield f"{file} {name}", lambda at, c=content: (at / file).write_bytes(c) and None


def bytes_changed(file: str, change: Callable[[bytearray], bytes]) -> Damage:
    return lambda at: (at / file).write_bytes(change(bytearray((at / file).read_bytes()))) and None


def flipped(data: bytearray, place: int, bit: int) -> bytes:
    data[place] ^= 1 << bit
    return bytes(data)


def tensors_changed(file: str, change: Callable[[dict[str, torch.Tensor]], Any]) -> Damage:
    def damage(folder: Path) -> None:
        tensors = load_file(folder / file)
        change(tensors)
        save_file(tensors, folder / file, metadata={"format": "pt"})

    return damage


def put(tensors: dict[str, torch.Tensor], number: int, change: Callable[[torch.Tensor], torch.Tensor]) -> None:
    name = sorted(tensors)[number % len(tensors)]
    tensors[name] = change(tensors[name].clone()).contiguous()


def starting_with(value: float) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda x: torch.cat([torch.tensor([value]), x.flatten()[1:]]).view(x.shape)


TENSOR_CHANGES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "NaN": starting_with(float("nan")),
    "infinite": starting_with(float("inf")),
    "huge": lambda x: x * 0 + 3e38,
    "as half": lambda x: x.half(),
    "as int8": lambda x: x.to(torch.int8),
    "as bool": lambda x: x > 0,
    "as float8": lambda x: x.to(torch.float8_e4m3fn),
    "empty": lambda x: x[:0],
    "longer": lambda x: torch.cat([x, x]),
    "with another dimension": lambda x: x[None],
}
FLIPS = ((0, 0), (1, 3), (6, 2), (7, 7), (8, 1), (20, 4), (60, 2), (120, 0), (200, 5), (230, 1))


def weight_damages(file: str) -> Iterator[tuple[str, Damage]]:
    """Bytes and tensors of a safetensors file."""
    for size in (0, 4, 8, 50, 1000, -1, -8):
        yield f"{file} cut at {size}", bytes_changed(file, lambda data, s=size: bytes(data[:s]))
    yield f"{file} longer", bytes_changed(file, lambda data: bytes(data) + b"more")
    yield f"{file} a pickle", lambda at: torch.save({"w": torch.zeros(2)}, at / file)
    for place, bit in FLIPS:
        name = f"{file} bit {bit} of byte {place} flipped"
        yield name, bytes_changed(file, lambda data, p=place, b=bit: flipped(data, p, b))
    for number in range(0, 40, 8):
        for name, change in TENSOR_CHANGES.items():
            damage = tensors_changed(file, lambda tensors, n=number, c=change: put(tensors, n, c))
            yield f"{file} tensor {number} {name}", damage
        yield f"{file} tensor {number} gone", tensors_changed(file, lambda t, n=number: t.pop(sorted(t)[n % len(t)]))
    yield f"{file} one tensor more", tensors_changed(file, lambda tensors: tensors.update(stranger=torch.zeros(3)))
    yield f"{file} no tensors", tensors_changed(file, lambda tensors: tensors.clear())


def patched(file: str, **changes: Any) -> Damage:
    return lambda at: write(at / file, read(at / file) | changes)


def replaced(file: str, put: Callable[[Path], Any]) -> Damage:
    def damage(folder: Path) -> None:
        (folder / file).unlink()
        put(folder / file)

    return damage


EXPLODING = {
    "type": "Sequence",
    "normalizers": [{"type": "Replace", "pattern": {"String": "e"}, "content": "e" * 10}] * 9,
}
# What was found broken before, in words of its own; each must be refused, by a message with the given words.
NAMED: list[tuple[str, str, str, Damage]] = [
    ("bert", "a million layers", "num_hidden_layers is 1000000", patched("config.json", num_hidden_layers=1_000_000)),
    ("bert", "half a model", "config.json has no weights named", patched("config.json", num_hidden_layers=1)),
    ("bert", "quantised", "quantization_config", patched("config.json", quantization_config={"bits": 4})),
    ("bert", "no heads", "num_attention_heads is 0", patched("config.json", num_attention_heads=0)),
    ("bert", "heads that do not divide", "divides hidden_size", patched("config.json", num_attention_heads=5)),
    ("bert", "text for a number", "hidden_size", patched("config.json", hidden_size="32")),
    ("bert", "a padding id beyond", "pad_token_id is 9999", patched("config.json", pad_token_id=9999)),
    ("bert", "a small vocabulary", "word_embeddings", patched("config.json", vocab_size=20)),
    ("bert", "wide", "hidden_size is 65536", patched("config.json", hidden_size=65536)),
    ("bert", "unknown family", "model_type", patched("config.json", model_type="none")),
    ("bert", "a family of images", "model_type", patched("config.json", model_type="clip")),
    ("bert", "another family", "LayerNorm.bias has the shape 32", patched("config.json", model_type="electra")),
    ("bert", "a length as text", "max_seq_length", patched("sentence_bert_config.json", max_seq_length="12")),
    ("bert", "no room", "special", patched("sentence_bert_config.json", max_seq_length=2)),
    ("bert", "wide projection", "2_Dense", patched("2_Dense/config.json", in_features=10**9)),
    ("bert", "odd tokenizer", "tokenizer_class", patched("tokenizer_config.json", tokenizer_class="os.system")),
    ("t5", "a million blocks", "num_layers|num_hidden_layers", patched("config.json", num_layers=1_000_000)),
    ("t5", "a start beyond", "decoder_start_token_id", patched("config.json", decoder_start_token_id=10**6)),
    ("t5", "layers that are not there", "sentloom.json", patched("sentloom.json", pooling="mean@7")),
    ("synthesizer", "no end", "eos_token_id is None", patched("config.json", eos_token_id=None)),
    ("synthesizer", "odd lengths", "synthesizer.json", patched("synthesizer.json", source_length="long")),
    (
        "synthesizer",
        "verdicts alike",
        "synthesizer.json",
        lambda at: write(
            at / "synthesizer.json",
            changed(read(at / "synthesizer.json"), ("wording", "false"), ""),
        ),
    ),
    ("synthesizer", "odd beams", "num_beams", patched("generation_config.json", num_beams="four")),
    ("bert", "an exploding text", "times longer", patched("tokenizer.json", normalizer=EXPLODING)),
    ("bert", "false as text", "true or false", patched("1_Pooling/config.json", pooling_mode_mean_tokens="false")),
    ("bert", "another width", "99 dimensions", patched("1_Pooling/config.json", word_embedding_dimension=99)),
    ("bert", "a list of prompts", "prompts", patched("config_sentence_transformers.json", prompts=[])),
    (
        "bert",
        "no such default",
        "default_prompt_name",
        patched("config_sentence_transformers.json", default_prompt_name="x"),
    ),
    ("bert", "odd bias", "bias is 'x'", patched("2_Dense/config.json", bias="x")),
    (
        "bert",
        "a stranger beside the heads",
        "cls.stranger",
        tensors_changed("model.safetensors", lambda tensors: tensors.update({"cls.stranger": torch.zeros(3)})),
    ),
    ("bert", "far positions", "max_relative_positions", patched("config.json", max_relative_positions=10**12)),
    ("bert", "a pipe of modules", "modules.json: it is a pipe", replaced("modules.json", os.mkfifo)),
    ("bert", "a folder of modules", "modules.json: it is a folder", replaced("modules.json", Path.mkdir)),
    ("bert", "a pipe of pooling", "1_Pooling/config.json: it is a pipe", replaced("1_Pooling/config.json", os.mkfifo)),
    (
        "bert",
        "modules linked to nothing",
        "modules.json: it is a broken link",
        replaced("modules.json", lambda path: path.symlink_to("nothing")),
    ),
    ("t5", "no such pooling", "sentloom.json", patched("sentloom.json", pooling="median")),
]


def all_damages(bases: dict[str, Path]) -> list[tuple[str, str, Damage]]:
    damages = []
    for base, files in FILES.items():
        for file in files:
            damages += [(base, name, damage) for name, damage in file_damages(bases[base], file)]
            damages += [(base, name, damage) for name, damage in json_damages(bases[base], file)]
        damages += [(base, name, damage) for name, damage in weight_damages("model.safetensors")]
    damages += [("bert", name, damage) for name, damage in weight_damages("2_Dense/model.safetensors")]
    return damages


def named_for(name: str) -> tuple[str, ...]:
    """The files that a refusal may name: the damaged one, or those that it does not fit any more."""
    file = name.split(" ")[0]
    return (file, file.split("/")[0], *FITTING.get(file, ()))


def check_all(bases, load, tally, where, damages):
    for number, (base, name, damage) in enumerate(damages):
        with tally.case(f"{base}: {name}"):
            folder = shutil.copytree(bases[base], where / f"{number}")
            damage(folder)
            result = load(folder, base)
            assert "broken" not in result, result["broken"]
            if "refused" in result:
                words = result["refused"]
                assert str(folder) in words or words.startswith(
                    ("encode: the vector of", "judge: its verdicts are NaN")
                ), words
                assert any(file in words for file in named_for(name)), words
                assert result["kind"] == "ModelError"
            shutil.rmtree(folder)


def seeded(bases: dict[str, Path]) -> list[tuple[str, str, Damage]]:
    return random.Random(13).sample(all_damages(bases), QUICK + LONG)


@pytest.mark.long
def test_whole_folders_load(bases, load):
    for base, folder in bases.items():
        assert "loaded" in load(folder, base)


@pytest.mark.long
def test_what_was_found_before_is_refused_in_its_own_words(bases, load, tally, tmp_path):
    for number, (base, name, words, damage) in enumerate(NAMED):
        with tally.case(f"{base}: {name}"):
            folder = shutil.copytree(bases[base], tmp_path / f"{number}")
            damage(folder)
            result = load(folder, base)
            assert re.search(words, result.get("refused", "")), result


@pytest.mark.long
def test_some_damaged_folders(bases, load, tally, tmp_path):
    check_all(bases, load, tally, tmp_path, seeded(bases)[:QUICK])


@pytest.mark.long
def test_many_damaged_folders(bases, load, tally, tmp_path):
    check_all(bases, load, tally, tmp_path, seeded(bases)[QUICK:])


@pytest.mark.long
def test_the_command_refuses_damaged_folders_with_exit_code_2(bases, tally, tmp_path):
    (tmp_path / "texts.txt").write_text("A man is playing a guitar.\n")
    for number, (base, name, _, damage) in enumerate(NAMED[:6]):
        with tally.case(f"encode with {base}: {name}"):
            folder = shutil.copytree(bases[base], tmp_path / f"{number}")
            damage(folder)
            target = tmp_path / f"{number}.npy"
            command = [sys.executable, "-m", "sentloom", "encode", str(tmp_path / "texts.txt")]
            ended = subprocess.run(
                [*command, "--model", str(folder), "-o", str(target)], capture_output=True, text=True, check=False
            )
            assert ended.returncode == 2, ended.stderr
            assert "Traceback" not in ended.stderr
            assert not target.exists()
            assert json.dumps(str(folder))[1:-1] in ended.stderr.replace("\n", "")
