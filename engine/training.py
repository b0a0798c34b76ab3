"""A training run: the same traced step again and again, each one from the parameters that the last one left."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType

import numpy as np

from engine.backward import gradients
from engine.config import ModelConfig
from engine.edits import Edit
from engine.errors import ConfigError
from engine.loss import cross_entropy
from engine.model import Model
from engine.optimizers import ADAMW, HAS, KINDS, REMEMBERS, SETTINGS, Optimizer, clipped
from engine.plan import Scope, Value
from engine.trace import Inputs, Moments, Program, Trace, run
from engine.types import Array
from engine.variants import neutral

SCOPE = "optimizer"
# of the weights that a run starts from when it does not start from a model's own
RANDOM_SPREAD = 0.1


@dataclass(frozen=True)
class Setting:
    """An optimizer and its numbers; what `settings` leaves out has the value of `optimizers.SETTINGS`.

    `clips` says whether the gradients' joint length is limited. Raises `ConfigError` for a kind or a
    number that there is not.
    """

    kind: str = ADAMW
    settings: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}), hash=False)
    clips: bool = False

    def __post_init__(self) -> None:
        unknown = sorted(self.settings.keys() - SETTINGS.keys())
        if self.kind not in KINDS or unknown:
            raise ConfigError("choice", f"no optimizer {self.kind!r} with {unknown}",
                              field="optimizer", value=self.kind, allowed=KINDS)
        object.__setattr__(self, "settings", MappingProxyType(dict(self.settings)))

    @property
    def program(self) -> Program:
        """Loss, gradients and the optimizer's step for every parameter."""
        return _PROGRAMS[self.kind, self.clips]

    @property
    def edits(self) -> tuple[Edit, ...]:
        """The settings as edits of the constants that this optimizer has."""
        known = (*HAS[self.kind], *(("clip",) if self.clips else ()))
        return tuple(Edit(f"{SCOPE}.{name}", (), self.settings[name]) for name in known if name in self.settings)


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A model after so many steps, with what its optimizer remembers; nothing of it ever changes."""

    model: Model
    moments: Moments

    @property
    def step(self) -> int:
        """How many steps it has had."""
        return self.moments.step


def start(model: Model) -> Checkpoint:
    """The run before its first step."""
    return Checkpoint(model, Moments(0, MappingProxyType({})))


def random_model(model: Model, seed: int) -> Model:
    """A model of the same shape that knows nothing: normal weights of spread 0.1, norm weights 1, biases 0."""
    generator = np.random.default_rng(seed)
    parameters: dict[str, Array] = {}
    for name, shape in model.config.parameter_shapes().items():
        noise = RANDOM_SPREAD * generator.standard_normal(shape)
        # norm weights and biases are the vectors
        parameters[name] = neutral(name, shape) if len(shape) == 1 else noise
    return Model(model.config, parameters, model.tokenizer)


def step(checkpoint: Checkpoint, inputs: Inputs, targets: Inputs, setting: Setting, seed: int | None = None,
         edits: Sequence[Edit] = ()) -> Trace:
    """The trace of one step: forward, `loss`, `gradient.NAME` and `optimizer.KIND.NAME.updated` of every parameter.

    With a `seed`, dropout acts, drawn anew at each step; `edits` hold in this step as in any run.
    Raises `InputError` and `EditError` as `run` does.
    """
    training = seed is not None
    # each step of each seed has draws of its own
    drawn = 0 if seed is None else int(np.random.SeedSequence([seed, checkpoint.step]).generate_state(1)[0])
    moments = checkpoint.moments if checkpoint.step or checkpoint.moments.arrays else None
    return run(checkpoint.model, inputs, targets=targets, program=setting.program, edits=(*setting.edits, *edits),
               training=training, seed=drawn, moments=moments)


def after(trace: Trace, kind: str) -> Checkpoint:
    """The checkpoint that a step leads to. Raises `ConfigError` where a parameter is no finite number any more."""
    model, scope = trace.model, f"{SCOPE}.{kind}"
    parameters = {name: _own(trace[f"{scope}.{name}.updated"].data) for name in model.parameters}
    arrays = {
        f"{scope}.{name}.{what}_before": trace[f"{scope}.{name}.{what}"].data
        for name in model.parameters for what in REMEMBERS[kind]
    }
    before = trace.circumstances.moments
    moments = Moments(1 + (before.step if before else 0), MappingProxyType(arrays))
    return Checkpoint(Model(model.config, parameters, model.tokenizer), moments)


def train(checkpoint: Checkpoint, inputs: Inputs, targets: Inputs, setting: Setting, steps: int,
          seed: int | None = None, edits: Sequence[Edit] = ()) -> Iterator[tuple[Trace, Checkpoint]]:
    """Yield the trace of each of the next steps and the checkpoint that it leads to."""
    current = checkpoint
    for _ in range(steps):
        trace = step(current, inputs, targets, setting, seed, edits)
        current = after(trace, setting.kind)
        yield trace, current


def followed(scope: Scope, config: ModelConfig, clips: bool, names: Iterable[str] = ()) -> dict[str, Value]:
    """Record the loss and its gradients; return what the optimizer follows, by the parameter's name.

    With `names`, only the gradients of these parameters are clipped and returned; the joint length is
    that of all of them.
    """
    found = gradients(scope.builder, cross_entropy(scope, config), of_constants=False)
    # a tied head is one parameter under two names
    own = {name: found[name] for name in config.parameter_shapes()}
    wanted = tuple(names) or tuple(own)
    return clipped(scope.at(SCOPE), own, wanted) if clips else {name: own[name] for name in wanted}


def optimize(kind: str, clips: bool, scope: Scope, config: ModelConfig) -> None:
    """Record loss, the gradients of all that parameters have a part in, and one step of the optimizer."""
    make_steps(scope, followed(scope, config, clips), kind)


def make_steps(scope: Scope, gradients_of: Mapping[str, Value], *kinds: str) -> None:
    """Record `optimizer.KIND.NAME.updated` for parameters with these gradients; the kinds share their settings."""
    constants = scope.at(SCOPE)
    for kind in kinds:
        optimizer = Optimizer(constants.at(kind), kind, constants)
        for name, gradient in gradients_of.items():
            optimizer.step(scope.find(name), gradient)


def _own(array: Array) -> Array:
    """The array if it owns its numbers, so that a model can share it, else a frozen copy."""
    if array.base is None:
        return array
    copied = np.array(array)
    copied.flags.writeable = False
    return copied


_PROGRAMS: Mapping[tuple[str, bool], Program] = MappingProxyType({
    (kind, clips): partial(optimize, kind, clips) for kind in KINDS for clips in (False, True)
})
