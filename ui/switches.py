"""The choices of architecture that a reader can switch, on any preset, and how an address writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from engine import ModelConfig
from engine.config import ACTIVATIONS, NORMS, PAIRINGS, PLACEMENTS, POSITIONS

Value = str | int | float | bool | None
Switches = tuple[tuple[str, Value], ...]

_ON_OFF: tuple[Value, ...] = (True, False)
# configuration field → what it may be, in the order in which the switchboard shows them
FIELDS: Mapping[str, tuple[Value, ...]] = MappingProxyType({
    "positions": POSITIONS, "rope_pairing": PAIRINGS, "rope_direction": (1, -1),
    "norm": NORMS, "norm_placement": PLACEMENTS, "qk_norm": _ON_OFF,
    "scale_scores": _ON_OFF, "causal": _ON_OFF, "residual": _ON_OFF,
    "activation": ACTIVATIONS, "bias": _ON_OFF, "tied_head": _ON_OFF,
    "logit_soft_cap": (None, 1.0, 15.0, 30.0),
})
_COMMON: Mapping[str, Value] = MappingProxyType({
    "norm_placement": "pre", "scale_scores": True, "causal": True, "residual": True,
})
# Model → what it chooses, as far as the switches reach; of a field that is not here it has no use. The
# MLP of Llama has a gate and SiLU, which is out of reach: GELU is the curve most like it.
# Sources: openai/gpt-2 src/model.py; meta-llama/llama llama/model.py; karpathy/nanochat nanochat/gpt.py.
COMBINATIONS: Mapping[str, Mapping[str, Value]] = MappingProxyType({
    "gpt2": MappingProxyType({
        **_COMMON, "positions": "learned", "norm": "layernorm", "qk_norm": False, "activation": "gelu_tanh",
        "bias": True, "tied_head": True, "logit_soft_cap": None,
    }),
    "llama": MappingProxyType({
        **_COMMON, "positions": "rope", "rope_pairing": "interleaved", "rope_direction": 1, "norm": "rmsnorm",
        "qk_norm": False, "activation": "gelu_tanh", "bias": False, "tied_head": False, "logit_soft_cap": None,
    }),
    "nanochat": MappingProxyType({
        **_COMMON, "positions": "rope", "rope_pairing": "half", "rope_direction": -1, "norm": "rmsnorm",
        "qk_norm": True, "activation": "relu_squared", "bias": False, "tied_head": False, "logit_soft_cap": 15.0,
    }),
})


def combination(name: str, own: ModelConfig) -> dict[str, Value]:
    """Every switch as a named model has it; where that has no use for one, as the preset has it."""
    return {field: COMBINATIONS[name].get(field, getattr(own, field)) for field in FIELDS}


def matches(name: str, config: ModelConfig) -> bool:
    """Whether a model makes all the choices of a named one."""
    return all(getattr(config, field) == value for field, value in COMBINATIONS[name].items())


def has_effect(field: str, config: ModelConfig) -> bool:
    """Whether a switch can change anything in a model with these choices."""
    if field in ("rope_pairing", "rope_direction"):
        return config.positions == "rope"
    return field != "norm_placement" or config.norm != "none"


def settled(switches: Sequence[tuple[str, Value]], own: ModelConfig) -> Switches:
    """The switches that differ from the preset's own configuration, in the order of `FIELDS`."""
    chosen = dict(switches)
    return tuple(
        (field, chosen[field]) for field in FIELDS if field in chosen and chosen[field] != getattr(own, field)
    )


def word(value: Value) -> str:
    """A value as an address and a catalogue key write it: `layernorm`, `on`, `none`, `15`, `minus1`."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, int | float):
        return f"minus{-value:g}" if value < 0 else f"{value:g}"
    return value or "none"


def format_switches(switches: Switches) -> str:
    """`norm-layernorm.bias-on`."""
    return ".".join(f"{field}-{word(value)}" for field, value in switches)


def parse_switches(text: str) -> Switches:
    """The switches of an address. Raises `ValueError` for a field or a value that there is not."""
    pairs = [part.partition("-") for part in text.split(".") if part]
    return tuple((field, read_word(field, chosen)) for field, _, chosen in pairs)


def read_word(field: str, chosen: str) -> Value:
    """The value of a field that `word` writes like this. Raises `ValueError` where there is none."""
    for value in FIELDS.get(field, ()):
        if word(value) == chosen:
            return value
    raise ValueError(f"{field} cannot be {chosen}")
