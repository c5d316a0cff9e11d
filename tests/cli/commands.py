"""The environment of the command in a process of its own."""

import os

ENVIRONMENT = {**os.environ, "HF_HUB_OFFLINE": "1", "COLUMNS": "500"}
