"""Malicious artifacts: no code runs, nothing outside the folder is read or written, and the refusal is clear.

A pickle here would leave a marker file if it were ever read. Outside the model's folder lies another model with other
weights: if any of its files were used, the vectors would differ. Each model is loaded in a child of its own.
"""

import json
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from safetensors.torch import load_file, save_file

from sentloom.data import read as read_data
from sentloom.encoder.locate import FETCHED
from sentloom.encoder.vector_files import open_vectors
from sentloom.errors import SentloomError
from sentloom.files import sha256
from sentloom.lab.recipe import read_recipe
from sentloom.training.checkpoints import Checkpoint, newest_checkpoint, write_best, write_checkpoint
from sentloom.writing.ledger import Ledger
from tests.faults.model_folders import build_bert, build_t5, read, write

FAULT = "14. malicious artifacts"
ASKED = 30

MARKER = "code-ran"
REFUSED, SAME, EITHER = "refused", "same", "either"
EVIL = f"open({MARKER!r}, 'w')\nclass Model: pass\n"
Change = Callable[[Path, Path], Any]  # the model's folder, and the one outside


class Bomb:
    """A pickle that leaves a file behind when it is read."""

    def __init__(self, marker: Path) -> None:
        self.marker = str(marker)

    def __reduce__(self) -> tuple[Any, ...]:
        return (open, (self.marker, "w"))


def bomb(path: Path, protocol: int = 2) -> None:
    path.write_bytes(pickle.dumps(Bomb(path.parents[1] / MARKER), protocol))


def torch_bomb(path: Path) -> None:
    torch.save({"weight": torch.zeros(2), "bomb": Bomb(path.parents[1] / MARKER)}, path)


def patch(path: Path, **changes: Any) -> None:
    write(path, (read(path) if path.exists() else {}) | changes)


def index(folder: Path, name: str) -> None:
    """The weights' names, all in one file that the index names."""
    names = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    write(folder / "model.safetensors.index.json", {"metadata": {}, "weight_map": dict.fromkeys(names, name)})


def link(path: Path, target: Path) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    path.symlink_to(target)


def modules(folder: Path, place: int, **changes: str) -> None:
    listed = read(folder / "modules.json")
    listed[place] |= changes
    write(folder / "modules.json", listed)


def header(folder: Path, declared: dict[str, Any], length: int | None = None) -> None:
    data = json.dumps(declared).encode()
    size = (len(data) if length is None else length).to_bytes(8, "little")
    (folder / "model.safetensors").write_bytes(size + data + b"\0" * 64)


def tensor(shape: list[int], offsets: list[int], kind: str = "F32") -> dict[str, Any]:
    return {"dtype": kind, "shape": shape, "data_offsets": offsets}


def without_tokenizer(folder: Path, name: str, protocol: int = 2) -> None:
    (folder / "tokenizer.json").unlink()
    bomb(folder / name, protocol)


def with_code(folder: Path, file: str, **keys: Any) -> None:
    (folder / "evil.py").write_text(EVIL)
    patch(folder / file, **keys)


AUTO_MAP = dict.fromkeys(("AutoConfig", "AutoModel", "AutoTokenizer", "AutoModelForTextEncoding"), "evil.Model")

