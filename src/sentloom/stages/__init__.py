"""From a recipe to models: stages are run one after another, and what is done is kept and not done again."""

from sentloom.stages.needs import Need, needs
from sentloom.stages.planning import Forecast, forecast
from sentloom.stages.results import Row, file_names, refuse_foreign, run_plans, summarise
from sentloom.stages.running import Result, prepare, start_accelerator

__all__ = [
    "Forecast",
    "Need",
    "Result",
    "Row",
    "file_names",
    "forecast",
    "needs",
    "prepare",
    "refuse_foreign",
    "run_plans",
    "start_accelerator",
    "summarise",
]
