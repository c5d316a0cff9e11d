"""What all trainings of a language model share: the result is the model itself."""

from pathlib import Path
from typing import Any

from sentloom.encoder.lora import without_adapters
from sentloom.methods import TokenMethod
from sentloom.writing.language_model import LanguageModel


class TextLearner(TokenMethod):
    """Owns a language model, and trains all of it or its adapters."""

    def __init__(self, model: LanguageModel, options: Any) -> None:
        super().__init__()
        self.model, self.options = model, options  # of the method's own type

    @property
    def scored(self) -> LanguageModel:
        """The model."""
        return self.model

    def finished(self) -> LanguageModel:
        """The model, with adapters added to its weights."""
        return without_adapters(self.model)

    def save(self, folder: Path) -> None:
        """Write the model."""
        self.finished().save(folder)