MODELS: dict[str, tuple[str, Change]] = {
    # pickles
    "a pickle named model.safetensors": (REFUSED, lambda at, _: bomb(at / "model.safetensors")),
    "a torch pickle named model.safetensors": (REFUSED, lambda at, _: torch_bomb(at / "model.safetensors")),
    "an index to a pickle named weights.txt": (
        REFUSED,
        lambda at, _: (index(at, "weights.txt"), torch_bomb(at / "weights.txt")),
    ),
    "an index to pytorch_model.bin": (
        REFUSED,
        lambda at, _: (index(at, "pytorch_model.bin"), torch_bomb(at / "pytorch_model.bin")),
    ),
    "an index to a pickle named x.safetensors": (
        REFUSED,
        lambda at, _: (index(at, "x.safetensors"), torch_bomb(at / "x.safetensors")),
    ),
    "only pytorch_model.bin": (
        REFUSED,
        lambda at, _: ((at / "model.safetensors").unlink(), torch_bomb(at / "pytorch_model.bin")),
    ),
    "pytorch_model.bin beside safetensors": (SAME, lambda at, _: torch_bomb(at / "pytorch_model.bin")),
    "training_args.bin": (SAME, lambda at, _: torch_bomb(at / "training_args.bin")),
    "optimizer.pt": (SAME, lambda at, _: torch_bomb(at / "optimizer.pt")),
    "a distributed checkpoint beside": (
        SAME,
        lambda at, _: (
            bomb(at / ".metadata"),
            torch_bomb(at / "__0_0.distcp"),
            torch_bomb(at / "shard-00000-model-00001-of-00001.safetensors"),
        ),
    ),
    "an adapter": (
        REFUSED,
        lambda at, _: (
            write(at / "adapter_config.json", {"peft_type": "LORA", "base_model_name_or_path": "owner/name"}),
            torch_bomb(at / "adapter_model.bin"),
        ),
    ),
    "a pickled Dense layer": (REFUSED, lambda at, _: torch_bomb(at / "2_Dense/model.safetensors")),
    "a Dense layer with only pytorch_model.bin": (
        REFUSED,
        lambda at, _: ((at / "2_Dense/model.safetensors").unlink(), torch_bomb(at / "2_Dense/pytorch_model.bin")),
    ),
    "a pickle named config.json": (REFUSED, lambda at, _: bomb(at / "config.json", 0)),
    "a pickle named tokenizer.json": (REFUSED, lambda at, _: bomb(at / "tokenizer.json")),
    "a pickle named vocab.json": (REFUSED, lambda at, _: without_tokenizer(at, "vocab.json")),
    "a pickle named vocab.txt": (EITHER, lambda at, _: without_tokenizer(at, "vocab.txt", 0)),
    "a pickle named spiece.model": (REFUSED, lambda at, _: without_tokenizer(at, "spiece.model")),
    "a pickle named tokenizer.model": (REFUSED, lambda at, _: without_tokenizer(at, "tokenizer.model")),
    # code
    "auto_map in config.json": (REFUSED, lambda at, _: with_code(at, "config.json", auto_map=AUTO_MAP)),
    "auto_map of another repository": (
        REFUSED,
        lambda at, _: with_code(at, "config.json", auto_map={"AutoModel": "owner/name--evil.Model"}),
    ),
    "auto_map in tokenizer_config.json": (
        REFUSED,
        lambda at, _: with_code(at, "tokenizer_config.json", auto_map={"AutoTokenizer": ["evil.Model", None]}),
    ),
    "auto_map in generation_config.json": (
        REFUSED,
        lambda at, _: with_code(at, "generation_config.json", auto_map=AUTO_MAP),
    ),
    "auto_map inside a nested configuration": (
        REFUSED,
        lambda at, _: with_code(at, "config.json", text_config={"auto_map": AUTO_MAP}),
    ),
    "trust_remote_code in config.json": (REFUSED, lambda at, _: patch(at / "config.json", trust_remote_code=True)),
    "custom_pipelines": (
        REFUSED,
        lambda at, _: with_code(at, "config.json", custom_pipelines={"x": {"impl": "evil.Model"}}),
    ),
    "a kernel as _attn_implementation": (
        REFUSED,
        lambda at, _: patch(at / "config.json", _attn_implementation="owner/repo"),
    ),
    "a kernel as attn_implementation": (
        REFUSED,
        lambda at, _: patch(at / "config.json", attn_implementation="kernels-community/flash-attn"),
    ),
    "a paged kernel": (REFUSED, lambda at, _: patch(at / "config.json", attn_implementation="paged|owner/repo")),
    "a kernel for a part": (REFUSED, lambda at, _: patch(at / "config.json", attn_implementation={"": "owner/repo"})),
    "a nested kernel": (
        REFUSED,
        lambda at, _: patch(at / "config.json", encoder={"_attn_implementation_internal": "owner/repo"}),
    ),
    "a kernel for experts": (REFUSED, lambda at, _: patch(at / "config.json", experts_implementation="owner/repo")),
    "kernel_config": (REFUSED, lambda at, _: patch(at / "config.json", kernel_config={"BertLayer": "owner/repo"})),
    "fusion_config": (REFUSED, lambda at, _: patch(at / "config.json", fusion_config={"patch_embeddings": True})),
    "quantization_config": (
        REFUSED,
        lambda at, _: patch(at / "config.json", quantization_config={"quant_method": "gptq", "bits": 4}),
    ),
    "custom_generate beside": (
        SAME,
        lambda at, _: ((at / "custom_generate").mkdir(), (at / "custom_generate/generate.py").write_text(EVIL)),
    ),
    "a chat template": (
        SAME,
        lambda at, _: (at / "chat_template.jinja").write_text("{{ ''.__class__.__mro__[1].__subclasses__() }}"),
    ),
    "a module of its own": (
        REFUSED,
        lambda at, _: (modules(at, 1, type="evil.Pooling"), (at / "evil.py").write_text(EVIL)),
    ),
    "an activation of its own": (
        REFUSED,
        lambda at, _: patch(at / "2_Dense/config.json", activation_function="os.system"),
    ),
    "a tokenizer class that is none": (
        REFUSED,
        lambda at, _: patch(at / "tokenizer_config.json", tokenizer_class="pipeline"),
    ),
    # paths
    "an index to ../outside": (REFUSED, lambda at, _: index(at, "../outside/model.safetensors")),
    "an index to an absolute path": (REFUSED, lambda at, out: index(at, str(out / "model.safetensors"))),
    "transformers_weights": (
        REFUSED,
        lambda at, _: patch(at / "config.json", transformers_weights="../outside/model.safetensors"),
    ),
    "other configuration_files": (
        SAME,
        lambda at, _: (
            patch(at / "config.json", configuration_files=["config.5.0.0.json"]),
            write(at / "config.5.0.0.json", read(at / "config.json") | {"auto_map": AUTO_MAP}),
        ),
    ),
    "a tokenizer_file outside": (
        SAME,
        lambda at, out: patch(
            at / "tokenizer_config.json",
            tokenizer_file=str(out / "tokenizer.json"),
            vocab_file="../outside/vocab.txt",
            fast_tokenizer_files=["../outside/tokenizer.5.0.0.json"],
            init_inputs=[str(out / "vocab.txt")],
        ),
    ),
    "a sentencepiece file outside": (
        REFUSED,
        lambda at, out: patch(at / "tokenizer_config.json", sp_model_kwargs={"model_file": str(out / "x.model")}),
    ),
    "a pooling outside": (REFUSED, lambda at, _: modules(at, 1, path="../outside/1_Pooling")),
    "a Dense layer outside": (REFUSED, lambda at, _: modules(at, 2, path="../outside/2_Dense")),
    "a Dense layer at an absolute path": (REFUSED, lambda at, out: modules(at, 2, path=str(out / "2_Dense"))),
    "a transformer outside": (REFUSED, lambda at, _: modules(at, 0, path="../outside")),
    "weights linked outside": (REFUSED, lambda at, out: link(at / "model.safetensors", out / "model.safetensors")),
    "a configuration linked outside": (REFUSED, lambda at, out: link(at / "config.json", out / "config.json")),
    "a tokenizer linked outside": (REFUSED, lambda at, out: link(at / "tokenizer.json", out / "tokenizer.json")),
    "a module linked outside": (REFUSED, lambda at, out: link(at / "2_Dense", out / "2_Dense")),
    "settings linked outside": (REFUSED, lambda at, out: link(at / "sentloom.json", out / "sentloom.json")),
    "a loop of links": (REFUSED, lambda at, _: link(at / "tokenizer_config.json", at / "tokenizer_config.json")),
    # headers
    "a giant declared shape": (REFUSED, lambda at, _: header(at, {"w": tensor([1 << 40], [0, 4])})),
    "a shape that overflows": (REFUSED, lambda at, _: header(at, {"w": tensor([1 << 33, 1 << 33], [0, 64])})),
    "a giant header": (REFUSED, lambda at, _: header(at, {"w": tensor([1], [0, 4])}, length=1 << 62)),
    "offsets beyond the file": (REFUSED, lambda at, _: header(at, {"w": tensor([1 << 20], [0, 1 << 22])})),
    "overlapping tensors": (
        REFUSED,
        lambda at, _: header(at, {"a": tensor([16], [0, 64]), "b": tensor([16], [0, 64])}),
    ),
    "negative offsets": (REFUSED, lambda at, _: header(at, {"w": tensor([16], [-64, 0])})),
}


