"""Write an encoder's transformer as an ONNX file: token ids and a mask go in, the states that are pooled come out.

The layers of a pooling are averaged inside. Decoder-first runs the decoder inside and repeats its state at every token,
as the state of a template's mask token is. So every folder needs only an ordinary pooling, which all tools that read
ONNX folders have. The weights can then be replaced by 8-bit ones.
"""

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from sentloom.encoder.formats.onnx_probe import trust_own
from sentloom.encoder.loading import quiet
from sentloom.encoder.pooling import DECODER_FIRST, MASK_TOKEN
from sentloom.errors import MissingPart, ModelError, first_line

if TYPE_CHECKING:
    from sentloom.encoder import Encoder

OPSET = 18
INPUTS, OUTPUT = ("input_ids", "attention_mask"), "last_hidden_state"
AXES = {0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC}  # texts and tokens
NOISY = "torch.onnx._internal.exporter._registration"  # warns that torchvision is missing, which nothing here needs
LARGEST = 2_000_000_000  # bytes of weights: a protobuf file has a limit of 2 GB
BLOCK = 32  # weights with one scale
AS_INT8 = 4  # onnxruntime's accuracy level at which products are of 8-bit integers


def write_onnx(encoder: "Encoder", path: Path) -> None:
    """Write the file; a model that torch cannot express as ONNX is refused."""
    _refuse_large(encoder)
    try:
        import onnx  # noqa: F401
        import onnxscript  # noqa: F401
    except ImportError:
        problem = "the packages onnx and onnxscript are not installed"
        raise MissingPart("export to onnx", problem, "", "pip install 'sentloom[onnx]'") from None
    graph = PooledStates(encoder)
    ids = torch.tensor([[5, 6, 7, 8, 9], [5, 6, 7, encoder.backbone.padding, encoder.backbone.padding]])
    ids = ids.clamp(max=graph.model.config.vocab_size - 1)
    mask = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])
    try:
        with quiet(NOISY), warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            torch.onnx.export(
                graph,
                (ids, mask),
                path,
                input_names=list(INPUTS),
                output_names=[OUTPUT],
                dynamic_shapes=dict.fromkeys(INPUTS, AXES),
                opset_version=OPSET,
                external_data=False,
                dynamo=True,
                verbose=False,
            )
    except Exception as error:  # of many types: torch has one for every step of the conversion
        problem = f"torch cannot express this {graph.model.config.model_type} model as ONNX ({first_line(error)[:200]})"
        raise ModelError("export to onnx", problem, "a model such as BERT, MPNet or T5", "use another target") from None
    trust_own(path.read_bytes())


def _refuse_large(encoder: "Encoder") -> None:
    size = sum(weight.numel() * 4 for weight in encoder.backbone.parameters())
    if size > LARGEST:
        problem = f"the weights have {size / 1e9:.1f} GB"
        raise ModelError("export to onnx", problem, "at most 2 GB, the limit of an ONNX file", "use ctranslate2")


class PooledStates(nn.Module):
    """An encoder's transformer with ordinary padded attention."""

    def __init__(self, encoder: "Encoder") -> None:
        super().__init__()
        backbone = encoder.backbone
        self.model: Any = deepcopy(backbone.model).cpu().float().eval()
        self.model.set_attn_implementation("eager")  # onnxruntime knows its pattern
        self.model.config.use_cache = False
        self.layers, self.decoder_first = encoder.pooling.layers, encoder.pooling.how == DECODER_FIRST
        self.mask = encoder.tokens.mask if encoder.pooling.how == MASK_TOKEN else None
        self.decoder_start = 0 if not self.decoder_first else backbone.decoder_start

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """(n, L) -> (n, L, d)."""
        inputs = {"input_ids": input_ids, "attention_mask": attention_mask}
        if self.decoder_first:
            return self._decoded(**inputs).expand(-1, input_ids.shape[1], -1)
        model = self.model.get_encoder() if self.model.config.is_encoder_decoder else self.model
        if self.layers == (-1,):
            last: Tensor = model(**inputs).last_hidden_state
            return last if self.mask is None else _at(last, input_ids == self.mask)
        states = model(**inputs, output_hidden_states=True).hidden_states
        return torch.stack([states[layer] for layer in self.layers]).mean(dim=0)

    def _decoded(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """The decoder's state (n, 1, d) for its start token."""
        states = self.model.get_encoder()(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        start = torch.full_like(input_ids[:, :1], self.decoder_start)
        decoded: Tensor = self.model.get_decoder()(
            input_ids=start, encoder_hidden_states=states, encoder_attention_mask=attention_mask, use_cache=False
        ).last_hidden_state
        return decoded


def _at(states: Tensor, chosen: Tensor) -> Tensor:
    """The mean of the chosen states of each text, (n, L, d) and (n, L) -> (n, L, d), repeated at every token."""
    weights = chosen[:, :, None].to(states.dtype)
    mean = (states * weights).sum(dim=1, keepdim=True) / weights.sum(dim=1, keepdim=True).clamp(min=1)
    return mean.expand_as(states)


def write_int8(path: Path) -> None:
    """Replace a float32 file by one with 8-bit weights."""
    try:
        import onnx

        with _own_logging():
            from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer
    except ImportError:
        problem = "the packages onnx and onnxruntime are not installed"
        raise MissingPart("export to onnx-int8", problem, "", "pip install 'sentloom[onnx]'") from None
    quantizer: Any = MatMulNBitsQuantizer(
        onnx.load(path), bits=8, block_size=BLOCK, is_symmetric=True, accuracy_level=AS_INT8
    )
    quantizer.process()
    onnx.save(quantizer.model.model, path)
    trust_own(path.read_bytes())


@contextmanager
def _own_logging() -> Iterator[None]:
    """Undo what importing onnxruntime's module does to the root logger."""
    root = logging.getLogger()
    level, handlers = root.level, list(root.handlers)
    try:
        yield
    finally:
        root.setLevel(level)
        root.handlers[:] = handlers
