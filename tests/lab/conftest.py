"""What tests of recipes share with those of the engine, and hub data sets."""

from tests.api.conftest import base  # noqa: F401
from tests.cli.conftest import embedded_encoder, faq, twins  # noqa: F401
from tests.encoder.conftest import model_folders  # noqa: F401
from tests.engine.conftest import bert, kitchen, quiet_room, work  # noqa: F401
from tests.evaluation.conftest import hub  # noqa: F401
from tests.writing.conftest import asked, calm_folder, model, pairs, writer, writer_folder  # noqa: F401
