"""What the tests of whole searches share."""

import pytest

from tests.fitting import small_base


@pytest.fixture(scope="session")
def base(tmp_path_factory):
    return small_base.build_base(tmp_path_factory.mktemp("base"))
