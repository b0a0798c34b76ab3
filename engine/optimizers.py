"""How a parameter follows its gradient: SGD, SGD with momentum and AdamW, each step a recorded tensor."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

import numpy as np

from engine.bounds import NOT_NEGATIVE, Bounds
from engine.plan import Scope, Value

SGD, MOMENTUM, ADAMW = KINDS = ("sgd", "momentum", "adamw")
# usual settings; a run takes others as edits of the constants
SETTINGS: Mapping[str, float] = MappingProxyType({
    "learning_rate": 0.01, "momentum": 0.9, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8, "weight_decay": 0.01,
    "clip": 1.0,
})
# a share of 1 would never let anything new in, and the correction of the moments would divide by 0
LARGEST_SHARE = 0.9999
BOUNDS: Mapping[str, Bounds] = MappingProxyType({
    "learning_rate": Bounds(0, 10), "momentum": Bounds(0, 1), "beta1": Bounds(0, LARGEST_SHARE),
    "beta2": Bounds(0, LARGEST_SHARE), "epsilon": Bounds(0, 1, above=True), "weight_decay": Bounds(0, 10),
    "clip": Bounds(0, 1e6, above=True),
})
STEPS = Bounds(1, 1e6, whole=True)
# the settings that each kind of step has
HAS: Mapping[str, tuple[str, ...]] = MappingProxyType({
    SGD: ("learning_rate",), MOMENTUM: ("learning_rate", "momentum"),
    ADAMW: ("learning_rate", "beta1", "beta2", "epsilon", "weight_decay"),
})
# what each remembers from step to step, for every parameter
REMEMBERS: Mapping[str, tuple[str, ...]] = MappingProxyType({SGD: (), MOMENTUM: ("velocity",), ADAMW: ("m", "v")})


class Optimizer:
    """One optimizer, recorded under a scope, and its step for one parameter after the other.

    Its settings are `constants` of another scope, which several optimizers may share.
    """

    def __init__(self, scope: Scope, kind: str, constants: Scope) -> None:
        self.scope = scope
        self.kind = kind
        self.settings = {name: _setting(constants, name) for name in HAS[kind]}
        if kind == ADAMW:
            self._prepare_adamw()

    def _prepare_adamw(self) -> None:
        """What the step takes from the settings alone, the same for all parameters."""
        apply, record = self.scope.builder.apply, self.scope.record
        beta1, beta2 = self.settings["beta1"], self.settings["beta2"]
        self.decay_rate = record("decay_rate", self.settings["learning_rate"] * self.settings["weight_decay"])
        step = self.scope.builder.leaf("step", f"{self.scope.prefix}step", (), (), attributes={"bounds": STEPS})
        self.share1 = record("share1", apply("complement", beta1))
        self.share2 = record("share2", apply("complement", beta2))
        self.correction1 = record("correction1", apply("complement", apply("power", beta1, step)))
        self.correction2 = record("correction2", apply("complement", apply("power", beta2, step)))

    def step(self, parameter: Value, gradient: Value) -> Value:
        """The parameter after one step, recorded as `NAME.updated` with all that led to it.

        SGD: p − η·g. Momentum: b = μ·b + g, p − η·b. AdamW: m = β₁·m + (1 − β₁)·g,
        v = β₂·v + (1 − β₂)·g², p − η·λ·p − η · m̂ / (√v̂ + ε) with m̂ = m / (1 − β₁ᵗ), v̂ = v / (1 − β₂ᵗ).
        Sources: Sutskever et al. 2013; Kingma & Ba 2015; Loshchilov & Hutter 2019.
        """
        inside = self.scope.at(str(parameter.node.name))
        if self.kind == ADAMW:
            return self._adamw(inside, parameter, gradient)
        direction = gradient
        if self.kind == MOMENTUM:
            before = _remembered(inside, "velocity", parameter)
            direction = inside.record("velocity", before * self.settings["momentum"] + gradient)
        change = inside.record("change", direction * self.settings["learning_rate"])
        return inside.record("updated", parameter - change)

    def _adamw(self, inside: Scope, parameter: Value, gradient: Value) -> Value:
        apply = inside.builder.apply
        before = _remembered(inside, "m", parameter)
        m = inside.record("m", before * self.settings["beta1"] + gradient * self.share1)
        squared = inside.record("squared", apply("square", gradient, bounds=NOT_NEGATIVE))
        before_v = _remembered(inside, "v", parameter, NOT_NEGATIVE)
        new_v = before_v * self.settings["beta2"], squared * self.share2
        v = inside.record("v", apply("add", *new_v, bounds=NOT_NEGATIVE))
        m_hat = inside.record("m_hat", m / self.correction1)
        v_hat = inside.record("v_hat", apply("divide", v, self.correction2, bounds=NOT_NEGATIVE))
        size = inside.record("size", apply("square_root", v_hat) + self.settings["epsilon"])
        ratio = inside.record("ratio", m_hat / size)
        change = inside.record("change", ratio * self.settings["learning_rate"])
        decay = inside.record("decay", parameter * self.decay_rate)
        return inside.record("updated", (parameter - decay) - change)


def _setting(scope: Scope, name: str) -> Value:
    """A constant of that name; where another optimizer has it already, the same one."""
    full = f"{scope.prefix}{name}"
    if full in scope.builder.names:
        return scope.find(full)
    return scope.constant(name, (), np.array(SETTINGS[name]), BOUNDS[name])


def _remembered(inside: Scope, name: str, parameter: Value, bounds: Bounds | None = None) -> Value:
    """What the last step left behind; zeros before the first, which take no memory."""
    attributes = {} if bounds is None else {"bounds": bounds}
    full = f"{inside.prefix}{name}_before"
    return inside.builder.filled("moment", full, parameter.axes, parameter.shape, 0.0, attributes)


def clipped(scope: Scope, gradients: Mapping[str, Value], names: Iterable[str]) -> dict[str, Value]:
    """gradient · min(1, limit / (‖all gradients‖ + 10⁻⁶)) for parameters of these names, as `NAME.gradient`.

    The length is that of all gradients as one vector; `gradient_length` and `clip_factor` are recorded.
    Source: Pascanu, Mikolov & Bengio 2013.
    """
    apply = scope.builder.apply
    squares = [_square_sum(scope.at(name), gradient) for name, gradient in gradients.items()]
    length = scope.record("gradient_length", apply("square_root", apply("total", *squares)))
    factor = scope.record("clip_factor", apply("clip_share", _setting(scope, "clip"), length))
    return {name: scope.at(name).record("gradient", gradients[name] * factor) for name in names}


def _square_sum(inside: Scope, gradient: Value) -> Value:
    """Σ g², recorded as `NAME.square_sum` with the squares."""
    apply = inside.builder.apply
    squares = inside.record("squares", apply("square", gradient))
    return inside.record("square_sum", apply("collapse", squares, kept=()))
