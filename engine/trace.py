"""Running a plan on a model and a sentence, all of it or only what an edit changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from engine import forward
from engine.config import ModelConfig
from engine.edits import Carried, Edit, by_slot
from engine.errors import InputError
from engine.loss import supervised
from engine.model import Model
from engine.overlays import fitting, overlay_parameter
from engine.plan import Builder, Node, Plan, Scope
from engine.recording import Override, Recording, TensorMap
from engine.replacements import Donors, covered, replaced
from engine.tokenizer import check_id
from engine.types import Array, Integers

# A lesson's own computation on the model's values, added after the forward pass.
Program = Callable[[Scope, ModelConfig], None]
Inputs = str | Sequence[int] | Sequence[Sequence[int]] | Integers


@dataclass(frozen=True, eq=False)
class Past:
    """Keys and values [B,H,P,D] of P earlier positions, by the name of the cache leaf that holds them."""

    length: int
    arrays: Mapping[str, Array]


@dataclass(frozen=True, eq=False)
class Moments:
    """What an optimizer remembers after `step` steps, by the name of the leaf that holds it."""

    step: int
    arrays: Mapping[str, Array]


@dataclass(frozen=True)
class Circumstances:
    """What a run depends on beside model, ids and edits."""

    program: Program | None = None
    training: bool = False
    seed: int = 0
    past: Past | None = None
    targets: tuple[tuple[int, ...], ...] | None = None
    moments: Moments | None = None


class Trace(TensorMap):
    """Every tensor of one forward pass, with the model, the ids and the edits that led to it."""

    __slots__ = ("circumstances", "edits", "ids", "model")

    def __init__(self, recording: Recording, model: Model, ids: Integers, edits: tuple[Edit, ...],
                 circumstances: Circumstances) -> None:
        super().__init__(recording, recording.plan.names)
        self.model = model
        self.ids = ids
        self.edits = edits
        self.circumstances = circumstances

    @property
    def nbytes(self) -> int:
        """The bytes of what the run computed."""
        return self.recording.nbytes

    def freeze(self) -> None:
        """Make every array of the run read-only, for readers who share it."""
        for array in self.recording.values:
            self.recording.freeze(array)


def run(model: Model, inputs: Inputs, *, edits: Sequence[Edit] = (), base: Trace | None = None,
        targets: Inputs | None = None, program: Program | None = None, training: bool = False, seed: int = 0,
        past: Past | None = None, moments: Moments | None = None) -> Trace:
    """Return the trace of logits = GPT(ids) with `edits` applied.

    `inputs` is a text for the model's tokenizer, ids [T], or ids [B,T]. `base` is an earlier trace
    of the same model and shape: only what lies downstream of changed edits is computed again, and
    the result equals a full run bit for bit. `program` adds a lesson's computation at the end.
    `targets` are the tokens that come next, of the shape of the ids; with them and no program the run
    records `loss`. In `training`, dropout masks are drawn from `seed`. With `past`, ids continue cached
    positions; with `moments`, an optimizer's program continues from them.
    Raises `InputError` for a sentence or targets that the model cannot read, `EditError` for a wrong edit.
    """
    ids = read_ids(model, inputs)
    wanted = None if targets is None else read_targets(model, targets, ids.shape)
    added = supervised if program is None and wanted is not None else program
    around = Circumstances(added, training, seed, past, wanted, moments)
    check_length(model.config, ids.shape[1] + (past.length if past else 0))
    active = tuple(edits)
    donors = {
        edit.value.ids: donor(model, edit.value.ids, around) for edit in active if isinstance(edit.value, Carried)
    }
    fits = base is not None and (
        (base.model, base.ids.shape, base.circumstances) == (model, ids.shape, around)
    )
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        if fits and base is not None:
            # its own plan, which the cache may have let go by now
            plan = base.recording.plan
            recording = _rerun(plan, model, ids, _changes(plan, model, active, donors), base, donors)
        else:
            plan = forward_plan(
                model.config, ids.shape, model.dtype.str, added, training, past.length if past else 0
            )
            recording = _run(plan, model, ids, _changes(plan, model, active, donors), around, donors)
    return Trace(recording, model, ids, active, around)


def donor(model: Model, ids: tuple[int, ...], around: Circumstances) -> Recording:
    """An unedited run on another sentence, under the same circumstances, for readers who share it.

    Raises `InputError` for a sentence that the model cannot read.
    """
    # a run of training has another model at each step, which nobody asks for again
    return (_donor if around.moments is None else _donor.__wrapped__)(model, ids, around)


@lru_cache(maxsize=32)
def _donor(model: Model, ids: tuple[int, ...], around: Circumstances) -> Recording:
    targets = None
    if around.targets is not None:
        # where this sentence has no targets, no cells are carried either
        first = around.targets[0]
        targets = [[*first[:len(ids)], *ids[len(first):]]]
    trace = run(model, [list(ids)], targets=targets, program=around.program, training=around.training,
                seed=around.seed, past=around.past, moments=around.moments)
    trace.freeze()
    return trace.recording


def _changes(plan: Plan, model: Model, edits: tuple[Edit, ...], donors: Donors) -> dict[int, tuple[Edit, ...]]:
    """The active edits of each slot; also of what is computed later, numbers have to fit now."""
    changes = by_slot(plan, edits, {ids: recording.plan for ids, recording in donors.items()})
    for edit in (edit for of_slot in changes.values() for edit in of_slot):
        if isinstance(edit.value, float):
            fitting(edit.name, edit.value, model.dtype)
    return changes


def check_length(config: ModelConfig, length: int) -> None:
    """Raise `InputError` for a sentence longer than the positions that the model knows."""
    if config.max_positions is not None and length > config.max_positions:
        raise InputError("too_long", f"{length} tokens; the model has {config.max_positions} positions",
                         count=length, most=config.max_positions)


def read_ids(model: Model, inputs: Inputs) -> Integers:
    """Return ids [B,T] of a text or of nested lists. Raises `InputError`, naming what is wrong."""
    if isinstance(inputs, str):
        if model.tokenizer is None:
            raise InputError("no_tokenizer", "this model has no tokenizer; give token ids")
        ids = np.array([model.tokenizer.encode(inputs)], dtype=np.int64)
    else:
        try:
            given = np.asarray(inputs)
        except ValueError as error:  # rows of different lengths
            raise InputError("not_ids", "ids must be whole numbers, [T] or [B, T]") from error
        if given.size == 0:
            raise InputError("empty", "the sentence has no token; give at least one")
        if given.dtype.kind not in "iu" or given.ndim not in (1, 2):
            raise InputError("not_ids", "ids must be whole numbers, [T] or [B, T]")
        for token_id in (given.min(), given.max()):
            check_id(int(token_id), model.config.vocab_size)
        ids = np.array(np.atleast_2d(given), dtype=np.int64)
    ids.flags.writeable = False
    return ids


def read_targets(model: Model, targets: Inputs, shape: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """Return targets [B,T] of a text or of nested lists. Raises `InputError` where they do not fit the ids."""
    read = read_ids(model, targets)
    if read.shape != shape:
        raise InputError("targets_shape", f"targets {list(read.shape)} do not fit ids {list(shape)}",
                         count=read.shape[1], most=shape[1])
    return tuple(tuple(row) for row in read.tolist())


@lru_cache(maxsize=128)
def forward_plan(config: ModelConfig, shape: tuple[int, int], dtype: str, program: Program | None,
                 training: bool, past: int) -> Plan:
    """The plan of a forward pass for ids of that shape, shared by all runs that have it."""
    builder = Builder(dtype=np.dtype(dtype))
    scope = Scope(builder)
    forward.gpt(scope, config, *shape, training, past)
    if program is not None:
        program(scope, config)
    return builder.finish()


def _leaf(node: Node, model: Model, ids: Integers, around: Circumstances) -> Array:
    if node.operation == "ids":
        return ids if node.name == "input_ids" else _targets(around)
    if node.operation == "parameter":
        return model.parameters[str(node.name)]
    if node.operation == "dropout_mask":
        return _dropout_mask(node, around.seed, model.dtype)
    if node.operation == "cache":
        assert around.past is not None
        return around.past.arrays[str(node.name)]
    if node.operation == "step":
        return np.asarray(1 + (around.moments.step if around.moments else 0), dtype=model.dtype)
    if node.operation == "moment" and around.moments is not None:
        return around.moments.arrays[str(node.name)]
    assert node.constant is not None
    return node.constant


def _targets(around: Circumstances) -> Integers:
    if around.targets is None:
        raise InputError("no_targets", "this program compares predictions with targets; give them")
    return np.array(around.targets, dtype=np.int64)


def _kept(plan: Plan, node: Node, changes: Mapping[int, tuple[Edit, ...]], donors: Donors) -> Array:
    """Where a tensor's gradient goes on upstream: 1, or 0 at the cells that an edit has set."""
    assert node.constant is not None
    source = plan.nodes[node.attributes["of"]]
    edits = changes.get(source.slot, ())
    return (~covered(plan, source, edits, donors)).astype(node.constant.dtype) if edits else node.constant


