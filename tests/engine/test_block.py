"""What the lesson on the GPT-2 block computes: softmax of the article's printed scores beside its printed weights."""

from __future__ import annotations

from math import exp

import numpy as np
import pytest

from engine import Edit, Trace, explain, presets, programs, run
from tests.engine.support import assert_explained, bits

# from the article's text: the row of 真 in step 6, the weights in step 7
SCORES = [0.3, 0.8, 0.9, 1.2, 1.5]
PRINTED = [0.1, 0.2, 0.2, 0.25, 0.25]


@pytest.fixture(scope="module", params=presets.NAMES)
def trace(request: pytest.FixtureRequest) -> Trace:
    model = presets.load(request.param)
    return run(model, presets.SENTENCES[request.param], program=programs.of("block"))


def test_softmax_of_the_printed_scores(trace: Trace) -> None:
    total = sum(map(exp, SCORES))
    assert trace["block.scores"].data.tolist() == SCORES
    np.testing.assert_allclose(trace["block.weights"].data, [exp(score) / total for score in SCORES], rtol=1e-14)
    np.testing.assert_allclose(trace["block.weights"].data, [0.0976, 0.1608, 0.1778, 0.2399, 0.3239], atol=5e-5)


def test_the_print_is_off(trace: Trace) -> None:
    assert trace["block.printed_weights"].data.tolist() == PRINTED
    np.testing.assert_allclose(trace["block.difference"].data, [0.0024, 0.0392, 0.0222, 0.0101, -0.0739], atol=1e-4)
    assert abs(trace["block.difference"].data.sum()) < 1e-15


def test_no_scores_but_these_give_the_printed_weights() -> None:
    """Equal weights need equal scores: with ln w for scores softmax gives w back."""
    trace = run(
        presets.load("cats"), "Cats", program=programs.of("block"),
        edits=[Edit("block.scores", (place,), float(np.log(weight))) for place, weight in enumerate(PRINTED)],
    )
    np.testing.assert_allclose(trace["block.weights"].data, PRINTED, rtol=1e-14)
    np.testing.assert_allclose(trace["block.difference"].data, 0, atol=1e-15)


def test_the_real_row_of_the_preset_is_the_same() -> None:
    trace = run(presets.load("today"), presets.SENTENCES["today"], program=programs.of("block"))
    row = trace["layers.0.attention.weights"].data[0, 0, 4]
    np.testing.assert_allclose(row, trace["block.weights"].data, atol=1e-12)


def test_the_model_s_numbers_are_untouched(trace: Trace) -> None:
    plain = run(trace.model, trace.ids)
    names = [name for name in plain if "vocabulary" not in plain[name].axes]
    assert [bits(plain[name]) for name in names] == [bits(trace[name]) for name in names]
    assert list(trace)[:len(plain)] == list(plain)


def test_every_cell_explains_itself() -> None:
    trace = run(presets.load("cats"), "Cats sit", program=programs.of("block"))
    assert_explained(trace)
    cell = explain(trace, "block.difference", (4,))
    assert [term.name for term in cell.terms] == ["block.printed_weights", "block.weights"]
