"""Sentence encoders: backbone, packing, pooling, heads, prompts, loading and saving."""

from sentloom.encoder.encoder import Encoder
from sentloom.encoder.pooling import Pooling
from sentloom.encoder.prompts import Prompt

__all__ = ["Encoder", "Pooling", "Prompt"]
