"""Save an Encoder as a model folder.

The folder is in sentence-transformers' format: plain `SentenceTransformer(folder)` loads it, without flags and without
sentloom, if native modules can express the encoder. A suffix prompt goes into the tokenizer's post-processor, layers
into WeightedLayerPooling, and the mask token of a template gets the only weight of WordWeights. Decoder-first pooling
and suffixes that differ by role have no native form: such a folder names a module of ours, so that
sentence-transformers refuses it instead of computing different vectors.
"""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from sentloom.encoder.golden import write_golden
from sentloom.encoder.heads import DENSE_ACTIVATIONS, Projection
from sentloom.encoder.loading import quiet
from sentloom.encoder.model_files import read_json
from sentloom.encoder.pooling import DECODER_FIRST, MASK_TOKEN
from sentloom.encoder.settings import LEGACY_MODES, NEEDS_US, OURS, POOLING_MODES
from sentloom.encoder.system import KEY, System
from sentloom.encoder.tokens import ROLES, Prompts, Tokens, prompt_for, shared_suffix
from sentloom.errors import ModelError
from sentloom.files import new_folder

if TYPE_CHECKING:
    from sentloom.encoder.encoder import Encoder

NATIVE = "sentence_transformers.models."


@dataclass(frozen=True)
class Module:
    """One entry of modules.json: its class and the content of its folder."""

    kind: str
    config: dict[str, Any] = field(default_factory=dict)
    weights: dict[str, Tensor] = field(default_factory=dict)


def save(encoder: "Encoder", target: Path, golden: bool = True) -> None:
    """Write the folder under a temporary name, then move it into place; `golden` vectors are to compare with later."""
    refuse_filled(target)
    with new_folder(target) as folder:
        write_model(encoder, folder)
        if golden:
            write_golden(encoder, folder)


def write_model(encoder: "Encoder", folder: Path) -> None:
    """Write all files of an encoder into a new folder."""
    with quiet():
        encoder.backbone.model.save_pretrained(folder)
        if encoder.pooling.layers != (-1,):
            patch_json(folder / "config.json", output_hidden_states=True)
        write_settings(encoder, folder)


def refuse_filled(target: Path) -> None:
    """Only a model is ever replaced."""
    if (
        target.exists()
        and not (target / "config.json").is_file()
        and not (target.is_dir() and not any(target.iterdir()))
    ):
        problem = "it is a file" if target.is_file() else "the folder contains something other than a model"
        expected = "a new name, an empty folder or a model folder"
        raise ModelError(str(target), problem, expected, "save under another name")


def write_settings(encoder: "Encoder", folder: Path) -> None:
    """Write all but the transformer: tokenizer, modules, prompts and limits."""
    encoder.tokens.tokenizer.save_pretrained(folder)
    _drop_other_length(folder / "tokenizer_config.json")
    if suffix := shared_suffix(encoder.prompts):
        _put_suffix_in_tokenizer(encoder.tokens, suffix, folder)
    _write_modules(_chain(encoder), folder)
    limits = {"max_seq_length": encoder.tokens.max_length, "do_lower_case": encoder.tokens.lower_case}
    write_json(folder / "sentence_bert_config.json", limits)
    write_json(folder / "config_sentence_transformers.json", _prefixes(encoder.prompts))
    ours = {"pooling": str(encoder.pooling), "prompts": {role: asdict(p) for role, p in encoder.prompts.items()}}
    write_json(folder / OURS, ours | ({KEY: recorded} if (recorded := encoder.system.recorded()) else {}))


def write_system(system: System, folder: Path) -> None:
    """Write what a search runs besides vectors, in place of what was there."""
    path = folder / OURS
    others = {key: value for key, value in read_json(path).items() if key != KEY} if path.is_file() else {}
    write_json(path, others | ({KEY: recorded} if (recorded := system.recorded()) else {}))


def is_native(encoder: "Encoder") -> bool:
    """Whether sentence-transformers can load what `save` writes."""
    return encoder.pooling.how != DECODER_FIRST and shared_suffix(encoder.prompts) is not None


