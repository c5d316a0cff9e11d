"""A WordNet of a few synsets in the real file format, and small Marian and masked language models."""

import json
from pathlib import Path

import torch
from transformers import BertConfig, BertForMaskedLM, MarianConfig, MarianMTModel

from tests.encoder.small_models import SENTENCES, build_model_folder

LICENCE = "  1 This stands for the licence.  \n  2 It ends here.  \n"
# part of speech -> synsets; the first synset with a word is the word's most frequent sense.
SYNSETS = {
    "noun": (["dog", "domestic_dog", "Canis_familiaris"], ["dog", "frump"], ["box", "case"], ["city", "metropolis"]),
    "verb": (["run", "scat"], ["stop", "halt", "cease"], ["carry", "transport"], ["tell", "order"]),
    "adj": (["galore(ip)", "abounding"], ["quick", "speedy"]),
    "adv": (["quickly", "rapidly", "speedily"],),
}
TYPES = {"noun": "n", "verb": "v", "adj": "a", "adv": "r"}


def build_wordnet(folder: Path) -> Path:
    """Write index and data files: offsets are in bytes, word counts in hex."""
    folder.mkdir(parents=True)
    for part, synsets in SYNSETS.items():
        data, places = LICENCE, {}
        for words in synsets:
            offset = len(data)
            for word in words:
                places.setdefault(word.partition("(")[0].lower(), []).append(f"{offset:08d}")
            listed = " ".join(f"{word} 0" for word in words)
            data += f"{offset:08d} 05 {TYPES[part]} {len(words):02x} {listed} 001 @ 00000000 n 0000 | a gloss  \n"
        lines = [
            f"{word} {TYPES[part]} {len(at)} 2 @ ~ {len(at)} 1 {' '.join(at)}  \n"
            for word, at in sorted(places.items())
        ]
        (folder / f"data.{part}").write_text(data)
        (folder / f"index.{part}").write_text(LICENCE + "".join(lines))
    (folder / "verb.exc").write_text("told tell\nran run\nrunning run\n")
    return folder


def build_masked_model(folder: Path) -> Path:
    """Write a small random BERT with its masked language head."""
    build_model_folder("bert", folder)
    config = BertConfig.from_pretrained(folder)
    torch.manual_seed(0)
    BertForMaskedLM(config).save_pretrained(folder)
    return folder


def build_translation_model(folder: Path, seed: int) -> Path:
    """Write a small random Marian model with a sentencepiece tokenizer trained on a few sentences."""
    import sentencepiece

    for side in ("source", "target"):
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(SENTENCES * 4),
            model_prefix=str(folder / side),
            vocab_size=90,
            hard_vocab_limit=False,
            minloglevel=2,
        )
        (folder / f"{side}.model").rename(folder / f"{side}.spm")
        (folder / f"{side}.vocab").unlink()
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(folder / "source.spm"))
    words = ["</s>", "<unk>", *(pieces.id_to_piece(i) for i in range(3, pieces.vocab_size())), "<pad>"]
    (folder / "vocab.json").write_text(json.dumps({word: i for i, word in enumerate(words)}))
    settings = {"source_lang": "en", "target_lang": "xx", "model_max_length": 64, "tokenizer_class": "MarianTokenizer"}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    pad = len(words) - 1
    sizes = {"d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_ffn_dim": 32, "decoder_ffn_dim": 32}
    heads = {"encoder_attention_heads": 2, "decoder_attention_heads": 2, "max_position_embeddings": 64}
    ends = {"pad_token_id": pad, "eos_token_id": 0, "decoder_start_token_id": pad, "forced_eos_token_id": 0}
    torch.manual_seed(seed)
    config = MarianConfig(vocab_size=len(words), init_std=1.0, **sizes, **heads, **ends)
    MarianMTModel(config).save_pretrained(folder)
    return folder
