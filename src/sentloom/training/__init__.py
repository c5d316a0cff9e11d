"""One loop for all methods: gradients by chunks, optimisers, checkpoints, health."""

from sentloom.training.loop import Outcome, Selection, train
from sentloom.training.settings import Settings

__all__ = ["Outcome", "Selection", "Settings", "train"]
