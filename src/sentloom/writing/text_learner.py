"""What all trainings of a text-to-text model share: the result is the model itself."""

from pathlib import Path
from typing import Any

from sentloom.methods import TokenMethod
from sentloom.writing.text_to_text import TextToText


class TextLearner(TokenMethod):
    """Owns a text-to-text model and trains all of it."""

    def __init__(self, model: TextToText, options: Any) -> None:
        super().__init__()
        self.model, self.options = model, options  # of the method's own type

    @property
    def kept(self) -> TextToText:
        """The model."""
        return self.model

    def save(self, folder: Path) -> None:
        """Write the model."""
        self.model.save(folder)
