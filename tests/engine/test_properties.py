"""What holds for every model and sentence: causality, rows that sum to 1, batches, rotations."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import Edit, Tensor, Trace, run
from tests.conftest import Reference
from tests.engine.support import Array, assign, model_with, steps

MODEL = model_with(vocab_size=11, hidden_size=12, heads=3, layers=2, mlp_size=7)
TOKENS = st.integers(0, 10)
SENTENCES = st.lists(TOKENS, min_size=1, max_size=7)
ROTATED = ("q_rotated", "k_rotated")
quick = settings(max_examples=40, deadline=None)


def until(tensor: Tensor, length: int) -> Array:
    """The part of a tensor that belongs to the first `length` positions."""
    part = tuple(
        slice(length) if axis in {"position", "query", "key"} else slice(None) for axis in tensor.axes
    )
    return tensor.data[part]


def assert_same_past(before: Trace, after: Trace, length: int) -> None:
    """Nothing computed differs before position `length`, not even in the last bit."""
    for name, tensor in before.items():
        if tensor.inputs:
            assert np.array_equal(until(tensor, length), until(after[name], length)), name


@quick
@given(ids=st.lists(TOKENS, min_size=2, max_size=7), data=st.data())
def test_a_later_token_changes_no_earlier_position(ids: list[int], data: st.DataObject) -> None:
    place = data.draw(st.integers(1, len(ids) - 1))
    other = [*ids[:place], *data.draw(st.lists(TOKENS, min_size=len(ids) - place, max_size=len(ids) - place))]
    assert_same_past(run(MODEL, ids), run(MODEL, other), place)


@quick
@given(ids=st.lists(TOKENS, min_size=2, max_size=7), data=st.data(), value=st.floats(-9, 9))
def test_a_later_embedding_changes_no_earlier_position(
    ids: list[int], data: st.DataObject, value: float
) -> None:
    place = data.draw(st.integers(1, len(ids) - 1))
    edited = run(MODEL, ids, edits=[Edit("embedding.output", (0, place), value)])
    assert_same_past(run(MODEL, ids), edited, place)


def test_an_earlier_token_changes_later_positions() -> None:
    before, after = run(MODEL, [1, 2, 3]), run(MODEL, [4, 2, 3])
    assert (before["logits"].data[0, 1:] != after["logits"].data[0, 1:]).all()


@quick
@given(ids=SENTENCES, factor=st.floats(-30, 30))
def test_softmax_rows_sum_to_one(ids: list[int], factor: float) -> None:
    trace = run(MODEL, ids, edits=[Edit("final_norm.weight", (), factor)])
    for name in ("layers.0.attention.weights", "layers.1.attention.weights", "probabilities"):
        rows = trace[name].data
        np.testing.assert_allclose(rows.sum(axis=-1), 1.0, rtol=0, atol=1e-12)
        assert (rows >= 0).all()
    future = np.triu(np.ones((len(ids), len(ids)), dtype=bool), 1)
    assert not trace["layers.1.attention.weights"].data[..., future].any()


@quick
@given(rows=st.integers(1, 7).flatmap(
    lambda length: st.lists(st.lists(TOKENS, min_size=length, max_size=length), min_size=2, max_size=4)
))
def test_a_batch_equals_separate_runs(rows: list[list[int]]) -> None:
    batch = run(MODEL, rows)
    for number, ids in enumerate(rows):
        alone = run(MODEL, ids)
        for name, tensor in alone.items():
            if tensor.axes[:1] == ("batch",):
                np.testing.assert_allclose(
                    batch[name].data[number], tensor.data[0], rtol=1e-12, atol=1e-12, err_msg=name
                )


def test_a_single_token_reads_itself_alone() -> None:
    trace = run(MODEL, [4])
    assert trace["layers.0.attention.weights"].data.tolist() == [[[[1.0]], [[1.0]], [[1.0]]]]
    assert np.array_equal(
        trace["layers.0.attention.head_output"].data, trace["layers.0.attention.v_heads"].data
    )


def test_repeated_tokens_differ_by_position_alone() -> None:
    trace = run(MODEL, [4, 4, 4])
    for name in ("embedding.output", "layers.0.attention.q", "layers.0.attention.v"):
        assert (trace[name].data == trace[name].data[:, :1]).all()
    rotated = trace["layers.0.attention.q_rotated"].data
    assert not np.isclose(rotated[:, :, 1:], rotated[:, :, :1]).all()


@pytest.mark.parametrize("scale", [1e-8, 1e4])
def test_nothing_overflows(scale: float) -> None:
    edits = [Edit("layers.0.attention.Wq", (), scale), Edit("lm_head.weight", (), scale)]
    for tensor in steps(run(MODEL, [1, 2, 3, 4], edits=edits)):
        assert not np.isnan(tensor.data).any(), tensor


@pytest.mark.parametrize("pairing", ["interleaved", "half"])
class TestRotation:
    def test_keeps_position_zero(self, reference: Reference, pairing: str) -> None:
        trace = run(reference.model(pairing), reference.ids)
        for name in ROTATED:
            rotated = trace[f"layers.0.attention.{name}"].data
            before = trace[f"layers.0.attention.{name[0]}_heads"].data
            assert np.array_equal(rotated[:, :, 0], before[:, :, 0])
            assert not np.isclose(rotated[:, :, 1:], before[:, :, 1:]).all(axis=-1).any()

    def test_keeps_lengths(self, reference: Reference, pairing: str) -> None:
        trace = run(reference.model(pairing), reference.ids)
        for name in ROTATED:
            np.testing.assert_allclose(
                np.linalg.norm(trace[f"layers.1.attention.{name}"].data, axis=-1),
                np.linalg.norm(trace[f"layers.1.attention.{name[0]}_heads"].data, axis=-1), rtol=1e-12,
            )

    @pytest.mark.parametrize("shift", [1.0, -3.0, 7.25])
    @pytest.mark.parametrize("by", ["positions", "offset"])
    def test_a_shift_of_all_positions_keeps_the_dot_products(
        self, reference: Reference, pairing: str, by: str, shift: float
    ) -> None:
        model = reference.model(pairing)
        edits = (
            assign("rope.positions", np.arange(5) + shift) if by == "positions"
            else [Edit("rope.offset", (), shift)]
        )
        before, after = run(model, reference.ids), run(model, reference.ids, edits=edits)
        for name in ("dot", "scores", "weights"):
            for layer in range(2):
                full = f"layers.{layer}.attention.{name}"
                np.testing.assert_allclose(after[full].data, before[full].data, rtol=1e-12, atol=1e-12)
        for name in ROTATED:
            full = f"layers.0.attention.{name}"
            assert (np.abs(after[full].data - before[full].data).max(axis=-1) > 1e-3).all()

    def test_does_not_turn_values(self, reference: Reference, pairing: str) -> None:
        model = reference.model(pairing)
        trace = run(model, reference.ids)
        frozen = run(model, reference.ids, edits=[Edit("rope.frequencies", (), 0.0)])
        assert not np.isclose(
            trace["layers.0.attention.q_rotated"].data, frozen["layers.0.attention.q_rotated"].data
        ).all()
        v = trace["layers.0.attention.v"].data
        for name in ("v", "v_heads"):
            assert np.array_equal(
                trace[f"layers.0.attention.{name}"].data, frozen[f"layers.0.attention.{name}"].data
            )
        np.testing.assert_allclose(
            trace["layers.0.attention.head_output"].data[:, 1],
            trace["layers.0.attention.weights"].data[:, 1] @ v[..., 16:], rtol=1e-12, atol=1e-12,
        )


def test_with_frequency_zero_nothing_turns() -> None:
    trace = run(MODEL, [1, 2, 3], edits=[Edit("rope.frequencies", (), 0.0)])
    for name in ROTATED:
        assert np.array_equal(
            trace[f"layers.1.attention.{name}"].data, trace[f"layers.1.attention.{name[0]}_heads"].data
        )


@pytest.mark.parametrize("base", [10000.0, 500000.0])
def test_frequencies_follow_the_base(base: float) -> None:
    """θ_i = base^(−2i/D); B13 prints those of 500000 for D=8."""
    trace = run(model_with(hidden_size=8, rope_base=base), [0])
    expected = [1 / base ** (pair / 4) for pair in range(4)]
    np.testing.assert_allclose(trace["rope.frequencies"].data, expected, rtol=1e-12)
    if base == 500000.0:
        assert np.round(expected, 8).tolist() == [1.0, 0.03760603, 0.00141421, 0.00005318]
