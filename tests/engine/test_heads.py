"""What heads' weights come to by query and by key: against loops, on every preset and architecture."""

from __future__ import annotations

from math import exp, log

import numpy as np
import pytest
from numpy.testing import assert_allclose

from engine import Edit, Trace, presets, run
from engine.programs import heads
from engine.variants import variant
from tests.engine.support import assert_explained, model_with

EVERY_PRESET = pytest.mark.parametrize("preset", presets.NAMES)
MODEL = model_with(hidden_size=6, heads=3, layers=2, vocab_size=9, positions="none")


def check(trace: Trace) -> None:
    """Every number of the program by loops over queries and keys."""
    causal, length = trace.model.config.causal, trace.ids.shape[1]
    counted = range(1, length) if causal and length > 1 else range(length)
    for layer in range(trace.model.config.layers):
        weights = trace[f"layers.{layer}.attention.weights"].data
        own = {name: trace[f"heads.{layer}.{name}"].data for name in ("received", *heads.BY_QUERY)}
        for batch, head in np.ndindex(*weights.shape[:2]):
            table = weights[batch, head].tolist()
            for key in range(length):
                column = [table[query][key] for query in range(length) if not causal or query >= key]
                assert_allclose(own["received"][batch, head, key], sum(column) / len(column), rtol=1e-12)
            for query, row in enumerate(table):
                entropy = -sum(weight * log(weight) for weight in row if weight)
                expected = {
                    "on_itself": row[query], "on_previous": row[query - 1] if query else 0.0, "on_first": row[0],
                    "entropy": entropy, "effective": exp(entropy),
                }
                for name, number in expected.items():
                    assert_allclose(own[name][batch, head, query], number, rtol=1e-12, atol=1e-15)
            for name in heads.BY_QUERY:
                assert_allclose(
                    trace[f"heads.{layer}.mean_{name}"].data[batch, head],
                    np.mean([own[name][batch, head, query] for query in counted]), rtol=1e-12, atol=1e-15,
                )


@EVERY_PRESET
@pytest.mark.parametrize("changes", [{}, {"causal": False}, {"scale_scores": False}, {"norm": "none"}], ids=str)
def test_by_loops(preset: str, changes: dict[str, object]) -> None:
    model = variant(presets.load(preset), **changes)
    check(run(model, presets.SENTENCES[preset], program=heads.program))


@pytest.mark.parametrize("ids", [[[3]], [[3, 3]], [[1, 2, 1, 2, 1], [8, 7, 6, 5, 4]]], ids=["one", "twice", "batch"])
def test_other_sentences(ids: list[list[int]]) -> None:
    check(run(MODEL, ids, program=heads.program))


def test_equal_tokens_are_read_evenly() -> None:
    """Without positions all scores of a row are equal: t + 1 positions are read, each with weight 1/(t + 1)."""
    trace = run(MODEL, [4, 4, 4, 4], program=heads.program)
    assert_allclose(trace["heads.0.effective"].data[0, 1], [1, 2, 3, 4], rtol=1e-12)
    assert_allclose(trace["heads.0.on_first"].data[0, 2], [1, 1 / 2, 1 / 3, 1 / 4], rtol=1e-12)
    assert_allclose(trace["heads.0.received"].data[0, 0, 3], 1 / 4, rtol=1e-12)
    assert_allclose(trace["heads.0.received"].data[0, 0, 0], (1 + 1 / 2 + 1 / 3 + 1 / 4) / 4, rtol=1e-12)


def test_a_head_that_reads_the_position_before() -> None:
    edits = [
        Edit("layers.1.attention.weights", (0, 2), 0.0),
        *(Edit("layers.1.attention.weights", (0, 2, query, max(query - 1, 0)), 1.0) for query in range(4)),
    ]
    trace = run(MODEL, [1, 2, 3, 4], edits=edits, program=heads.program)
    own = {name: trace[f"heads.1.mean_{name}"].data[0, 2] for name in heads.BY_QUERY}
    assert own == {"on_itself": 0.0, "on_previous": 1.0, "on_first": 1 / 3, "entropy": 0.0, "effective": 1.0}
    assert trace["heads.1.received"].data[0, 2].tolist() == [2 / 4, 1 / 3, 1 / 2, 0.0]


def test_a_row_with_nothing_to_read_is_finite() -> None:
    edit = Edit("layers.0.attention.masked_scores", (0, 0, 0, 0), -np.inf)
    trace = run(MODEL, [1, 2], edits=[edit], program=heads.program)
    assert all(np.isfinite(trace[name].data).all() for name in trace if name.startswith("heads."))
    assert trace["heads.0.on_itself"].data[0, 0, 0] == 0


def test_every_cell_explains_itself() -> None:
    assert_explained(run(MODEL, [1, 2, 1], program=heads.program))