def _chain(encoder: "Encoder") -> list[Module]:
    """List the modules in order, the transformer first."""
    chain = [Module(NATIVE + "Transformer" if is_native(encoder) else f"sentloom.{NEEDS_US}")]
    width, num_layers = encoder.backbone.width, encoder.backbone.num_layers
    if encoder.pooling.layers != (-1,):
        weights = torch.zeros(num_layers + 1)
        for layer in encoder.pooling.layers:
            weights[layer] += 1
        config = {"word_embedding_dimension": width, "layer_start": 0, "num_hidden_layers": num_layers}
        chain.append(Module(NATIVE + "WeightedLayerPooling", config, {"layer_weights": weights}))
    if encoder.pooling.how == MASK_TOKEN:
        chain.append(_only_mask(encoder.tokens))
    if encoder.pooling.how != DECODER_FIRST:
        how = "mean" if encoder.pooling.how == MASK_TOKEN else encoder.pooling.how
        modes = {LEGACY_MODES[theirs]: ours == how for theirs, ours in POOLING_MODES.items()}
        chain.append(Module(NATIVE + "Pooling", {"word_embedding_dimension": width, **modes}))
    chain.extend(_dense(head) for head in encoder.heads if isinstance(head, Projection))
    return [*chain, Module(NATIVE + "Normalize")] if encoder.unit_length else chain


def _only_mask(tokens: Tokens) -> Module:
    """Weights of tokens in a mean: 1 for the mask token, 0 for all others."""
    names = tokens.tokenizer.convert_ids_to_tokens(range(len(tokens.tokenizer)))
    weights = torch.zeros(len(names), 1)
    weights[tokens.mask] = 1
    config = {"vocab": names, "word_weights": {names[tokens.mask]: 1.0}, "unknown_word_weight": 0.0}
    return Module(NATIVE + "WordWeights", config, {"emb_layer.weight": weights})


def _dense(head: Projection) -> Module:
    names = {ours: theirs for theirs, ours in DENSE_ACTIVATIONS.items()}
    config = {
        "in_features": head.linear.in_features,
        "out_features": head.linear.out_features,
        "bias": head.linear.bias is not None,
        "activation_function": names[head.activation_name],
    }
    return Module(NATIVE + "Dense", config, {key: value.contiguous() for key, value in head.state_dict().items()})


def _write_modules(chain: list[Module], folder: Path) -> None:
    """Write modules.json and a folder for each module except the transformer, whose files are in the root."""
    listed = []
    for place, module in enumerate(chain):
        path = f"{place}_{module.kind.rpartition('.')[2]}" if place else ""
        listed.append({"idx": place, "name": str(place), "path": path, "type": module.kind})
        if path:
            (folder / path).mkdir()
            write_json(folder / path / "config.json", module.config)
        if module.weights:
            save_file(module.weights, folder / path / "model.safetensors")
    write_json(folder / "modules.json", listed)


def _prefixes(prompts: Prompts) -> dict[str, Any]:
    """Express prefixes as sentence-transformers' prompts; encode_query and encode_document find theirs by name."""
    named = {role: prompt_for(prompts, role).prefix for role in ROLES}
    aliases = {"passage": named["document"]}  # as many models call it
    return {
        "prompts": named | aliases if any(named.values()) else {},
        "default_prompt_name": "symmetric" if named["symmetric"] else None,
        "similarity_fn_name": "cosine",
    }


def _drop_other_length(path: Path) -> None:
    """Drop the length that some bases were trained at, which peers such as fastembed would cut texts at."""
    write_json(path, {key: value for key, value in read_json(path).items() if key != "max_length"})


def _put_suffix_in_tokenizer(tokens: Tokens, suffix: str, folder: Path) -> None:
    """Add a suffix to the post-processor. `TokenizersBackend`, because BERT's, T5's and other classes rebuild it."""
    patch_json(folder / "tokenizer.json", post_processor=json.loads(tokens.frame(suffix).__getstate__()))
    patch_json(folder / "tokenizer_config.json", tokenizer_class="TokenizersBackend")


def write_json(path: Path, content: object) -> None:
    """Write plain values."""
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False), encoding="utf-8")


def patch_json(path: Path, **changes: object) -> None:
    """Change some keys of a JSON object."""
    write_json(path, {**read_json(path), **changes})
