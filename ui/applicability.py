"""Which lessons a model cannot show, and why: an empty page would leave the reader wondering."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from engine import ModelConfig
from engine.plan import LARGE_VOCABULARY
from engine.programs.wrote import splits

# lesson → whether a model has what it is about
_NEEDS: Mapping[str, Callable[[ModelConfig], bool]] = MappingProxyType({
    "rmsnorm": lambda config: config.norm == "rmsnorm",
    "rope": lambda config: config.positions == "rope",
    "residual": lambda config: config.residual,
    "final_norm": lambda config: config.norm != "none",
    "wrote": splits,
    # a step of a table of 50257 rows takes longer than anybody watches
    "training": lambda config: config.vocab_size <= LARGE_VOCABULARY,
})


def applies(lesson: str, config: ModelConfig) -> bool:
    """Whether the lesson's board can show this model; where not, `absent_LESSON` says why."""
    return lesson not in _NEEDS or _NEEDS[lesson](config)
