"""Positions three ways: against PyTorch, the article's table, and the models that have each of them."""

from __future__ import annotations

import numpy as np
import pytest

from engine import Edit, Trace, presets, programs, run
from engine.variants import variant
from tests.engine.support import Array
from tests.engine.test_gpt2_parts import VARIANTS

PROGRAM = programs.of("positions")
WAYS = {"learned": "gpt2", "none": "no_positions", "rope": "rope"}
# second article, 4.1 step 6
TABLE = [[2.3], [0.5, 3.1], [0.1, 2.2, 1.8], [0.2, 1.1, 2.0, 2.5], [0.3, 0.8, 0.9, 1.2, 1.5]]


@pytest.fixture(scope="module")
def today() -> Trace:
    return run(presets.load("today"), "今天天气真", program=PROGRAM)


def weights(scores: Array) -> Array:
    """Softmax over the keys that are not in the future."""
    visible = np.tril(np.ones(scores.shape[-2:], dtype=bool))
    exponentials = np.where(visible, np.exp(scores - scores.max(axis=-1, keepdims=True)), 0.0)
    return np.asarray(exponentials / exponentials.sum(axis=-1, keepdims=True))


@pytest.mark.parametrize(("way", "reference"), WAYS.items())
def test_one_model_three_ways_agrees_with_pytorch(way: str, reference: str) -> None:
    """The models of `gpt2_variants.npz` share their parameters: only the positions differ."""
    trace = run(VARIANTS.model("gpt2"), VARIANTS.arrays["ids"], program=PROGRAM)
    expected = VARIANTS.arrays[f"{reference}/tensors/layers.0.attention.weights"]
    np.testing.assert_allclose(weights(trace[f"positions.{way}.scores"].data), expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("changes", [
    {}, {"norm": "none"}, {"norm_placement": "post"}, {"bias": True}, {"qk_norm": True}, {"scale_scores": False},
    {"rope_pairing": "half"}, {"rope_direction": -1},
], ids=str)
@pytest.mark.parametrize("preset", presets.NAMES)
def test_each_way_is_what_a_model_that_has_it_computes(preset: str, changes: dict[str, object]) -> None:
    model, sentence = variant(presets.load(preset), **changes), presets.SENTENCES[preset]
    trace = run(model, sentence, program=PROGRAM)
    name = "scores" if model.config.scale_scores else "dot"
    for way in WAYS:
        own = run(variant(model, positions=way), sentence)
        np.testing.assert_allclose(
            trace[f"positions.{way}.{name}"].data, own[f"layers.0.attention.{name}"].data, rtol=0, atol=1e-13,
            err_msg=way,
        )


def test_the_article_s_scores_come_from_learned_positions(today: Trace) -> None:
    for row, visible in enumerate(TABLE):
        np.testing.assert_allclose(
            today["positions.learned.scores"].data[0, 0, row, :row + 1], visible, rtol=0, atol=1e-12
        )


def test_without_positions_both_are_the_same_word(today: Trace) -> None:
    for name in ("q_heads", "k_heads", "scores"):
        rows = today[f"positions.none.{name}"].data[0, 0]
        np.testing.assert_array_equal(rows[1], rows[2])
        assert not np.array_equal(rows[0], rows[1])
    columns = today["positions.none.scores"].data[0, 0].T
    np.testing.assert_array_equal(columns[1], columns[2])


def test_with_learned_positions_the_sums_differ(today: Trace) -> None:
    table, rows = today["embedding.weight"].data, today["position_embedding.weight"].data
    for position in (1, 2):
        np.testing.assert_array_equal(
            today["positions.learned.stream"].data[0, position], table[2048] + rows[position]
        )
    scores = today["positions.learned.scores"].data[0, 0]
    assert np.abs(scores[1] - scores[2]).min() > 0.1


def test_with_rope_the_vectors_are_equal_and_the_turns_differ(today: Trace) -> None:
    """By complex numbers: pair i of position t turns by t / 10000^(2i/D)."""
    for letter in "qk":
        entering = today[f"positions.none.{letter}_heads"].data[0, 0]
        pairs = entering[:, 0::2] + 1j * entering[:, 1::2]
        turn = np.exp(1j * np.outer(np.arange(5), 10000.0 ** (-np.arange(6) / 6)))
        turned = today[f"positions.rope.{letter}_rotated"].data[0, 0]
        np.testing.assert_allclose(turned[:, 0::2] + 1j * turned[:, 1::2], pairs * turn, rtol=0, atol=1e-14)
        assert not np.allclose(turned[1], turned[2])
    scores = today["positions.rope.scores"].data[0, 0]
    assert scores[1, 1] == pytest.approx(scores[2, 2], abs=1e-14)
    assert abs(scores[1, 0] - scores[2, 0]) > 1e-4


def test_rope_knows_distances_and_a_table_knows_places(today: Trace) -> None:
    later = run(today.model, today.ids, base=today, program=PROGRAM, edits=[Edit("positions.rope.offset", (), 7.0)])
    assert not np.allclose(later["positions.rope.q_rotated"].data, today["positions.rope.q_rotated"].data)
    np.testing.assert_allclose(
        later["positions.rope.scores"].data, today["positions.rope.scores"].data, rtol=0, atol=1e-13
    )
    # one place later is what the sentence's tail gets behind any first token
    behind = run(today.model, [[1024, *today.ids[0].tolist()]])
    np.testing.assert_allclose(
        today["positions.later.scores"].data[0, 0], behind["layers.0.attention.scores"].data[0, 0, 1:, 1:],
        rtol=0, atol=1e-13,
    )
    moved = today["positions.later.scores"].data - today["positions.learned.scores"].data
    assert np.abs(moved).max() > 1
