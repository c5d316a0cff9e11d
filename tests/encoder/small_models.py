"""Small models of every family, built from a config, with tokenizers trained on a few sentences."""

import json
from pathlib import Path

import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
from transformers import AutoConfig, AutoModel

from sentloom.lab.init_model import Form, letters_of, unigram_tokens, wordpiece_tokens

SENTENCES = [
    "A man is playing a guitar on the stage.",
    "Two dogs run across the snow, barking at a bird.",
    "The committee will publish its report on Monday.",
    "Compute the distance between each pair of the two collections of inputs.",
    "She asked whether the train to Lisbon had already left the station.",
    "No one knows; it rains.",
    "Yes",
    "Ein Hund läuft durch den Garten und bellt.",
]
# family -> (type of tokenizer, tokenizer class, settings of a small model)
SMALL = {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 64}
SMALL_T5 = {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 3, "num_heads": 4, "decoder_start_token_id": 0}
FAMILIES = {
    "bert": ("wordpiece", "BertTokenizer", SMALL | {"max_position_embeddings": 64}),
    "roberta": ("bytes", "RobertaTokenizer", SMALL | {"max_position_embeddings": 66, "pad_token_id": 1}),
    "distilbert": ("wordpiece", "DistilBertTokenizer", {"dim": 32, "n_layers": 3, "n_heads": 4, "hidden_dim": 64}),
    "mpnet": ("wordpiece", "MPNetTokenizer", SMALL | {"max_position_embeddings": 66, "pad_token_id": 1}),
    "electra": ("wordpiece", "ElectraTokenizer", SMALL | {"embedding_size": 16, "max_position_embeddings": 64}),
    "albert": ("pieces", "AlbertTokenizer", SMALL | {"embedding_size": 16, "max_position_embeddings": 64}),
    "xlm-roberta": ("pieces", "XLMRobertaTokenizer", SMALL | {"max_position_embeddings": 66, "pad_token_id": 1}),
    "modernbert": (
        "bytes",
        "TokenizersBackend",
        SMALL
        | {"local_attention": 16, "max_position_embeddings": 512, "pad_token_id": 1, "global_attn_every_n_layers": 3},
    ),
    "t5": ("pieces", "T5Tokenizer", SMALL_T5),
    "mt5": ("pieces", "T5Tokenizer", SMALL_T5 | {"feed_forward_proj": "gated-gelu"}),
}
DECODER_FAMILIES = ("t5", "mt5")
# Made for writing: four heads share two keys and values. Gemma's first layers have a sliding window.
SMALL_CAUSAL = SMALL | {"num_key_value_heads": 2, "head_dim": 8, "max_position_embeddings": 2048}
CAUSAL_FAMILIES = {
    "qwen3": ("bytes", "TokenizersBackend", SMALL_CAUSAL),
    "llama": ("bytes", "TokenizersBackend", SMALL_CAUSAL),
    "gemma3_text": (
        "bytes",
        "TokenizersBackend",
        SMALL_CAUSAL | {"sliding_window": 16, "layer_types": ["sliding_attention"] * 2 + ["full_attention"]},
    ),
}
SPECIALS = {
    "wordpiece": ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"],
    "bytes": ["<s>", "<pad>", "</s>", "<unk>", "<mask>"],
    "pieces": ["<pad>", "</s>", "<unk>", "<s>", "<mask>", "[CLS]", "[SEP]"],
}


def train_tokenizer(kind: str) -> Tokenizer:
    """Train a tokenizer of the given type on the sentences above, the same in every process."""
    texts, specials = SENTENCES * 4, SPECIALS[kind]
    if kind == "wordpiece":
        form = Form(normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer(), specials)
        letters = letters_of(texts, form.normalizer)
        tokens = wordpiece_tokens(texts, 200, form, letters)
        tokenizer = Tokenizer(models.WordPiece({token: at for at, token in enumerate(tokens)}, unk_token="[UNK]"))
    elif kind == "bytes":
        tokenizer = Tokenizer(models.BPE())
        form = Form(None, pre_tokenizers.ByteLevel(add_prefix_space=False))
        tokenizer.pre_tokenizer = form.pre_tokenizer
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        trainer = trainers.BpeTrainer(vocab_size=400, special_tokens=specials, initial_alphabet=alphabet)
        tokenizer.train_from_iterator(texts, trainer)
    else:
        form = Form(None, pre_tokenizers.Metaspace(), specials)
        tokens = unigram_tokens(texts, 150, form, unknown="<unk>")
        tokenizer = Tokenizer(models.Unigram(tokens, unk_id=specials.index("<unk>")))
    tokenizer.normalizer, tokenizer.pre_tokenizer = form.normalizer, form.pre_tokenizer
    tokenizer.add_special_tokens(specials)
    first, last = {"wordpiece": ("[CLS]", "[SEP]"), "bytes": ("<s>", "</s>"), "pieces": (None, "</s>")}[kind]
    frame = f"{first} $A {last}" if first else f"$A {last}"
    used = [(name, tokenizer.token_to_id(name)) for name in (first, last) if name]
    tokenizer.post_processor = processors.TemplateProcessing(single=frame, special_tokens=used)
    return tokenizer


def build_model_folder(family: str, folder: Path) -> Path:
    """Write a plain transformers folder with a small random model."""
    kind, tokenizer_class, settings = (FAMILIES | CAUSAL_FAMILIES)[family]
    tokenizer = train_tokenizer(kind)
    names = {
        "wordpiece": ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"),
        "bytes": ("<pad>", "<unk>", "<s>", "</s>", "<mask>"),
        "pieces": ("<pad>", "<unk>", "<s>", "</s>", "<mask>"),
    }[kind]
    roles = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), names, strict=True))
    if tokenizer_class == "MPNetTokenizer":  # its default ids have no rows in this small model
        roles |= {"bos_token": "[CLS]", "eos_token": "[SEP]"}
    if tokenizer_class == "T5Tokenizer":
        roles = {"pad_token": "<pad>", "unk_token": "<unk>", "eos_token": "</s>", "extra_ids": 0}
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": tokenizer_class, **roles}))
    pad = {"pad_token_id": tokenizer.token_to_id(roles["pad_token"])}
    torch.manual_seed(0)
    config = AutoConfig.for_model(family, vocab_size=tokenizer.get_vocab_size(), **(settings | pad))
    AutoModel.from_config(config).save_pretrained(folder)
    return folder
