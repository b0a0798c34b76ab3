"""What a trace contains: names in order of computation, axes, parameters where they are first used."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from engine import ModelConfig, Trace, presets, run
from engine.plan import Builder, Scope
from tests.engine.support import steps

NAMES = (Path(__file__).parent / "names_cats.txt").read_text().split()
AXES = {
    "batch", "position", "feature", "head", "head_feature", "query", "key", "hidden", "vocabulary",
    "pair",  # of the rotation: frequencies, angles, cosines and sines have one per two head features
}
SHAPES = {
    "embedding.weight": "vocabulary feature",
    "layers.0.norm1.weight": "feature",
    "layers.0.attention.Wq": "feature feature",
    "layers.0.mlp.W_up": "feature hidden",
    "layers.0.mlp.W_down": "hidden feature",
    "lm_head.weight": "vocabulary feature",
    "embedding.output": "batch position feature",
    "layers.0.norm1.mean_square": "batch position",
    "layers.0.attention.q": "batch position feature",
    "layers.0.attention.q_rotated": "batch head query head_feature",
    "layers.0.attention.k_rotated": "batch head key head_feature",
    "layers.0.attention.v_heads": "batch head key head_feature",
    "layers.0.attention.scores": "batch head query key",
    "layers.0.attention.weights": "batch head query key",
    "layers.0.attention.weights.sum": "batch head query",
    "layers.0.attention.head_output": "batch head query head_feature",
    "layers.0.mlp.activation": "batch position hidden",
    "causal_mask": "query key",
    "logits": "batch position vocabulary",
}


@pytest.fixture(scope="module", params=["cats", "scratch"])
def trace(request: pytest.FixtureRequest) -> Trace:
    return run(presets.load(request.param), presets.SENTENCES[request.param])


def test_names_and_their_order(trace: Trace) -> None:
    """Both presets have two layers of the same parts, hence the same names."""
    assert list(trace) == NAMES


def test_design_names_stand_in_that_order_but_for_heads(golden: dict[str, NDArray[np.float64]]) -> None:
    """The golden file lists q, q_heads, k, k_heads …, in order of its own computation."""
    assert [name for name in NAMES if name in golden] == list(golden)


def test_axes(trace: Trace) -> None:
    for tensor in steps(trace):
        assert len(tensor.axes) == tensor.data.ndim, tensor
        assert set(tensor.axes) <= AXES, tensor
        assert tensor.shape == tensor.data.shape, tensor
    assert {name: " ".join(trace[name].axes) for name in SHAPES} == SHAPES


def test_sizes_per_axis(trace: Trace) -> None:
    config: ModelConfig = trace.model.config
    batch, length = trace.ids.shape
    sizes = {
        "batch": batch, "position": length, "query": length, "key": length,
        "feature": config.hidden_size, "head": config.heads, "hidden": config.mlp_size,
        "head_feature": config.hidden_size // config.heads, "vocabulary": config.vocab_size,
        "pair": config.hidden_size // config.heads // 2,
    }
    for tensor in steps(trace):
        assert tensor.shape == tuple(sizes[axis] for axis in tensor.axes), tensor


def test_parameters_are_entries_at_first_use(trace: Trace) -> None:
    """Each stands before what is made from it, with nothing of another module between."""
    names = list(trace)
    assert [name for name in names if name in trace.model.parameters] == list(trace.model.parameters)
    for name in trace.model.parameters:
        module = name.rpartition(".")[0]
        users = [tensor for tensor in steps(trace) if name in {source.name for source in tensor.inputs}]
        first = next(number for number, tensor in enumerate(steps(trace)) if tensor.slot == users[0].slot)
        between = names[names.index(name):first]
        assert names.index(name) < first
        assert all(other.startswith((module, "lm_head")) for other in between), between


def test_recording_a_name_twice_is_an_error() -> None:
    scope = Scope(Builder())
    value = scope.constant("twice", (), presets.load("cats").parameters["final_norm.weight"][0])
    with pytest.raises(ValueError, match="twice is recorded twice"):
        scope.record("twice", value + value)
    with pytest.raises(ValueError, match="cannot be recorded again"):
        scope.record("thrice", value)


def test_unnamed_steps_are_tensors_too(trace: Trace) -> None:
    """Whatever an input is, it can be looked at; only leaves have none."""
    for tensor in steps(trace):
        assert bool(tensor.inputs) is (tensor.op not in {"parameter", "constant", "ids"})
