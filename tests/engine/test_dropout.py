"""Dropout: against PyTorch under its own mask, by hand, and by the mean over many masks."""

from __future__ import annotations

import numpy as np
import pytest

from engine import Edit, EditError, Trace, presets, programs, run
from engine.chance import whole_seed
from engine.programs.dropout import MASKS
from engine.variants import variant
from tests.engine.support import assign, model_with
from tests.engine.test_parts import PartsReference

PROGRAM = programs.of("dropout")
ARRAYS = PartsReference().arrays


@pytest.fixture(scope="module")
def today() -> Trace:
    return run(presets.load("today"), "今天天气真", program=PROGRAM)


def changed(trace: Trace, **constants: float) -> Trace:
    edits = [Edit(f"dropout.{name}", (), value) for name, value in constants.items()]
    return run(trace.model, trace.ids, edits=edits, base=trace, program=PROGRAM)


def test_under_pytorch_s_mask_the_result_is_pytorch_s() -> None:
    x, dropped, p = (ARRAYS[f"dropout/{name}"] for name in ("x", "training", "p"))
    # draws that keep what PyTorch kept
    draws = np.where(dropped != 0, 0.9, 0.1)
    edits = [*assign("layers.0.mlp.output", x, 0), *assign("dropout.draws", draws, 0), Edit("dropout.p", (), p.item())]
    trace = run(model_with(hidden_size=8), [0, 1, 2], edits=edits, program=PROGRAM)
    np.testing.assert_allclose(trace["dropout.dropped"].data[0], dropped, rtol=1e-15)


def test_the_mask_drops_or_scales(today: Trace) -> None:
    draws, mask = (today[f"dropout.{name}"].data for name in ("draws", "mask"))
    assert float(today["dropout.p"].data) == today.model.config.dropout == 0.1
    np.testing.assert_array_equal(mask, np.where(draws < 0.1, 0.0, 1 / 0.9))
    assert 0 < (mask == 0).sum() < 20
    np.testing.assert_array_equal(today["dropout.dropped"].data, today["layers.0.mlp.output"].data * mask)


def test_h_final_in_training_and_at_inference(today: Trace) -> None:
    """h_final = h_att + Dropout(h_ffn), and without dropout the layer's own output."""
    stream, dropped = today["layers.0.residual1"].data, today["dropout.dropped"].data
    np.testing.assert_array_equal(today["dropout.h_final"].data, stream + dropped)
    off = changed(today, p=0.0)
    np.testing.assert_array_equal(off["dropout.h_final"].data, off["layers.0.output"].data)
    assert (off["dropout.mask"].data == 1).all()


def test_inference_is_untouched_by_every_constant(today: Trace) -> None:
    other = changed(today, p=0.5, seed=7.0)
    assert not np.array_equal(other["dropout.mask"].data, today["dropout.mask"].data)
    np.testing.assert_array_equal(other["layers.0.output"].data, today["layers.0.output"].data)


def test_draws_are_numpy_s_and_repeat(today: Trace) -> None:
    expected = np.random.default_rng(1).random(60 + MASKS * 12)
    np.testing.assert_array_equal(today["dropout.draws"].data.ravel(), expected[:60])
    np.testing.assert_array_equal(today["dropout.many.draws"].data.ravel(), expected[60:])
    np.testing.assert_array_equal(changed(today, seed=1.0)["dropout.draws"].data, today["dropout.draws"].data)


@pytest.mark.parametrize(("number", "seed"), [
    (3.0, 3), (3.9, 3), (-3.0, 3), (0.0, 0), (1e300, int(1e300)), (float("inf"), 0), (float("nan"), 0),
])
def test_any_number_stands_for_a_seed(number: float, seed: int) -> None:
    assert whole_seed(number) == seed


@pytest.mark.parametrize("p", [0.1, 0.5, 0.8])
@pytest.mark.parametrize("seed", [1.0, 2.0])
def test_the_expected_value_stays(today: Trace, p: float, seed: float) -> None:
    """A mask has mean 1 and variance p/(1 − p): over 250 masks the mean strays by √(p/(1 − p)/250)."""
    trace = changed(today, p=p, seed=seed)
    spread = np.sqrt(p / (1 - p) / MASKS)
    assert np.abs(trace["dropout.many.mean_mask"].data - 1).max() < 4 * spread
    kept = trace["dropout.many.draws"].data >= p
    np.testing.assert_allclose(trace["dropout.many.mean_mask"].data, kept.mean(axis=0) / (1 - p), rtol=1e-12)
    np.testing.assert_allclose(
        trace["dropout.many.mean_dropped"].data[0],
        trace["layers.0.mlp.output"].data[0, -1] * trace["dropout.many.mean_mask"].data, rtol=1e-15,
    )


@pytest.mark.parametrize(("name", "value"), [
    ("p", 1.0), ("p", -0.1), ("seed", 1.5), ("seed", -1.0),
])
def test_what_no_mask_can_be_drawn_with_is_refused(today: Trace, name: str, value: float) -> None:
    with pytest.raises(EditError):
        changed(today, **{name: value})


@pytest.mark.parametrize(("changes", "added"), [
    ({}, "layers.1.residual1"), ({"norm_placement": "post"}, "layers.1.norm1.output"),
    ({"norm_placement": "post", "norm": "none"}, "layers.1.residual1"), ({"residual": False}, None),
])
def test_what_the_output_is_added_to(changes: dict[str, object], added: str | None) -> None:
    trace = run(variant(presets.load("cats"), **changes), "Cats sit on", program=PROGRAM)
    stream = 0.0 if added is None else trace[added].data
    np.testing.assert_array_equal(trace["dropout.h_final"].data, stream + trace["dropout.dropped"].data)
    assert ("dropout.h_att" in trace) == (added is not None)
    # a model without dropout of its own shows the usual share
    assert float(trace["dropout.p"].data) == 0.1
