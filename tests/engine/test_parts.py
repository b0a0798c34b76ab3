"""The lessons on GPT-2's parts: what they share, and that their numbers explain and differentiate themselves."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from engine import Edit, TensorMap, Trace, explain, gradient, presets, programs, run
from engine.plan import Scope
from engine.variants import variant
from tests.engine.support import Array, bits, model_with, slope

LESSONS = ("positions", "layernorm", "gelu", "dropout")
EVERY_LESSON = pytest.mark.parametrize("lesson", LESSONS)
EVERY_PRESET = pytest.mark.parametrize("preset", presets.NAMES)
# of a tensor with more cells, so many from all over it
CELLS = 60
# a target of each program and what to differentiate it by
SLOPES = [
    ("positions", "positions.rope.scores", (0, 1, 3, 1), "embedding.weight", (0, 2)),
    ("positions", "positions.rope.scores", (0, 1, 3, 1), "rope.offset", ()),
    ("positions", "positions.later.scores", (0, 0, 2, 1), "layers.0.attention.Wk", (3, 1)),
    ("positions", "positions.later.scores", (0, 0, 2, 1), "positions.learned.position_embedding.weight", (3, 4)),
    ("layernorm", "layers.1.layernorm.before.skewness", (0, 2), "layers.0.output", (0, 2, 5)),
    ("layernorm", "layers.1.layernorm.layer_norm.output", (0, 2, 1), "layernorm.shift", ()),
    ("layernorm", "layernorm.own.after.skewness", (), "layernorm.own.x", (3,)),
    ("layernorm", "layernorm.own.rms_norm.output", (2,), "layernorm.own.x", (3,)),
    ("gelu", "gelu.own.steps.gelu", (), "gelu.own.x", ()),
    ("gelu", "gelu.own.steps.product", (), "gelu.own.x", ()),
    ("gelu", "gelu.own.relu_squared_slope", (), "gelu.own.x", ()),
    ("gelu", "layers.0.gelu.relu_gradient", (0, 3), "layers.0.mlp.W_down", (3, 2)),
    ("dropout", "dropout.h_final", (0, 4, 1), "layers.1.mlp.W_down", (2, 1)),
    ("dropout", "dropout.many.mean_dropped", (0, 2), "layers.1.mlp.output", (0, 4, 2)),
]


class PartsReference:
    """The file of arrays from PyTorch."""

    def __init__(self) -> None:
        path = Path(__file__).parent.parent / "reference" / "gpt2_parts.npz"
        self.arrays: dict[str, Array] = dict(np.load(path, allow_pickle=False))


def lesson_trace(lesson: str, preset: str, *edits: Edit) -> Trace:
    return run(presets.load(preset), presets.SENTENCES[preset], program=programs.of(lesson), edits=edits)


@EVERY_PRESET
@EVERY_LESSON
def test_the_forward_pass_is_untouched(lesson: str, preset: str) -> None:
    plain, trace = run(presets.load(preset), presets.SENTENCES[preset]), lesson_trace(lesson, preset)
    small = [name for name, tensor in plain.items() if "vocabulary" not in tensor.axes]
    assert [bits(trace[name]) for name in small] == [bits(plain[name]) for name in small]
    own = set(trace) - set(plain)
    assert own
    assert all(lesson in name.split(".") for name in own)


@EVERY_LESSON
def test_every_program_is_a_lesson_s(lesson: str) -> None:
    assert programs.of(lesson) in programs.everywhere()
    assert programs.of(lesson) is not programs.lessons


@EVERY_PRESET
@EVERY_LESSON
def test_cells_explain_themselves(lesson: str, preset: str) -> None:
    plain, trace = run(presets.load(preset), presets.SENTENCES[preset]), lesson_trace(lesson, preset)
    for name in set(trace) - set(plain):
        assert_explained(trace, name)


def assert_explained(tensors: TensorMap, name: str) -> None:
    tensor = tensors[name]
    size = math.prod(tensor.shape)
    for flat in {*np.linspace(0, size - 1, min(size, CELLS)).astype(int).tolist()}:
        index = tuple(int(part) for part in np.unravel_index(flat, tensor.shape))
        cell = explain(tensors, name, index)
        assert cell.evaluate() == pytest.approx(float(tensor.data[index]), rel=1e-12, abs=1e-14), (name, index)


@pytest.mark.parametrize(("lesson", "target", "cell", "name", "index"), SLOPES)
def test_gradients_are_slopes(
    lesson: str, target: str, cell: tuple[int, ...], name: str, index: tuple[int, ...]
) -> None:
    # away from the kink of ReLU² at 0
    edits = [Edit("gelu.own.x", (), 0.7)] if lesson == "gelu" else []
    trace = lesson_trace(lesson, "scratch", *edits)
    gradients = gradient(trace, target, cell)
    found = gradients[name].data[index] if name in gradients else 0.0
    assert found == pytest.approx(slope(trace, target, cell, name, index), rel=1e-7, abs=1e-9)
    for each in gradients:
        if each.split(".")[0] == lesson:
            assert_explained(gradients, each)


@pytest.mark.parametrize("changes", [
    {"norm": "none"}, {"norm": "layernorm"}, {"norm": "rmsnorm"}, {"norm_placement": "post"},
    {"norm": "none", "norm_placement": "post", "residual": False}, {"positions": "none"}, {"positions": "learned"},
    {"positions": "rope", "rope_pairing": "half", "rope_direction": -1}, {"qk_norm": True},
    {"scale_scores": False}, {"bias": True}, {"tied_head": True}, {"activation": "none"}, {"causal": False},
], ids=str)
@EVERY_PRESET
@EVERY_LESSON
def test_every_architecture_has_the_lesson_s_numbers(lesson: str, preset: str, changes: dict[str, object]) -> None:
    model = variant(presets.load(preset), **changes)
    trace = run(model, presets.SENTENCES[preset], program=programs.of(lesson))
    for name, tensor in trace.items():
        if lesson in name.split("."):
            assert np.isfinite(tensor.data).all(), name


def test_sentences_of_one_token_and_of_all_that_a_table_holds() -> None:
    learned = model_with(hidden_size=6, heads=3, positions="learned", max_positions=5)
    odd = model_with(hidden_size=6, heads=2, positions="none")
    for lesson in LESSONS:
        for model, length in ((learned, 1), (learned, 5), (odd, 3)):
            run(model, [2] * length, program=programs.of(lesson))
    at_the_end = run(learned, [2] * 5, program=programs.of("positions"))
    assert "positions.learned.scores" in at_the_end
    assert "positions.later.scores" not in at_the_end
    # a turn needs pairs
    assert "positions.rope.scores" not in run(odd, [2] * 3, program=programs.of("positions"))


@pytest.mark.parametrize(("operation", "x", "expected"), [
    ("tanh", 0.5, 0.46211715726000975), ("normal_cdf", 1.0, 0.8413447460685429),
    ("normal_density", 1.0, 0.24197072451914337),
])
def test_functions_by_tables(operation: str, x: float, expected: float) -> None:
    """Abramowitz & Stegun, tables 4.15 and 26.1."""
    def program(scope: Scope, config: object) -> None:
        scope.record("y", scope.builder.apply(operation, scope.constant("x", (), np.array(x))))

    trace = run(presets.load("cats"), [12], program=program)
    assert float(trace["y"].data) == pytest.approx(expected, rel=1e-15)
    assert gradient(trace, "y", ())["x"].data == pytest.approx(slope(trace, "y", (), "x", ()), rel=1e-8)
