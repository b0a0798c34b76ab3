"""The weights of `today` make the second article's example true: its printed rows, scores and probabilities."""

from __future__ import annotations

import numpy as np
import pytest

from engine import Model, Trace, run
from tools.make_today import CONFIG, FILE, IDS, make

# from the article's text, not from the script
ROWS = {1024: [0.1, -0.2, 0.3], 2048: [0.4, 0.1, -0.5], 3072: [0.2, 0.7, 0.1], 4096: [-0.3, 0.5, 0.2]}
TABLE = [[2.3], [0.5, 3.1], [0.1, 2.2, 1.8], [0.2, 1.1, 2.0, 2.5], [0.3, 0.8, 0.9, 1.2, 1.5]]
WEIGHTS = [0.0976, 0.1608, 0.1778, 0.2399, 0.3239]


@pytest.fixture(scope="module")
def trace() -> Trace:
    stored = dict(np.load(FILE, allow_pickle=False))
    table = np.zeros((CONFIG.vocab_size, CONFIG.hidden_size))
    table[stored.pop("embedding.rows")] = stored.pop("embedding.values")
    return run(Model(CONFIG, {**stored, "embedding.weight": table}), [[1024, 2048, 2048, 3072, 4096]])


def test_printed_embedding_rows_and_two_positions_of_one_row(trace: Trace) -> None:
    for token, printed in ROWS.items():
        assert trace["embedding.weight"].data[token, :3].tolist() == printed
    tokens, summed = trace["embedding.output"].data[0], trace["embedding.sum"].data[0]
    np.testing.assert_array_equal(tokens[1], tokens[2])
    assert not np.array_equal(summed[1], summed[2])


def test_the_fifteen_visible_scores(trace: Trace) -> None:
    scores = trace["layers.0.attention.scores"].data[0, 0]
    for row, visible in enumerate(TABLE):
        np.testing.assert_allclose(scores[row, :row + 1], visible, rtol=0, atol=1e-12)
    np.testing.assert_allclose(trace["layers.0.attention.weights"].data[0, 0, 4], WEIGHTS, atol=5e-5)


def test_the_last_query_begins_as_printed(trace: Trace) -> None:
    np.testing.assert_allclose(trace["layers.0.attention.q"].data[0, 4, :2], [0.8, 0.1], atol=1e-12)


def test_the_three_probabilities_and_the_rest(trace: Trace) -> None:
    probabilities = trace["probabilities"].data[0, 4]
    ranked = np.argsort(-probabilities)[:3]
    np.testing.assert_allclose(probabilities[ranked], [0.85, 0.10, 0.02], atol=1e-12)
    assert not set(ranked.tolist()) & set(IDS)
    assert probabilities.sum() == pytest.approx(1.0, abs=1e-12)


def test_the_stored_weights_are_those_that_the_script_solves() -> None:
    stored, made = np.load(FILE, allow_pickle=False), make()
    table = made.pop("embedding.weight")
    np.testing.assert_allclose(stored["embedding.values"], table[stored["embedding.rows"]], atol=1e-9)
    for name, array in made.items():
        np.testing.assert_allclose(stored[name], array, atol=1e-9, err_msg=name)