def _dropout_mask(node: Node, seed: int, dtype: np.dtype[Any]) -> Array:
    """0 with probability p, else 1/(1−p): the expected value stays. Each mask has draws of its own."""
    p = node.attributes["p"]
    kept = np.random.default_rng([seed, node.slot]).random(node.shape) >= p
    return np.asarray(kept / (1.0 - p), dtype=dtype)


def _run(plan: Plan, model: Model, ids: Integers, changes: Mapping[int, tuple[Edit, ...]],
         around: Circumstances, donors: Donors) -> Recording:
    values: list[Any] = [None] * len(plan.nodes)
    overrides: dict[int, Override] = {}
    for slot in plan.leaves:
        values[slot] = _leaf(plan.nodes[slot], model, ids, around)
        if slot in changes:
            values[slot] = overlay_parameter(values[slot], changes[slot])
    if changes:
        for slot in plan.gates:
            values[slot] = _kept(plan, plan.nodes[slot], changes, donors)
    for slot, kernel, inputs in plan.steps:
        values[slot] = kernel(*[values[number] for number in inputs])
        if slot in changes:
            values[slot], overrides[slot] = _override(plan, slot, values[slot], changes[slot], donors)
    return Recording(plan, values, overrides, _deferred(plan, changes), donors)


def _rerun(plan: Plan, model: Model, ids: Integers, changes: Mapping[int, tuple[Edit, ...]],
           base: Trace, donors: Donors) -> Recording:
    """Compute again what depends on a changed edit or on other ids; take the rest from `base`."""
    before, around = _changes(plan, model, base.edits, base.recording.donors), base.circumstances
    stale = {slot for slot in {*changes, *before} if changes.get(slot) != before.get(slot)}
    if not np.array_equal(ids, base.ids):
        stale.add(plan.names["input_ids"])
    values: list[Any] = list(base.recording.values)
    overrides = dict(base.recording.overrides)
    for slot in plan.leaves:
        if slot in stale:
            values[slot] = _leaf(plan.nodes[slot], model, ids, around)
            if slot in changes:
                values[slot] = overlay_parameter(values[slot], changes[slot])
    for slot in plan.gates:
        if plan.nodes[slot].attributes["of"] in stale:
            values[slot] = _kept(plan, plan.nodes[slot], changes, donors)
            stale.add(slot)
    for slot, kernel, inputs in plan.steps:
        if slot not in stale and stale.isdisjoint(inputs):
            continue
        stale.add(slot)
        overrides.pop(slot, None)
        values[slot] = kernel(*[values[number] for number in inputs])
        if slot in changes:
            values[slot], overrides[slot] = _override(plan, slot, values[slot], changes[slot], donors)
    return Recording(plan, values, overrides, _deferred(plan, changes), donors)


def _deferred(plan: Plan, changes: Mapping[int, tuple[Edit, ...]]) -> dict[int, tuple[Edit, ...]]:
    """The edits of what is computed later."""
    return {slot: edits for slot, edits in changes.items() if slot in plan.deferred}


def _override(plan: Plan, slot: int, computed: Array, edits: tuple[Edit, ...],
              donors: Donors) -> tuple[Array, Override]:
    array = np.asarray(computed)
    edited, mask = replaced(plan, plan.nodes[slot], array, edits, donors)
    return edited, Override(Recording.freeze(array), Recording.freeze(mask))