@pytest.fixture(scope="module")
def bases(tmp_path_factory):
    """A model, and another one outside, with other weights."""
    root = tmp_path_factory.mktemp("bases")
    folder = build_bert(root / "model")
    outside = shutil.copytree(folder, root / "outside")
    for file in ("model.safetensors", "2_Dense/model.safetensors"):
        save_file({name: x * 1.5 for name, x in load_file(outside / file).items()}, outside / file, {"format": "pt"})
    return folder, outside


def listed(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): sha256(path) for path in sorted(folder.rglob("*")) if path.is_file()}


def check_models(bases, load, tally, where, names):
    expected = load(bases[0])["loaded"]
    for number, name in enumerate(names):
        outcome, change = MODELS[name]
        with tally.case(name):
            around = where / str(number)
            folder = shutil.copytree(bases[0], around / "model")
            outside = shutil.copytree(bases[1], around / "outside")
            change(folder, outside)
            before = listed(outside)
            result = load(folder)
            assert not list(around.rglob(MARKER)), "code ran"
            assert not Path(MARKER).exists(), "code ran"
            assert "broken" not in result, result["broken"]
            assert listed(outside) == before
            if outcome == REFUSED:
                assert str(folder) in result.get("refused", ""), result
            elif outcome == SAME:
                assert result.get("loaded") == expected, result


