"""A pretrained transformer that maps a pack of sentences to the hidden states of its tokens."""

from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor, nn
from transformers import AttentionInterface, PreTrainedConfig, PreTrainedModel
from transformers.models.auto.modeling_auto import (
    MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    MODEL_FOR_MASKED_LM_MAPPING_NAMES,
)

from sentloom.encoder.attention import ATTENTION, packed_attention
from sentloom.encoder.device import Precision, precision_for
from sentloom.encoder.fused import can_fuse, fused_states
from sentloom.encoder.packing import Pack, dropout_of, pad, set_dropout, with_cheap_masks
from sentloom.encoder.pooling import DECODER_FIRST, LAST, POOLER, Pooling
from sentloom.errors import InputError, option

# The model families that run packed. All others (T5 and MPNet have a relative position bias) run padded, on sentences
# of similar length.
PACKED = {"albert", "bert", "camembert", "distilbert", "electra", "modernbert", "roberta", "xlm-roberta"}
PACKED |= {"gemma", "gemma3_text", "llama", "mistral", "qwen2", "qwen3"}  # made for writing
READ_BOTH_WAYS = {"bert-generation", "xlnet"}  # made for writing, too, but their tokens see those after them
SHORTEST_WHEN_PADDED = 0.8
EMBEDDING = "embed"  # in the names of all embedding parameters: positions, norms, projections
POSITION_BIAS = "relative_attention_bias"  # shared by all blocks; part of the first block in T5, separate in MPNet

AttentionInterface.register(ATTENTION, packed_attention)


def first_position(model: PreTrainedModel) -> int:
    """Return the position of a sentence's first token: RoBERTa-like models count from after their padding index."""
    table = getattr(getattr(model, "embeddings", None), "position_embeddings", None)
    padding = getattr(table, "padding_idx", None)
    return 0 if padding is None else int(padding) + 1


def is_causal(config: PreTrainedConfig) -> bool:
    """Whether a token sees only those before it: so do models made for writing, if their configuration does not object.

    Some of these, such as EmbeddingGemma, were trained further to read in both directions.
    """
    family = config.model_type
    if family not in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES or family in READ_BOTH_WAYS:
        return False
    both_ways = getattr(config, "is_causal", None) is False or getattr(config, "use_bidirectional_attention", False)
    return not (both_ways or config.is_encoder_decoder or family in MODEL_FOR_MASKED_LM_MAPPING_NAMES)


