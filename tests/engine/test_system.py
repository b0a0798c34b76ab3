"""Both flows at once: what training makes of the sentence, and what inference appends, against plain NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine import Edit, EditError, Model, Trace, presets, programs, run
from engine.generation import generate
from engine.variants import variant
from tests.engine.support import Array, slope

EVERY_PRESET = pytest.mark.parametrize("preset", presets.NAMES)


def both_flows(preset: str, *edits: Edit, **architecture: Any) -> Trace:
    model = presets.load(preset)
    assert model.tokenizer is not None
    ids = model.tokenizer.encode(presets.SENTENCES[preset])
    own: Model = variant(model, **architecture) if architecture else model
    return run(own, ids, targets=[[*ids[1:], presets.TARGETS[preset]]], edits=edits, program=programs.of("system"))


def of_the_head(trace: Trace) -> tuple[str, Array]:
    """The head's table, and its gradient by hand: (p − 1 at the target) · what the head reads, over T."""
    targets = np.array(trace.circumstances.targets)[0]
    errors = np.array(trace["probabilities"].data[0])
    errors[np.arange(len(targets)), targets] -= 1.0
    return str(trace["lm_head.weight"].name), errors.T @ trace["final_norm.output"].data[0] / len(targets)


@EVERY_PRESET
def test_the_left_side(preset: str) -> None:
    trace = both_flows(preset)
    targets = np.array(trace.circumstances.targets)[0]
    likely = trace["probabilities"].data[0, np.arange(len(targets)), targets]
    assert trace["loss"].number(()) == pytest.approx(-np.log(likely).mean(), rel=1e-12)
    table, gradient = of_the_head(trace)
    if not trace.model.config.tied_head:
        np.testing.assert_allclose(trace[f"gradient.{table}"].data, gradient, rtol=0, atol=1e-14)
    # the gradients' joint length is limited to 1, as on the page of the optimizer
    share = min(1.0, 1.0 / (trace["optimizer.gradient_length"].number(()) + 1e-6))
    step = 0.01 * share * trace[f"gradient.{table}"].data
    np.testing.assert_allclose(trace[f"optimizer.sgd.{table}.change"].data, step, rtol=1e-13)
    np.testing.assert_allclose(trace[f"optimizer.sgd.{table}.updated"].data, trace[table].data - step, rtol=1e-13)


def test_the_length_is_that_of_all_gradients() -> None:
    """Of every parameter, each slope by small changes."""
    trace = both_flows("cats")
    squares = 0.0
    for name, array in trace.model.parameters.items():
        rows = [12, 45, 78] if name == "embedding.weight" else range(array.shape[0])
        for index in np.ndindex(*array.shape):
            if name != "lm_head.weight" and index[0] in rows:
                squares += slope(trace, "loss", (), name, index) ** 2
    squares += float((of_the_head(trace)[1] ** 2).sum())
    assert trace["optimizer.gradient_length"].number(()) == pytest.approx(np.sqrt(squares), rel=1e-7)


@EVERY_PRESET
@pytest.mark.parametrize("settings", [{}, {"temperature": 0.0}, {"top_k": 3.0, "seed": 5.0}], ids=str)
def test_the_right_side_is_the_loop_s_first_step(preset: str, settings: dict[str, float]) -> None:
    trace = both_flows(preset, *(Edit(f"choosing.{name}", (), value) for name, value in settings.items()))
    given = {"seed": 123, **{name: value if name == "temperature" else int(value) for name, value in settings.items()}}
    step = next(generate(trace.model, trace.ids, 1, **given))  # type: ignore[arg-type]
    ids = trace.ids[0].tolist()
    assert trace["system.prompt"].data[0].tolist() == ids
    assert trace["system.text"].data[0].tolist() == [*ids, step.token]
    assert trace["generating.drawn"].number((0, 0)) == step.token


@pytest.mark.parametrize("architecture", [
    {"causal": False}, {"tied_head": True}, {"norm": "none"}, {"residual": False}, {"logit_soft_cap": 15.0},
    {"norm": "layernorm", "norm_placement": "post", "bias": True, "positions": "learned", "max_positions": 32},
], ids=str)
def test_any_architecture(architecture: dict[str, Any]) -> None:
    trace = both_flows("scratch", **architecture)
    assert np.isfinite(trace["loss"].data)
    assert trace["optimizer.gradient_length"].number(()) > 0
    assert trace["system.text"].shape == (1, 6)


def test_the_settings_of_one_side_leave_the_other_alone() -> None:
    plain = both_flows("cats")
    hasty = both_flows("cats", Edit("optimizer.learning_rate", (), 0.5))
    cold = both_flows("cats", Edit("choosing.temperature", (), 0.0))
    changed = "optimizer.sgd.lm_head.weight.updated"
    assert not np.array_equal(hasty[changed].data, plain[changed].data)
    for name in ("loss", "optimizer.gradient_length", "system.text", "logits"):
        np.testing.assert_array_equal(hasty[name].data, plain[name].data)
    assert cold["system.text"].data[0].tolist() == [12, 45, 78, 90]
    np.testing.assert_array_equal(cold[changed].data, plain[changed].data)


def test_a_large_vocabulary_is_looked_at_by_the_row() -> None:
    """What a board shows of the step of a table with 50257 rows is one of them."""
    trace = both_flows("today")
    table, size = "embedding.weight", trace.model.config.hidden_size
    flat = 5120 * size + np.arange(size)
    for name in (f"optimizer.sgd.{table}.change", f"optimizer.sgd.{table}.updated"):
        assert trace[name].is_deferred
        np.testing.assert_array_equal(trace[name].take(flat), trace[name].data[5120])
    assert trace["optimizer.gradient_length"].take(np.zeros(2, dtype=np.int64)).tolist() == (
        [trace["optimizer.gradient_length"].number(())] * 2
    )


@pytest.mark.parametrize("name", ["system.prompt", "system.text"])
@pytest.mark.parametrize(("value", "code"), [
    (45.5, "not_whole"), (1e300, "out_of_bounds"), (256.0, "out_of_bounds"), (-1.0, "out_of_bounds"),
])
def test_a_token_is_a_whole_number_of_the_vocabulary(name: str, value: float, code: str) -> None:
    with pytest.raises(EditError) as raised:
        both_flows("cats", Edit(name, (0, 0), value))
    assert raised.value.code == code
    assert both_flows("cats", Edit(name, (0, 0), 255.0))[name].data[0, 0] == 255.0


def test_ids_are_copied_as_numbers_of_the_model() -> None:
    model = presets.load("cats")
    trace = both_flows("cats")
    assert trace["system.prompt"].data.dtype == trace["system.text"].data.dtype == model.dtype
    assert trace["system.prompt"].data.tolist() == trace.ids.tolist()
