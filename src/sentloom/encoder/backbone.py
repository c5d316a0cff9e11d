"""A pretrained transformer behind one call: a pack of sentences in, the states of its tokens out."""

from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor, nn
from transformers import AttentionInterface, PreTrainedModel

from sentloom.encoder.dropout import dropout_of, set_dropout, with_cheap_masks
from sentloom.encoder.packing import ATTENTION, Pack, packed_attention, pad
from sentloom.encoder.pooling import DECODER_FIRST, Pooling
from sentloom.errors import InputError

# The families that run packed. All others (T5 and MPNet have relative position bias) run padded, on sentences of
# similar length.
PACKED = {"albert", "bert", "camembert", "distilbert", "electra", "modernbert", "roberta", "xlm-roberta"}
SHORTEST_WHEN_PADDED = 0.8
EMBEDDING = "embed"  # in the name of what is laid over the looked-up vectors: positions, norms, projections
POSITION_BIAS = "relative_attention_bias"  # one for all blocks, so the first too: T5 has it in that, MPNet beside them

AttentionInterface.register(ATTENTION, packed_attention)


def first_position(model: PreTrainedModel) -> int:
    """The position of a sentence's first token: RoBERTa and its kin count from behind their padding index."""
    table = getattr(getattr(model, "embeddings", None), "position_embeddings", None)
    padding = getattr(table, "padding_idx", None)
    return 0 if padding is None else int(padding) + 1


class Backbone(nn.Module):
    """The transformer itself. `shortest` is what `packing.plan` wants to know of it."""

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

    @property
    def width(self) -> int:
        """d, the width of a token's state."""
        return int(self.model.config.hidden_size)

    @property
    def num_layers(self) -> int:
        """Blocks of the encoder; states are numbered 0 (embedding output) to this."""
        return int(self.model.config.num_hidden_layers)

    @property
    def blocks(self) -> nn.ModuleList:
        """The encoder's blocks in order; ALBERT's, which repeats one, are a single one."""
        encoder = self.model.get_encoder() if self.model.config.is_encoder_decoder else self.model
        lists = [module for module in encoder.modules() if isinstance(module, nn.ModuleList)]
        return next((one for one in lists if len(one) == self.num_layers), lists[0])

    def freeze(self, layers: int) -> None:
        """Keep the embeddings (0) and as many blocks from training."""
        self.model.get_input_embeddings().requires_grad_(False)
        parts = (EMBEDDING, POSITION_BIAS) if layers else (EMBEDDING,)
        for name, parameter in self.model.named_parameters():
            if any(part in name for part in parts) and "decoder" not in name:
                parameter.requires_grad_(False)
        self.blocks[:layers].requires_grad_(False)

    @property
    def dropout(self) -> float:
        """The greatest dropout rate anywhere in the model."""
        return dropout_of(self.model)

    @dropout.setter
    def dropout(self, rate: float) -> None:
        set_dropout(self.model, rate)

    def check(self, pooling: Pooling) -> None:
        """Refuse a pooling that this model cannot give."""
        name = f"pooling {str(pooling)!r}"
        if pooling.how == DECODER_FIRST and not self.model.config.is_encoder_decoder:
            found = f"a {self.model.config.model_type} model, which has no decoder"
            raise InputError(name, found, "an encoder-decoder model such as T5", "choose mean or first")
        if not all(-self.num_layers - 1 <= layer <= self.num_layers for layer in pooling.layers):
            raise InputError(
                name,
                f"a model of {self.num_layers} layers",
                f"layers from 0 to {self.num_layers}",
                "choose among those",
            )

    def states(self, pack: Pack, layers: Sequence[int] = (-1,)) -> list[Tensor]:
        """The states (T, d) of each asked layer."""
        only_last = tuple(layers) == (-1,)
        outputs, unpad = self._run(pack, output_hidden_states=not only_last)
        chosen = [outputs.last_hidden_state] if only_last else [outputs.hidden_states[layer] for layer in layers]
        return [unpad(states) for states in chosen]

    def decoder_first(self, pack: Pack) -> Tensor:
        """The decoder's state (n, d) over its start symbol, as only input, in packed order."""
        ids, mask = pad(pack.ids[0], pack, self.padding)
        states = self.model.get_encoder()(input_ids=ids, attention_mask=mask).last_hidden_state
        start = ids.new_full((len(ids), 1), self.decoder_start)
        decoded = self.model.get_decoder()(
            input_ids=start, encoder_hidden_states=states, encoder_attention_mask=mask, use_cache=False
        )
        return decoded.last_hidden_state[:, 0]

    def _run(self, pack: Pack, **options: bool) -> tuple[Any, Callable[[Tensor], Tensor]]:
        """The model's outputs, and the way from one of its state tensors to (T, d)."""
        if self.packed:
            positions = pack.positions + self.first_position
            outputs = self.model(input_ids=pack.ids, position_ids=positions, runs=pack.runs, **options)
            return outputs, lambda states: states[0]
        ids, mask = pad(pack.ids[0], pack, self.padding)
        encoder = self.model.get_encoder() if self.model.config.is_encoder_decoder else self.model
        return encoder(input_ids=ids, attention_mask=mask, **options), lambda states: states[mask]
