"""Small causal models of random weights, with a byte-level tokenizer that knows line breaks."""

from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedTokenizerFast

from sentloom.writing.writer import KINDS, Wording, prompts_for, shown_judgements
from tests.writing.small_synthesizers import SHORT, TRIPLETS

SIZES = {
    "llama": {
        "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "initializer_range": 0.4,
    },
    "gpt2": {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 2048, "initializer_range": 0.4},
    "gpt_neox": {
        "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
        "initializer_range": 0.4,
    },
}  # fmt: skip


def build_small_causal(folder: Path, family: str = "llama", **changes: object) -> Path:
    """Ids: 0 pads nothing by itself, 1 ends a text."""
    tokenizer = _tokenizer()
    tokenizer.save_pretrained(folder)
    values = {"vocab_size": len(tokenizer), "eos_token_id": 1, "bos_token_id": 0, "max_position_embeddings": 2048}
    torch.manual_seed(3)
    config = AutoConfig.for_model(family, **{**values, **SIZES[family], **changes})
    model = AutoModelForCausalLM.from_config(config)
    model.save_pretrained(folder)
    return folder


def _tokenizer() -> PreTrainedTokenizerFast:
    texts = [text for anchor, positive, (negative,) in TRIPLETS for text in (anchor, positive, negative)]
    words = [part for one in (Wording(), SHORT, shown_judgements()) for part in (*one.entailment, *one.judge)]
    prompts = [part for styles in prompts_for(KINDS, None).values() for one in styles for part in one.around]
    plain = Tokenizer(models.BPE())
    plain.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    plain.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=600,
        special_tokens=["<start>", "<end>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    plain.train_from_iterator([*texts, *words, *prompts, *["true", " true", " false"] * 9], trainer)
    return PreTrainedTokenizerFast(tokenizer_object=plain, bos_token="<start>", eos_token="<end>")
