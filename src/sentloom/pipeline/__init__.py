"""From a recipe to models: stages are run one after another, and what is done is cached and not done again."""

from sentloom.pipeline.forecast import forecast
from sentloom.pipeline.needs import needs
from sentloom.pipeline.results import file_names, refuse_foreign, run_plans
from sentloom.pipeline.runner import start_accelerator

__all__ = ["file_names", "forecast", "needs", "refuse_foreign", "run_plans", "start_accelerator"]
