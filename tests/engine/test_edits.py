"""Edits of parameters and overrides of activations: what they cover, what they leave, what is refused."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from math import inf, nan
from typing import Any

import numpy as np
import pytest

from engine import Edit, EditError, Model, Trace, gradient, run
from tests.conftest import Reference
from tests.engine.support import Array, steps

ATTENTION = "layers.0.attention"
WQ = f"{ATTENTION}.Wq"


def edited(model: Model, *edits: Edit, ids: str = "Cats sit on") -> Trace:
    return run(model, ids, edits=edits)


def changed_names(before: Trace, after: Trace) -> list[str]:
    return [name for name in before if not np.array_equal(before[name].data, after[name].data)]


@pytest.mark.parametrize(("index", "expected"), [
    ((0, 1), [(0, 1)]),
    ((-1, -4), [(3, 0)]),
    ((2, slice(1, 3)), [(2, 1), (2, 2)]),
    ((slice(None, None, 2), 3), [(0, 3), (2, 3)]),
    ((1,), [(1, 0), (1, 1), (1, 2), (1, 3)]),
    ((), list(np.ndindex(4, 4))),
    (..., list(np.ndindex(4, 4))),
], ids=["cell", "negative", "slice", "stride", "row", "all", "ellipsis"])
def test_of_a_parameter(cats: Model, index: Any, expected: list[tuple[int, int]]) -> None:
    trace = edited(cats, Edit(WQ, index, 7.5))
    table = np.eye(4)
    for cell in expected:
        table[cell] = 7.5
    assert np.array_equal(trace[WQ].data, table)
    assert np.array_equal(cats.parameters[WQ], np.eye(4))
    np.testing.assert_allclose(
        trace[f"{ATTENTION}.q"].data, trace["layers.0.norm1.output"].data @ table, rtol=1e-12
    )
    assert (trace[WQ].op, trace[WQ].inputs) == ("parameter", ())


def test_reaches_only_what_lies_downstream(cats: Model, cats_trace: Trace) -> None:
    changed = changed_names(cats_trace, edited(cats, Edit(WQ, (0, 1), 0.5)))
    assert changed[:4] == [WQ, f"{ATTENTION}.q", f"{ATTENTION}.q_heads", f"{ATTENTION}.q_rotated"]
    assert not {f"{ATTENTION}.k", f"{ATTENTION}.v", "layers.1.attention.Wq", "embedding.output"} & {*changed}
    assert {"layers.1.output", "logits", "probabilities"} <= {*changed}


def test_of_a_whole_head(cats: Model, cats_trace: Trace) -> None:
    """With head 1 set to zero, its half of the merged vector is zero and head 0 is untouched."""
    trace = edited(cats, Edit(f"{ATTENTION}.head_output", (0, 1), 0.0))
    merged = trace[f"{ATTENTION}.merged"].data
    assert not merged[..., 2:].any()
    assert np.array_equal(merged[..., :2], cats_trace[f"{ATTENTION}.merged"].data[..., :2])


def test_of_one_attention_weight(cats: Model, cats_trace: Trace) -> None:
    """head_output = Σ weight · v with the given weight: rows are no longer forced to sum to 1."""
    trace = edited(cats, Edit(f"{ATTENTION}.weights", (0, 0, 2, 1), 0.0))
    v = cats_trace[f"{ATTENTION}.v_heads"].data[0, 0]
    weights = cats_trace[f"{ATTENTION}.weights"].data[0, 0, 2]
    expected = weights[0] * v[0] + weights[2] * v[2]
    np.testing.assert_allclose(trace[f"{ATTENTION}.head_output"].data[0, 0, 2], expected, rtol=1e-12)


def test_of_one_hidden_value(cats: Model) -> None:
    """W_down = [I; I]: hidden unit 0, set to 5, adds to feature 0 what units 0 and 4 hold."""
    trace = edited(cats, Edit("layers.0.mlp.activation", (0, 2, 0), 5.0))
    output = trace["layers.0.mlp.output"].data[0, 2]
    np.testing.assert_allclose(output, [5.1557, 0.8758, 0.5364, 1.7091], atol=0.5e-4)


def test_minus_infinity_masks_a_score(cats: Model) -> None:
    trace = edited(cats, Edit(f"{ATTENTION}.masked_scores", (0, 0, 2, 1), -inf))
    weights = trace[f"{ATTENTION}.weights"].data[0, 0, 2]
    first = 1 / (1 + np.exp(0.3143 + 0.3500))
    np.testing.assert_allclose(weights, [first, 0.0, 1 - first], atol=1e-4)
    assert weights[1] == 0.0
    by_mask = edited(cats, Edit("causal_mask", (2, 1), -inf))
    assert np.array_equal(by_mask[f"{ATTENTION}.weights"].data[0, 0, 2], weights)


def test_an_override_keeps_what_was_computed(cats: Model, cats_trace: Trace) -> None:
    name = f"{ATTENTION}.scores"
    tensor = edited(cats, Edit(name, (0, 0, 2, 1), 3.0))[name]
    (replaced,) = tensor.inputs
    assert (tensor.op, tensor.overridden, replaced.op, replaced.name) == ("override", True, "divide", None)
    assert np.array_equal(replaced.data, cats_trace[name].data)
    assert [source.name for source in replaced.inputs] == [f"{ATTENTION}.dot", "sqrt_head_size"]
    expected: Array = cats_trace[name].data.copy()
    expected[0, 0, 2, 1] = 3.0
    assert np.array_equal(tensor.data, expected)


def test_the_gradient_stops_at_the_covered_cell_alone(cats: Model) -> None:
    name, target = f"{ATTENTION}.scores", ("logits", (0, 2, 90))
    trace = edited(cats, Edit(name, (0, 0, 2, 1), 3.0))
    gradients = gradient(trace, *target)
    assert gradients[name].data[0, 0, 2, 1] != 0
    upstream = gradients[f"{ATTENTION}.dot"].data[0, 0, 2]
    assert upstream[1] == 0
    assert (upstream[[0, 2]] != 0).all()


def test_the_latest_of_two_wins(cats: Model) -> None:
    row, cell = Edit(WQ, (0,), 2.0), Edit(WQ, (0, 1), 3.0)
    assert edited(cats, row, cell)[WQ].data[0].tolist() == [2.0, 3.0, 2.0, 2.0]
    assert edited(cats, cell, row)[WQ].data[0].tolist() == [2.0, 2.0, 2.0, 2.0]
    name = "layers.0.residual1"
    first, second = Edit(name, (0, 2, 0), 1.0), Edit(name, (0, 2, 0), -1.0)
    assert edited(cats, first, second)[name].data[0, 2, 0] == -1.0


@pytest.mark.parametrize(("name", "index"), [
    ("embedding.output", (0, 2, 0)),
    ("embedding.output", (1,)),
    (f"{ATTENTION}.weights", (0, 0, 1, 2)),
    (f"{ATTENTION}.q_heads", (0, 1, 5)),
    ("rope.positions", (2,)),
    ("layers.0.mlp.up", (0, slice(2, 5))),
    ("embedding.output", (0, -6, 0)),
])
def test_beyond_a_shorter_sentence_is_kept_and_inactive(
    cats: Model, name: str, index: tuple[Any, ...]
) -> None:
    edit = Edit(name, index, 9.0)
    short, plain = edited(cats, edit, ids="Cats sit"), edited(cats, ids="Cats sit")
    assert short.edits == (edit,)
    assert changed_names(plain, short) == []
    assert not short[name].overridden
    batched = run(cats, [[12, 45, 78, 90, 91, 92]] * 2, edits=[edit])
    assert (batched[name].data == 9.0).any()


@pytest.mark.parametrize("value", [0, -3, 0.1, 5e-324, 1.7976931348623157e308, np.float32(0.1), np.int64(4)])
def test_values_round_trip_exactly(cats: Model, value: float) -> None:
    assert Edit(WQ, (0, 0), value).value == float(value)
    assert float(edited(cats, Edit(WQ, (0, 0), value))[WQ].data[0, 0]) == float(value)


def test_equal_edits_are_one(cats: Model) -> None:
    """Lists and NumPy integers are taken as the tuple of ints that they are."""
    edit = Edit(WQ, (0, 1), 0.5)
    same = Edit(WQ, [np.int64(0), 1], np.float64(0.5))  # type: ignore[arg-type]
    assert (edit, hash(edit), edit.key) == (same, hash(same), same.key)
    assert Edit(WQ, (slice(0, 2),), 1.0).key == Edit(WQ, (slice(0, 2),), 2.0).key != edit.key


@pytest.mark.parametrize(("value", "code"), [
    (nan, "not_finite"), (inf, "not_finite"), (-inf, "not_finite"), (float("1e999"), "not_finite"),
    (10**400, "not_finite"), (np.float32("inf"), "not_finite"),
    (True, "value"), (np.True_, "value"), ("0.5", "value"), ("1e999", "value"), (None, "value"),
    (1j, "value"), (Decimal(1), "value"), ([1.0], "value"),
])
def test_a_value_that_is_refused(value: Any, code: str) -> None:
    with pytest.raises(EditError) as raised:
        Edit(WQ, (0, 0), value)
    assert (raised.value.code, raised.value.details["name"]) == (code, WQ)
    assert WQ in str(raised.value)


def test_fractions_are_numbers() -> None:
    assert Edit(WQ, (0, 0), Fraction(1, 4)).value == 0.25  # type: ignore[arg-type]


@pytest.mark.parametrize(("name", "value"), [
    (f"{ATTENTION}.scores", -inf), (f"{ATTENTION}.masked_scores", inf), (f"{ATTENTION}.masked_scores", nan),
])
def test_only_minus_infinity_and_only_in_masks(name: str, value: float) -> None:
    with pytest.raises(EditError, match="not a finite number"):
        Edit(name, (0, 0, 0, 0), value)


@pytest.mark.parametrize("index", [
    None, (None,), (0.0,), (True,), ("0",), (...,), "01", (slice("a"),), (slice(0, 2, 0),), (slice(0, True),),
])
def test_an_index_of_another_kind(index: Any) -> None:
    with pytest.raises(EditError, match="is no index") as raised:
        Edit(WQ, index, 1.0)
    assert (raised.value.code, raised.value.details["name"]) == ("index", WQ)


@pytest.mark.parametrize(("edit", "code", "facts"), [
    (Edit("layers.2.attention.Wq", (0, 0), 1.0), "unknown_name", {"name": "layers.2.attention.Wq"}),
    (Edit("input_ids", (0, 0), 1.0), "ids", {"name": "input_ids"}),
    (Edit(WQ, (4, 0), 1.0), "index_out_of_range", {"name": WQ, "index": (4, 0), "shape": (4, 4)}),
    (Edit(WQ, (0, -5), 1.0), "index_out_of_range", {"name": WQ, "index": (0, -5)}),
    (Edit(WQ, (slice(4, 9),), 1.0), "index_out_of_range", {"name": WQ, "index": (slice(4, 9),)}),
    (Edit(WQ, (0, 0, 0), 1.0), "index", {"name": WQ, "index": (0, 0, 0), "shape": (4, 4)}),
    (Edit("embedding.weight", (256, 0), 1.0), "index_out_of_range", {"name": "embedding.weight"}),
    (Edit("embedding.output", (0, 0, 4), 1.0), "index_out_of_range", {"name": "embedding.output"}),
    (Edit(f"{ATTENTION}.weights", (0, 2, 0, 0), 1.0), "index_out_of_range", {"index": (0, 2, 0, 0)}),
])
def test_an_edit_of_what_does_not_exist(cats: Model, edit: Edit, code: str, facts: dict[str, object]) -> None:
    with pytest.raises(EditError) as raised:
        edited(cats, edit)
    assert raised.value.code == code
    assert facts.items() <= raised.value.details.items()
    assert isinstance(raised.value, ValueError)


def test_a_value_beyond_float32(reference: Reference) -> None:
    model = reference.model(dtype=np.float32)
    for name, index in (("final_norm.weight", (0,)), ("logits", (0, 0, 0))):
        with pytest.raises(EditError, match="not finite in float32") as raised:
            run(model, [1], edits=[Edit(name, index, 1e39)])
        assert raised.value.details == {"name": name, "value": 1e39}
    trace = run(model, [1], edits=[Edit("final_norm.weight", (0,), 0.1), Edit("logits", (0, 0, 0), 0.1)])
    assert {tensor.data.dtype for tensor in steps(trace)} == {np.dtype(np.float32), np.dtype(np.int64)}