def test_some_malicious_models(bases, load, tally, tmp_path):
    check_models(bases, load, tally, tmp_path, list(MODELS)[::7])


@pytest.mark.long
def test_the_other_malicious_models(bases, load, tally, tmp_path):
    check_models(bases, load, tally, tmp_path, [name for name in MODELS if name not in list(MODELS)[::7]])


@pytest.mark.long
def test_malicious_text_to_text_models(load, tally, tmp_path):
    """The other loader goes the same way."""
    build_t5(tmp_path / "t5")
    plain = tmp_path / "plain-t5"
    for name in ("an index to a pickle named weights.txt", "auto_map in generation_config.json", "a paged kernel"):
        with tally.case(name):
            folder = shutil.copytree(plain, tmp_path / name.replace(" ", "-") / "model")
            MODELS[name][1](folder, tmp_path)
            assert str(folder) in load(folder, "synthesizer").get("refused", "")
            assert not (folder.parent / MARKER).exists()


def test_links_of_the_hubs_cache_are_followed_and_no_others(bases, load, tmp_path):
    root = tmp_path / "models--owner--name"
    snapshot = shutil.copytree(bases[0], root / "snapshots/0123")
    (root / "blobs").mkdir()
    shutil.move(snapshot / "model.safetensors", root / "blobs/abc")
    (snapshot / "model.safetensors").symlink_to("../../blobs/abc")
    assert load(snapshot) == load(bases[0])
    link(snapshot / "model.safetensors", bases[1] / "model.safetensors")
    assert "leads out of the folder" in load(snapshot)["refused"]


def test_only_named_files_are_fetched_from_the_hub():
    from huggingface_hub.utils import filter_repo_objects

    wanted = [
        "config.json",
        "model.safetensors",
        "vocab.txt",
        "merges.txt",
        "spiece.model",
        "2_Dense/model.safetensors",
        "README.md",
    ]
    others = ["weights.txt", "evil.model", "pytorch_model.bin", "evil.py", "model.pkl", "x.spm", "model.onnx"]
    assert list(filter_repo_objects([*wanted, *others], allow_patterns=FETCHED)) == wanted


