"""Every cell explains itself: in traces, edited and overridden traces, lesson programs and gradients.

A gradient's recording holds the forward pass too, so explaining it explains both.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest

from engine import Edit, EditError, Model, TensorMap, Trace, explain, gradient, presets, programs, run
from engine.variants import variant
from tests.conftest import Reference
from tests.engine.support import assert_explained, model_with

ATTENTION = "layers.0.attention"
EDITS = (
    Edit("embedding.weight", (12, slice(1, 3)), 0.75),
    Edit(f"{ATTENTION}.Wq", (0, 1), 0.5),
    Edit("layers.1.norm2.weight", ..., 1.5),  # type: ignore[arg-type]
    Edit("norm_epsilon", (), 0.01),
    Edit("rope.frequencies", (0,), 0.3),
)
OVERRIDES = (
    Edit(f"{ATTENTION}.head_output", (0, 1), 0.0),
    Edit(f"{ATTENTION}.weights", (0, 0, 2, 1), 0.9),
    Edit(f"{ATTENTION}.masked_scores", (0, 1, 1, 0), -inf),
    Edit("layers.0.mlp.activation", (0, 1, 3), 2.0),
    Edit("layers.1.norm1.rms", (0, 2), 1.25),
    Edit("rope.cosines", (2, 0), 0.1),
    Edit("layers.1.attention.weights.sum", (0, 0, 1), 2.0),
)


@pytest.mark.parametrize("edits", [(), EDITS, OVERRIDES, EDITS + OVERRIDES],
                         ids=["none", "edits", "overrides", "both"])
def test_every_cell_of_cats(cats: Model, edits: tuple[Edit, ...]) -> None:
    trace = run(cats, "Cats sit on", edits=edits, program=programs.lessons)
    assert_explained(gradient(trace, "probabilities", (0, 2, 90)))
    assert_explained(gradient(trace, f"{ATTENTION}.weights", (0, 0, 2, 1)))


@pytest.mark.parametrize(("pairing", "edits"), [
    ("interleaved", ()),
    ("half", (
        Edit("layers.0.attention.q_rotated", (1, 1, slice(2, 4)), 0.5),
        Edit("layers.1.attention.head_output", (0, 0), 0.0),
    )),
])
def test_every_cell_of_the_random_model(
    reference: Reference, pairing: str, edits: tuple[Edit, ...]
) -> None:
    trace = run(reference.model(pairing), reference.ids, edits=edits)
    assert_explained(gradient(trace, *reference.target("A")))


def test_every_cell_of_scratch() -> None:
    trace = run(presets.load("scratch"), presets.SENTENCES["scratch"], program=programs.lessons)
    assert_explained(gradient(trace, "probabilities", (0, 4, 2)))


@pytest.mark.parametrize("length", [1, 2])
def test_every_cell_of_one_layer_with_more_heads_than_positions(length: int) -> None:
    trace = run(model_with(hidden_size=6, heads=3), [5] * length)
    assert_explained(gradient(trace, "logits", (0, length - 1, 5)))


def test_a_logit_is_four_contributions(cats_trace: Trace) -> None:
    """−0.0031·0.2 + 0.9637·0.4 − 0.0321·0.1 + 1.7522·0.3 ≈ 0.9073."""
    cell = explain(cats_trace, "logits", (0, 2, 90))
    vector = [term for term in cell.terms if term.input == 0]
    row = [term for term in cell.terms if term.input == 1]
    assert {term.name for term in vector} == {"final_norm.output"}
    assert [term.index for term in vector] == [(0, 2, feature) for feature in range(4)]
    assert [round(term.value, 4) for term in vector] == [-0.0031, 0.9637, -0.0321, 1.7522]
    assert {term.name for term in row} == {"lm_head.weight"}
    assert [term.index for term in row] == [(90, feature) for feature in range(4)]
    assert [term.value for term in row] == [0.2, 0.4, 0.1, 0.3]
    assert round(cell.evaluate(), 4) == 0.9073


def test_a_rotated_feature_is_its_pair_and_two_angles(cats_trace: Trace) -> None:
    """−0.6663 = 0.2981·cos 2 − 0.5963·sin 2."""
    cell = explain(cats_trace, f"{ATTENTION}.q_rotated", (0, 0, 2, 0))
    assert [(term.name, term.index, round(term.value, 4)) for term in cell.terms] == [
        (f"{ATTENTION}.q_heads", (0, 0, 2, 0), 0.2981), (f"{ATTENTION}.q_heads", (0, 0, 2, 1), 0.5963),
        ("rope.cosines", (2, 0), -0.4161), ("rope.sines", (2, 0), 0.9093),
    ]


def test_the_trail_ends_at_parameters_and_the_id(cats_trace: Trace) -> None:
    names = leaves(cats_trace, "layers.0.norm1.output", (0, 1, 3))
    assert names == {
        ("layers.0.norm1.weight", (3,)), ("norm_epsilon", ()), ("input_ids", (0, 1)),
        *(("embedding.weight", (45, feature)) for feature in range(4)),
    }


def leaves(trace: TensorMap, name: str, index: tuple[int, ...]) -> set[tuple[str | None, tuple[int, ...]]]:
    """Name and index of everything that the trail back from a cell ends at."""
    found, todo = set(), [explain(trace, name, index)]
    while todo:
        cell = todo.pop()
        if cell.op in {"parameter", "constant", "ids"}:
            found.add((cell.tensor.name, cell.index))
        else:
            todo += [explain(trace, term.tensor, term.index) for term in cell.terms]
    return found


def test_evaluate_uses_the_terms_alone(cats_trace: Trace) -> None:
    """The same arithmetic on other numbers gives another value."""
    cell = explain(cats_trace, "layers.0.residual1", (0, 0, 0))
    assert cell.op == "add"
    other = replace(cell, terms=tuple(replace(term, value=2.5) for term in cell.terms))
    assert other.evaluate() == 5.0


def test_an_override_explains_what_it_replaced(cats: Model) -> None:
    name = f"{ATTENTION}.weights"
    trace = run(cats, "Cats sit on", edits=[Edit(name, (0, 0, 2, 1), 0.9)])
    covered, beside = explain(trace, name, (0, 0, 2, 1)), explain(trace, name, (0, 0, 2, 0))
    assert (covered.op, covered.value, covered.evaluate()) == ("override", 0.9, 0.9)
    assert covered.computed is not None
    assert round(covered.computed.evaluate(), 4) == 0.5376
    assert {term.name for term in covered.computed.terms} == {f"{name}.exp", f"{name}.sum"}
    assert (beside.op, round(beside.evaluate(), 4), beside.computed) == ("share", 0.1571, None)


@pytest.mark.parametrize("index", [(0, 3, 90), (0, 2, 256), (0, 2), (0, 0, 2, 1), (-2, 0, 0)])
def test_a_cell_that_does_not_exist(cats_trace: Trace, index: tuple[int, ...]) -> None:
    for request in (explain, gradient):
        with pytest.raises(EditError, match="logits has no cell") as raised:
            request(cats_trace, "logits", index)
        assert raised.value.code == "index_out_of_range"
        assert raised.value.details == {"name": "logits", "index": index, "shape": (1, 3, 256)}


def test_a_tensor_that_does_not_exist(cats_trace: Trace) -> None:
    for request in (explain, gradient):
        with pytest.raises(EditError, match=r"no tensor logit$") as raised:
            request(cats_trace, "logit", (0, 0, 0))
        assert (raised.value.code, raised.value.details) == ("unknown_name", {"name": "logit"})


def test_negative_indices_count_from_the_end(cats_trace: Trace) -> None:
    assert explain(cats_trace, "logits", (0, -1, -256)).index == (0, 2, 0)


def test_what_runs_over_is_infinite_as_in_the_run() -> None:
    """Python's powers raise where NumPy's run over; a cell is recomputed as the run computed it."""
    layernorm = variant(presets.load("scratch"), norm="layernorm", bias=True)
    for model, lesson in ((layernorm, "layernorm"), (presets.load("scratch"), "why_sqrt"), (layernorm, "gelu")):
        plain = run(model, [[0, 2, 4]], program=programs.of(lesson))
        for name, tensor in plain.items():
            if tensor.op in ("skewness", "deviation", "mean_cube", "gelu_tanh", "gelu_tanh_slope"):
                source = tensor.inputs[-1]
                assert source.name is not None
                trace = run(model, [[0, 2, 4]], program=programs.of(lesson), base=plain,
                            edits=[Edit(source.name, (0,) * len(source.shape), 1e300)])
                index = (0,) * len(tensor.shape)
                found, expected = explain(trace, name, index).evaluate(), trace[name].number(index)
                assert found == pytest.approx(expected, nan_ok=True), name
