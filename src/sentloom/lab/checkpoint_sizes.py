"""The sizes of checkpoints and the work of one text, from the architecture alone: nothing is downloaded.

FLOPs are counted: torch's counter runs a forward and a backward pass of the network without weights.
"""

from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import torch
import yaml
from torch.utils.flop_counter import FlopCounterMode
from transformers import AutoConfig, AutoModel, PreTrainedModel

from sentloom.encoder.locate import is_model
from sentloom.encoder.pooling import DECODER_FIRST

WEIGHT = 4  # bytes: weights, gradients and the state of the optimiser are float32


@cache
def paper_sizes() -> dict[str, Any]:
    """The models and data of the papers: see paper_sizes.yaml."""
    return dict(yaml.safe_load((Path(str(files("sentloom.lab"))) / "paper_sizes.yaml").read_text("utf-8")))


@cache
def architecture(name: str) -> PreTrainedModel:
    """The checkpoint's network without weights: by its configuration if it is here, else by the table."""
    if is_model(name):
        config: Any = AutoConfig.from_pretrained(name, local_files_only=True, trust_remote_code=False)
    else:
        known = paper_sizes()["models"].get(name.partition("@")[0], {"model_type": "bert"})
        config = AutoConfig.for_model(**known)
    with torch.device("meta"):
        return AutoModel.from_config(config, attn_implementation="eager")  # the others look into their masks


@cache
def parameters(name: str, kind: str = "") -> int:
    """The number of weights; of the encoder alone for the kind encoder."""
    network: Any = architecture(name)
    if kind == "encoder" and network.config.is_encoder_decoder:
        network = network.get_encoder()
    return sum(weight.numel() for weight in network.parameters())


@cache
def text_flops(name: str, kind: str, tokens: int) -> tuple[float, float]:
    """FLOPs of one text: of a forward pass, and of a forward and a backward pass.

    `kind` is encoder, decoder-first (one decoder state) or seq2seq (as many tokens are written as are read).
    """
    network = architecture(name)
    ids = torch.zeros(1, max(1, tokens), dtype=torch.long, device="meta")
    with FlopCounterMode(display=False) as forward:
        if not network.config.is_encoder_decoder:
            states = network(input_ids=ids).last_hidden_state
        elif kind == "encoder":
            states = network.get_encoder()(input_ids=ids).last_hidden_state
        else:
            start = ids[:, :1] if kind == DECODER_FIRST else ids
            states = network(input_ids=ids, decoder_input_ids=start).last_hidden_state
    with FlopCounterMode(display=False) as backward:
        states.sum().backward()
    network.zero_grad(set_to_none=True)
    return float(forward.get_total_flops()), float(forward.get_total_flops() + backward.get_total_flops())
