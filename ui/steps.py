"""The tables of an optimizer's step: one row of a parameter from the gradient to its new value, a line a stage."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from engine.optimizers import ADAMW, MOMENTUM, SGD
from ui.layout import Grid, Rows, Slider, grid

# setting → ends and step of its slider, and whether it is logarithmic
_SLIDERS: Mapping[str, tuple[float, float, float, bool]] = MappingProxyType({
    "learning_rate": (0.0001, 1, 0.0001, True), "momentum": (0, 1, 0.05, False), "beta1": (0, 0.99, 0.01, False),
    "beta2": (0, 0.999, 0.001, False), "weight_decay": (0, 1, 0.01, False), "clip": (0.01, 100, 0.01, True),
})
# kind → the label of a line, which is a formula or a key, and the end of its tensor's name
_LINES: Mapping[str, tuple[tuple[str, str], ...]] = MappingProxyType({
    SGD: (("η g", "change"), ("p − η g", "updated")),
    MOMENTUM: (
        ("row_step_velocity_before", "velocity_before"), ("b = μ b + g", "velocity"), ("η b", "change"),
        ("p − η b", "updated"),
    ),
    ADAMW: (
        ("row_step_m_before", "m_before"), ("m = β₁ m + (1 − β₁) g", "m"), ("row_step_v_before", "v_before"),
        ("g²", "squared"), ("v = β₂ v + (1 − β₂) g²", "v"), ("m̂ = m ÷ (1 − β₁ᵗ)", "m_hat"),
        ("v̂ = v ÷ (1 − β₂ᵗ)", "v_hat"), ("√v̂ + ε", "size"), ("m̂ ÷ (√v̂ + ε)", "ratio"),
        ("η m̂ ÷ (√v̂ + ε)", "change"), ("η λ p", "decay"), ("row_step_new_adamw", "updated"),
    ),
})


def _row(tensor: str) -> Grid:
    """The row that is followed; a vector has one only."""
    return grid(tensor, row="followed")


def table(kind: str) -> Rows:
    """One row of the parameter in question at every stage of a step."""
    lines = (
        ("row_step_parameter", _row("{parameter}")), ("row_step_gradient", _row("optimizer.{parameter}.gradient")),
        *((label, _row(f"optimizer.{kind}.{{parameter}}.{name}")) for label, name in _LINES[kind]),
    )
    return Rows(f"optimizer_{kind}", lines, axis="axis_stage_of_step")


def corrections() -> Rows:
    """The numbers of AdamW's step that are the same for all parameters."""
    columns = {"t": "step", "1 − β₁ᵗ": "correction1", "1 − β₂ᵗ": "correction2", "η λ": "decay_rate"}
    cells = (*(grid(f"optimizer.{ADAMW}.{name}") for name in columns.values()), grid("optimizer.epsilon"))
    return Rows("title_step_corrections", (("", cells),), columns=(*columns, "ε"), looks=True)


def sliders(*names: str) -> tuple[Slider, ...]:
    """Sliders for settings of the optimizer."""
    return tuple(
        Slider(grid(f"optimizer.{name}"), f"slider_{name}", low, high, step, logarithmic)
        for name, (low, high, step, logarithmic) in ((name, _SLIDERS[name]) for name in names)
    )
