"""The stages, by the name that a recipe gives as `method`. To add one: write its file, and add one line here.

Installed packages offer stages through the entry point group `sentloom.stages`, which names mappings of them.
"""

from collections.abc import Mapping

from sentloom.methods import METHODS
from sentloom.pipeline.stages.merge import Merge
from sentloom.pipeline.stages.mine import Mine
from sentloom.pipeline.stages.retrieve import Retrieve
from sentloom.pipeline.stages.shrink import Shrink
from sentloom.pipeline.stages.stage import BASE, PREVIOUS, Context, DataStage, Forecast, Inputs, Stage
from sentloom.pipeline.stages.synthesize import Synthesize
from sentloom.pipeline.stages.train import Train
from sentloom.pipeline.stages.translate import Translate
from sentloom.pipeline.stages.views import Views
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
