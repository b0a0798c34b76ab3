"""Activation patching: a vector of another sentence's run put into this one, and what it does to two logits."""

from __future__ import annotations

from collections.abc import Sequence

from engine.config import ModelConfig
from engine.edits import Carried, Edit
from engine.trace import Trace, run

# what can be carried: the stream as layers hand it on, what attention or the MLP adds to it, one head's mix of values
KINDS = ("stream", "attention", "mlp", "head")
_TENSORS = {"attention": "attention.output", "mlp": "mlp.output", "head": "attention.head_output"}
# beside their size, two runs that differ by less differ by rounding alone
ROUNDING = 1e-9


def layers(config: ModelConfig, kind: str) -> range:
    """The layers that have it, counted from 1; the stream is there before the first, at 0."""
    return range(0 if kind == "stream" else 1, config.layers + 1)


def tensor(config: ModelConfig, kind: str, layer: int) -> str:
    """The name of the tensor that holds it: for the stream what layer `layer` hands on, [B,T,C]."""
    if kind != "stream":
        return f"layers.{layer - 1}.{_TENSORS[kind]}"
    return config.stream_into(layer)


def place(kind: str, position: int, head: int = 0) -> tuple[int, ...]:
    """Where in that tensor the vector of a position stands, [C], or [D] of one head."""
    return (0, head, position) if kind == "head" else (0, position)


def carry(here: Trace, ids: Sequence[int], kind: str, layer: int, position: int, head: int = 0) -> Edit:
    """The edit that puts the vector of a place, as a run on `ids` computes it, into the same place of this run."""
    return Edit(tensor(here.model.config, kind, layer), place(kind, position, head), Carried(tuple(ids)))


def patched(here: Trace, edit: Edit) -> float:
    """The difference of logits once `edit` is added to a run of the program `engine.programs.patch`.

    Only what lies downstream of the edit is computed. Source: Vig et al. 2020; Meng et al. 2022.
    """
    around = here.circumstances
    trace = run(here.model, here.ids, edits=(*here.edits, edit), base=here, program=around.program)
    return difference(trace)


def difference(trace: Trace) -> float:
    """How far the token's logit is above its rival's in a run of that program."""
    return trace["patch.difference"].number((0,))


def share(patched: float, here: float, there: float) -> float | None:
    """(patched − here) / (there − here): 0 as in this sentence, 1 as in the other.

    None where the two runs do not differ but for rounding: then there is no way to take a share of.
    """
    way = there - here
    if not abs(way) > ROUNDING * max(1.0, abs(here), abs(there)):
        return None
    return (patched - here) / way + 0.0  # −0 is 0
