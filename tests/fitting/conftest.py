"""What the tests of a whole fit share: a small base, and the command."""

import pytest

from sentloom.fitting.result import FitResult
from tests.fitting import small_base


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return small_base.build_base(tmp_path_factory.mktemp("base"))


@pytest.fixture
def run(sentloom, base, tmp_path):
    """The command, and the story that it wrote."""

    def call(*data, budget="100steps", options=()):
        output = tmp_path / "model"
        done = sentloom("fit", *data, "-o", output, "--base", base, "--budget", budget, *options)
        result = tmp_path / "model.fit" / "report.json"
        return done, FitResult.read(result) if result.is_file() else None, output

    return call
