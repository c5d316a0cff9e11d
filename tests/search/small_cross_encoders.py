"""Small random cross-encoders of several families."""

from pathlib import Path

import torch
from transformers import AutoConfig, AutoModelForSequenceClassification

from tests.encoder.small_models import build_model_folder


def build_cross_encoder(folder: Path, family: str = "bert", outputs: int = 1, seed: int = 0) -> Path:
    """Write a classification model whose scores differ from pair to pair."""
    build_model_folder(family, folder)
    torch.manual_seed(seed)
    config = AutoConfig.from_pretrained(folder, num_labels=outputs)
    model = AutoModelForSequenceClassification.from_config(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.4 * torch.randn(parameter.shape))
    model.save_pretrained(folder)
    return folder
