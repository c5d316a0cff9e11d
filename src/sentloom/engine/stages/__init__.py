"""The stages, by the name that a recipe gives as `method`. To add one: write its file, and add one line here.

Installed packages offer stages through the entry point group `sentloom.stages`, which names mappings of them.
"""

from collections.abc import Mapping

from sentloom.engine.stages.mine import Mine, Retrieve
from sentloom.engine.stages.reshape import Merge, Shrink
from sentloom.engine.stages.stage import BASE, PREVIOUS, Context, DataStage, Forecast, Inputs, Stage
from sentloom.engine.stages.synthesize import Synthesize
from sentloom.engine.stages.train import Train
from sentloom.engine.stages.views import Translate, Views
from sentloom.methods import METHODS
from sentloom.plugins import Registry

STAGES: Mapping[str, type[Stage]] = Registry[type[Stage]](
    "sentloom.stages",
    {
        **dict.fromkeys(METHODS, Train),
        "synthesize": Synthesize,
        "views": Views,
        "translate": Translate,
        "mine": Mine,
        "retrieve": Retrieve,
        "merge": Merge,
        "shrink": Shrink,
    },
)

__all__ = [
    "BASE",
    "PREVIOUS",
    "STAGES",
    "Context",
    "DataStage",
    "Forecast",
    "Inputs",
    "Merge",
    "Mine",
    "Retrieve",
    "Shrink",
    "Stage",
    "Synthesize",
    "Train",
    "Translate",
    "Views",
]