def saved_dataset(folder: Path, name: str) -> Path:
    folder.mkdir(parents=True)
    write(folder / "state.json", {"_data_files": [{"filename": name}]})
    write(folder / "dataset_info.json", {})
    return folder


def arrow(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.table({"text": [text]})
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, table.schema) as stream:
        stream.write_table(table)
    return path


def test_malicious_data_is_refused(tally, tmp_path):
    marker = tmp_path / MARKER
    secret = arrow(tmp_path / "secret.arrow", "a secret")
    for number, name in enumerate(("../secret.arrow", str(secret), "linked.arrow", "../0/../secret.arrow")):
        with tally.case(f"a data set that names {name}"):
            folder = saved_dataset(tmp_path / "sets" / str(number) / "in", name)
            arrow(folder.parent / "secret.arrow", "a secret")
            (folder / "linked.arrow").symlink_to(secret)
            with pytest.raises(SentloomError, match=r"state\.json"):
                read_data(folder)
    for ending in ("parquet", "jsonl", "csv", "tsv", "npz", "npy", "pkl"):
        with tally.case(f"a pickle named data.{ending}"):
            (tmp_path / f"data.{ending}").write_bytes(pickle.dumps([Bomb(marker)]))
            with pytest.raises(SentloomError):
                read_data(tmp_path / f"data.{ending}")
    with tally.case("a pickled arrow file"):
        folder = saved_dataset(tmp_path / "pickled", "data.arrow")
        (folder / "data.arrow").write_bytes(pickle.dumps(Bomb(marker)))
        with pytest.raises(SentloomError):
            read_data(folder)
    with tally.case("objects in .npy"):
        np.save(tmp_path / "vectors.npy", np.array([[Bomb(marker)]], dtype=object), allow_pickle=True)
        with pytest.raises(SentloomError):
            open_vectors(tmp_path / "vectors.npy", (1, 1))
    assert not marker.exists()


def test_malicious_recipes_are_refused(tally, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for number, text in enumerate(
        (
            f"!!python/object/apply:builtins.open ['{MARKER}', 'w']",
            f"stages: !!python/object/apply:os.system ['touch {MARKER}']",
            f"!!python/object/new:os.system ['touch {MARKER}']",
            "stages: &a [*a, *a]",
        )
    ):
        with tally.case(text):
            (tmp_path / f"{number}.yaml").write_text(text)
            with pytest.raises(SentloomError):
                read_recipe(tmp_path / f"{number}.yaml")
            assert not Path(MARKER).exists()


def test_malicious_checkpoints_and_ledgers_are_not_read(tally, tmp_path):
    marker, told = tmp_path / MARKER, []
    with tally.case("a pickled checkpoint with the right hash"):
        run = tmp_path / "run"
        write_checkpoint(run, Checkpoint({"w": torch.ones(2)}, {}, {"step": 1, "best": None}))
        place = run / "step-00000001"
        torch.save(Bomb(marker), place / "state.safetensors")
        facts = read(place / "checkpoint.json")
        facts["sha256"]["state.safetensors"] = sha256(place / "state.safetensors")
        write(place / "checkpoint.json", facts)
        assert newest_checkpoint(run, told.append) is None
        assert "damaged" in told[0]
    with tally.case("a checkpoint whose best weights are elsewhere"):
        run, elsewhere = tmp_path / "other", tmp_path / "elsewhere"
        kept = write_best(elsewhere, 1, {"w": torch.ones(2)})
        best = {"weights": kept | {"file": f"../elsewhere/{kept['file']}"}}
        write_checkpoint(run, Checkpoint({"w": torch.ones(2)}, {}, {"step": 1, "best": best}))
        assert newest_checkpoint(run, told.append) is None
    with tally.case("a pickled ledger"):
        (tmp_path / "ledger").mkdir()
        for name in ("plan.json", "manifest.json", "block-000000.parquet"):
            (tmp_path / "ledger" / name).write_bytes(pickle.dumps(Bomb(marker)))
        with pytest.raises(SentloomError):
            Ledger.open(tmp_path / "ledger")
    assert not marker.exists()
