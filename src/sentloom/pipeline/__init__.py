"""From a recipe to models: stages are run one after another, and what is done is cached and not done again."""

from sentloom.pipeline.forecast import Forecast, forecast
from sentloom.pipeline.needs import Need, needs
from sentloom.pipeline.results import Row, file_names, refuse_foreign, run_plans, summarise
from sentloom.pipeline.runner import PlanResult, prepare, start_accelerator

__all__ = [
    "Forecast",
    "Need",
    "PlanResult",
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
