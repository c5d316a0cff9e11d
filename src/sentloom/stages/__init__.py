"""From a recipe to models: stages are run one after another, and what is done is kept and not done again."""

from sentloom.stages.planning import Forecast, forecast
from sentloom.stages.results import Row, place_models, summarise, write_results
from sentloom.stages.running import Result, run, start_accelerator

__all__ = [
    "Forecast",
    "Result",
    "Row",
    "forecast",
    "place_models",
    "run",
    "start_accelerator",
    "summarise",
    "write_results",
]
