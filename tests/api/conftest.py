import pytest

from tests.fitting.small_base import build_base


@pytest.fixture(scope="package")
def base(tmp_path_factory):
    return build_base(tmp_path_factory.mktemp("base"))
