"""One loop for all methods: gradients by chunks, optimisers, checkpoints, health."""

from sentloom.methods.settings import Settings
from sentloom.training.loop import Outcome, Selection, Trunk, train

__all__ = ["Outcome", "Selection", "Settings", "Trunk", "train"]