class Backbone(nn.Module):
    """The transformer. `shortest` is the argument of that name for `packing.plan`."""

    def __init__(self, model: PreTrainedModel) -> None:
        super().__init__()
        self.model = model
        config = model.config
        self.packed = config.model_type in PACKED
        self.shortest = 0.0 if self.packed else SHORTEST_WHEN_PADDED
        self.padding = config.pad_token_id or 0
        self.first_position = first_position(model)
        start = getattr(config, "decoder_start_token_id", None)
        self.decoder_start = self.padding if start is None else start  # T5 starts with its padding token
        with_cheap_masks(model)
        if self.packed:
            model.set_attn_implementation(ATTENTION)

    def precision_for(self, asked: Precision | None = None) -> Precision:
        """The precision of inference: `asked`, else the one chosen for all models, else fp32."""
        return precision_for(asked)

    @property
    def causal(self) -> bool:
        """Whether a token sees only those before it."""
        return is_causal(self.model.config)

    @property
    def width(self) -> int:
        """The hidden size d of a token's state."""
        return int(self.model.config.hidden_size)

    @property
    def num_layers(self) -> int:
        """The number of encoder blocks; states are numbered from 0 (embedding output) to this number."""
        return int(self.model.config.num_hidden_layers)

    @property
    def blocks(self) -> nn.ModuleList:
        """The encoder's blocks in order; ALBERT, which repeats one block, has a single one."""
        encoder = self.model.get_encoder() if self.model.config.is_encoder_decoder else self.model
        lists = [module for module in encoder.modules() if isinstance(module, nn.ModuleList)]
        return next((blocks for blocks in lists if len(blocks) == self.num_layers), lists[0])

    def freeze(self, layers: int) -> None:
        """Freeze the embeddings and the first `layers` blocks."""
        self.model.get_input_embeddings().requires_grad_(False)
        parts = (EMBEDDING, POSITION_BIAS) if layers else (EMBEDDING,)
        for name, parameter in self.model.named_parameters():
            if any(part in name for part in parts) and "decoder" not in name:
                parameter.requires_grad_(False)
        self.blocks[:layers].requires_grad_(False)

    @property
    def dropout(self) -> float:
        """The largest dropout rate in the model."""
        return dropout_of(self.model)

    @dropout.setter
    def dropout(self, rate: float) -> None:
        set_dropout(self.model, rate)

    def checkpoint_activations(self) -> None:
        """In training, keep only what goes into each block, and compute the rest once more in the backward pass."""
        if not self.model.supports_gradient_checkpointing:
            problem = f"transformers' {self.model.config.model_type} models do not support it"
            raise InputError("activation_checkpointing", problem, "", "leave it out, and use shorter texts or chunks")
        self.model.gradient_checkpointing_enable({"use_reentrant": False})

    def check(self, pooling: Pooling) -> None:
        """Refuse a pooling that this model does not support."""
        name = f"pooling {str(pooling)!r}"
        if pooling.how == DECODER_FIRST and not self.model.config.is_encoder_decoder:
            problem = f"a {self.model.config.model_type} model has no decoder"
            raise InputError(name, problem, "an encoder-decoder model such as T5", "choose mean or first")
        if self.causal and pooling.how == "first":
            problem = f"in a {self.model.config.model_type} model, the first token does not see the others"
            raise InputError(name, problem, "last, which sees all, or mean", f"choose {option('pooling', LAST)}")
        if pooling.how == POOLER:  # loading a model has turned it into `first` and a head
            problem, expected = "it is read from a model's weights", "a model that is loaded with it"
            raise InputError(name, problem, expected, "give it where the model is named, or choose first")
        if not all(-self.num_layers - 1 <= layer <= self.num_layers for layer in pooling.layers):
            raise InputError(
                name,
                f"the model has {self.num_layers} layers",
                f"layers from 0 to {self.num_layers}",
                "choose other layers",
            )

    def states(self, pack: Pack, layers: Sequence[int] = (-1,)) -> list[Tensor]:
        """Return the states (T, d) of each requested layer."""
        if can_fuse(self.model):
            return fused_states(self.model, pack, self.first_position, layers)
        only_last = tuple(layers) == (-1,)
        outputs, unpad = self._run(pack, output_hidden_states=not only_last)
        chosen = [outputs.last_hidden_state] if only_last else [outputs.hidden_states[layer] for layer in layers]
        return [unpad(states) for states in chosen]

    def decoder_first(self, pack: Pack) -> Tensor:
        """Return the decoder's states (n, d) for its start token as the only input, in packed order."""
        ids, mask = pad(pack.ids[0], pack, self.padding)
        states = self.model.get_encoder()(input_ids=ids, attention_mask=mask).last_hidden_state
        start = ids.new_full((len(ids), 1), self.decoder_start)
        decoded = self.model.get_decoder()(
            input_ids=start, encoder_hidden_states=states, encoder_attention_mask=mask, use_cache=False
        )
        return decoded.last_hidden_state[:, 0]

    def _run(self, pack: Pack, **options: bool) -> tuple[Any, Callable[[Tensor], Tensor]]:
        """Return the model's outputs and a function that maps one of its state tensors to (T, d)."""
        if self.causal:
            options["use_cache"] = False  # keys and values are for writing
        if self.packed:
            given = {"input_ids": pack.ids, "position_ids": pack.positions + self.first_position}
            given |= {} if pack.types is None else {"token_type_ids": pack.types}
            outputs = self.model(**given, runs=pack.runs, **options)
            return outputs, lambda states: states[0]
        ids, mask = pad(pack.ids[0], pack, self.padding)
        encoder = self.model.get_encoder() if self.model.config.is_encoder_decoder else self.model
        return encoder(input_ids=ids, attention_mask=mask, **options), lambda states: states[mask]
