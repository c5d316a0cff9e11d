"""Models by name."""

import pytest

from sentloom.evaluation import models


def test_no_package_is_asked_about_encoders_that_are_here(tmp_path, monkeypatch):
    def parsers():
        raise AssertionError("a package was asked")

    monkeypatch.setattr(models, "_parsers", parsers)
    assert models.named_model("embedded") is None
    (tmp_path / "config.json").touch()
    assert models.named_model(str(tmp_path)) is None
    with pytest.raises(AssertionError):
        models.named_model("tf-idf")
