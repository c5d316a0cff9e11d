"""One loop for all methods: gradients by chunks, optimisers, checkpoints, health."""

from sentloom.methods.settings import Settings
from sentloom.training.loop import Outcome, OutOfTime, Selection, Trunk, train

__all__ = ["OutOfTime", "Outcome", "Selection", "Settings", "Trunk", "train"]
