"""The small BERT, under the name that tests of exports call it."""

import pytest


@pytest.fixture(scope="session")
def bert(model_folders):
    return model_folders["bert"]
