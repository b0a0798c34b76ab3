"""*Cats sit on* against numbers computed elsewhere: the golden file, and what the article prints."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray

from engine import Model, Trace, run
from tests.engine.support import assign

CATS, SIT, ON = 0, 1, 2
ATTENTION = "layers.0.attention"

PRINTED: list[tuple[str, tuple[int | slice, ...], ArrayLike]] = [
    ("embedding.weight", (0,), [0.1, 0.3, 0.2, 0.5]),
    ("embedding.weight", (255,), [0.4, 0.1, 0.3, 0.2]),
    ("embedding.output", (0,), [[0.2, -0.1, 0.4, 0.3], [-0.3, 0.5, 0.1, 0.2], [0.1, 0.2, -0.2, 0.6]]),
    ("layers.0.norm1.output", (0, ON), [0.2981, 0.5963, -0.5963, 1.7888]),
    (f"{ATTENTION}.q", (0, ON), [0.2981, 0.5963, -0.5963, 1.7888]),
    (f"{ATTENTION}.k", (0, ON), [0.2981, 0.5963, -0.5963, 1.7888]),
    (f"{ATTENTION}.v", (0, ON), [0.2981, 0.5963, -0.5963, 1.7888]),
    (f"{ATTENTION}.q_heads", (0, 0, ON), [0.2981, 0.5963]),
    (f"{ATTENTION}.q_heads", (0, 1, ON), [-0.5963, 1.7888]),
    (f"{ATTENTION}.k_heads", (0, 0), [[0.7303, -0.3651], [-0.9608, 1.6013], [0.2981, 0.5963]]),
    (f"{ATTENTION}.q_rotated", (0, 0, ON), [-0.6663, 0.0230]),
    (f"{ATTENTION}.k_rotated", (0, 0), [[0.7303, -0.3651], [-1.8665, 0.0567], [-0.6663, 0.0230]]),
    (f"{ATTENTION}.scores", (0, 0, ON), [-0.3500, 0.8803, 0.3143]),
    ("causal_mask", (), [[0.0, -np.inf, -np.inf], [0.0, 0.0, -np.inf], [0.0, 0.0, 0.0]]),
    (f"{ATTENTION}.weights", (0, 0, ON), [0.1571, 0.5376, 0.3053]),
    (f"{ATTENTION}.v_heads", (0, 0), [[0.7303, -0.3651], [-0.9608, 1.6013], [0.2981, 0.5963]]),
    (f"{ATTENTION}.head_output", (0, 0, ON), [-0.3108, 0.9856]),
    (f"{ATTENTION}.head_output", (0, 1, ON), [-0.5261, 1.7135]),
    (f"{ATTENTION}.merged", (0, ON), [-0.3108, 0.9856, -0.5261, 1.7135]),
    (f"{ATTENTION}.output", (0, ON), [-0.3108, 0.9856, -0.5261, 1.7135]),
    ("layers.0.norm2.output", (0, ON), [-0.1557, 0.8758, -0.5364, 1.7091]),
    ("layers.0.mlp.up", (0, ON), [-0.1557, 0.8758, -0.5364, 1.7091, 0.1557, -0.8758, 0.5364, -1.7091]),
    ("layers.0.mlp.activation", (0, ON), [0, 0.8758, 0, 1.7091, 0.1557, 0, 0.5364, 0]),
    ("layers.0.mlp.output", (0, ON), [0.1557, 0.8758, 0.5364, 1.7091]),
    ("layers.0.output", (0, ON), [-0.0551, 2.0614, -0.1897, 4.0226]),
    ("layers.1.output", (0, CATS), [3.1458, -0.1000, 6.2916, 4.7187]),
    ("layers.1.output", (0, SIT), [-0.2929, 6.6708, 3.4566, 3.6111]),
    ("layers.1.output", (0, ON), [-0.0134, 4.1119, -0.1371, 7.4768]),
    ("final_norm.mean_square", (0, ON), 18.2073),
    ("final_norm.rms", (0, ON), 4.2670),
    ("final_norm.output", (0, CATS), [0.7427, -0.0236, 1.4855, 1.1141]),
    ("final_norm.output", (0, SIT), [-0.0702, 1.5995, 0.8288, 0.8659]),
    ("final_norm.output", (0, ON), [-0.0031, 0.9637, -0.0321, 1.7522]),
    ("lm_head.weight", (slice(90, 93),), [[0.2, 0.4, 0.1, 0.3], [-0.2, 0.1, 0.4, -0.1], [0, 0, 0, 0]]),
    ("logits", (0, ON, 90), 0.9073),
    ("logits", (0, ON, 91), -0.0911),
    ("logits", (0, ON, 92), 0.0),
]


def test_every_golden_tensor(cats_trace: Trace, golden: dict[str, NDArray[np.float64]]) -> None:
    assert len(golden) == 63
    for name, expected in golden.items():
        assert cats_trace[name].data.dtype == np.float64
        np.testing.assert_allclose(cats_trace[name].data, expected, rtol=1e-12, atol=1e-12, err_msg=name)


@pytest.mark.parametrize(("name", "where", "printed"), PRINTED)
def test_what_the_article_prints(
    cats_trace: Trace, name: str, where: tuple[int | slice, ...], printed: ArrayLike
) -> None:
    actual, expected = cats_trace[name].data[where], np.asarray(printed, dtype=np.float64)
    assert actual.shape == expected.shape
    np.testing.assert_allclose(actual, expected, rtol=0, atol=0.5e-4)


def test_softmax_of_small_and_large_scores(cats: Model) -> None:
    """[1,2,3] → 9 %, 24 %, 67 %; [10,20,30] → 0 %, 0 %, 100 %."""
    name = f"{ATTENTION}.dot"
    root = np.sqrt(2.0)
    for scores, percent in (([1, 2, 3], [9, 24, 67]), ([10, 20, 30], [0, 0, 100])):
        trace = run(cats, "Cats sit on", edits=assign(name, np.multiply(scores, root), 0, 0, ON))
        weights = trace[f"{ATTENTION}.weights"].data[0, 0, ON]
        assert np.round(100 * weights).tolist() == percent


def test_all_other_rows_of_the_tables_are_zero(cats: Model) -> None:
    """The rows that the article does not print."""
    for name, printed in (("embedding.weight", {0, 12, 45, 78, 255}), ("lm_head.weight", {90, 91})):
        assert set(np.flatnonzero(cats.parameters[name].any(axis=1))) == printed


def test_mats_has_the_top_logit_and_less_than_one_per_cent(cats_trace: Trace) -> None:
    assert int(np.argmax(cats_trace["logits"].data[0, ON])) == 90
    assert cats_trace["probabilities"].data[0, ON, 90] < 0.01
