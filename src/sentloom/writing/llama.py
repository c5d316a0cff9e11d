"""The writer `qwen-1.5b`: llama.cpp runs its GGUF file in this process, behind an endpoint that only this machine sees.

The rest is what every endpoint gets: a ledger of answers, resuming, tidying and judging. What prompts begin with (the
instruction and its examples) is read once, because the server keeps the state that it leads to.
"""

from functools import cache
from importlib.util import find_spec
from typing import Any

import torch

from sentloom.encoder.catalogue.listed import QWEN
from sentloom.encoder.catalogue.places import checked_folder
from sentloom.errors import MissingPart
from sentloom.writing.endpoint import EndpointOptions

CONTEXT = 8_192  # tokens: prompt, text and what is written
LONGEST = 8_000  # characters of a text that it reads
PATIENCE = 900.0  # seconds for an answer on a busy machine


def is_llama(name: object) -> bool:
    """Whether llama.cpp runs this writer."""
    return name == QWEN.name


def refuse_no_llama() -> None:
    """The writer needs its file and the package that runs it."""
    checked_folder(QWEN)
    if find_spec("xllamacpp") is None:
        raise MissingPart(
            QWEN.what, "the package xllamacpp, which runs it, is not installed", "", "pip install xllamacpp"
        )


def llama_endpoint() -> EndpointOptions:
    """The endpoint of the writer, whose server starts when it is first asked for."""
    return EndpointOptions(
        _served().listening_address + "/v1", QWEN.name, requests=1, timeout=PATIENCE, own=QWEN.sha256, longest=LONGEST
    )


@cache
def _served() -> Any:
    """The server, which lives as long as this process."""
    refuse_no_llama()
    import xllamacpp

    (name,) = QWEN.files
    asked = xllamacpp.CommonParams()
    asked.model.path, asked.n_ctx, asked.n_parallel, asked.verbosity = str(checked_folder(QWEN) / name), CONTEXT, 1, 0
    asked.cpuparams.n_threads = asked.cpuparams_batch.n_threads = torch.get_num_threads()
    return xllamacpp.Server(asked)
