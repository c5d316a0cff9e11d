"""From a recipe to models: stages are run one after another, and what is done is kept and not done again."""

from sentloom.stages.planning import Forecast, forecast
from sentloom.stages.results import Row, file_names, place_models, refuse_foreign, summarise, write_results
from sentloom.stages.running import Result, prepare, start_accelerator

__all__ = [
    "Forecast",
    "Result",
    "Row",
    "file_names",
    "forecast",
    "place_models",
    "prepare",
    "refuse_foreign",
    "start_accelerator",
    "summarise",
    "write_results",
]
