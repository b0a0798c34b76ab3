"""A model without one of its parts: what must be left, by hand and against models that never had the part."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from engine import Edit, Model, Trace, gradient, presets, run
from engine.config import ACTIVATIONS, NORMS, PLACEMENTS, POSITIONS
from engine.programs import of
from engine.variants import variant
from tests.engine.support import assert_explained, slope

PROGRAM = of("why_layers")


def traced(model: Model, sentence: str, *edits: Edit) -> Trace:
    return run(model, sentence, edits=edits, program=PROGRAM)


CHOICES: dict[str, tuple[object, ...]] = {
    "positions": POSITIONS, "norm": NORMS, "norm_placement": PLACEMENTS, "qk_norm": (True,), "scale_scores": (False,),
    "causal": (False,), "residual": (False,), "activation": ACTIVATIONS, "bias": (True, False),
    "tied_head": (True, False), "logit_soft_cap": (15.0,),
}


def variants() -> Iterator[tuple[str, dict[str, object]]]:
    for preset in presets.NAMES:
        yield from ((preset, {field: value}) for field, values in CHOICES.items() for value in values)
        yield preset, {"norm_placement": "post", "norm": "layernorm", "bias": True}
        yield preset, {"norm": "none", "norm_placement": "post", "residual": False}


@pytest.mark.parametrize(("preset", "changes"), [*variants()])
def test_without_activations_it_is_the_model_that_has_none(preset: str, changes: dict[str, object]) -> None:
    """The second model of the program, against the forward pass of a model configured so; every switch."""
    model = variant(presets.load(preset), **changes)
    trace = traced(model, presets.SENTENCES[preset])
    without = run(variant(model, activation="none"), presets.SENTENCES[preset])
    last = trace.ids.shape[1] - 1
    for name in ("logits", "probabilities"):
        np.testing.assert_allclose(
            trace[f"why_layers.{name}"].row(0, last), without[name].row(0, last), rtol=1e-12, atol=1e-15
        )
    for layer in range(model.config.layers):
        here = f"why_layers.layers.{layer}.mlp"
        one, two = (trace[f"{here}.{name}"].data for name in ("one_matrix", "output"))
        np.testing.assert_allclose(one, two, rtol=1e-9, atol=1e-12)


def test_the_mlp_of_cats_is_silent_without_relu(cats: Model) -> None:
    """W_up · W_down = I − I = 0: the same as leaving both MLPs out."""
    trace = traced(cats, "Cats sit on")
    for layer in (0, 1):
        assert not trace[f"why_layers.layers.{layer}.mlp.W_up_down"].data.any()
        assert not trace[f"why_layers.layers.{layer}.mlp.output"].data.any()
    mute = traced(cats, "Cats sit on", *(Edit(f"layers.{layer}.mlp.output", (), 0.0) for layer in (0, 1)))
    np.testing.assert_array_equal(trace["why_layers.logits"].data, mute["logits"].data)


def test_the_single_matrix_of_today() -> None:
    today = presets.load("today")
    trace = traced(today, presets.SENTENCES["today"])
    product = today.parameters["layers.0.mlp.W_up"] @ today.parameters["layers.0.mlp.W_down"]
    np.testing.assert_allclose(trace["why_layers.layers.0.mlp.W_up_down"].data, product, rtol=1e-12, atol=1e-14)


def test_every_cell_explains_itself_and_has_its_gradient(cats: Model) -> None:
    trace = traced(variant(cats, bias=True, activation="gelu_tanh", norm="layernorm"), "Cats sit on")
    target = ("why_layers.probabilities", (0, 2, 90))
    gradients = gradient(trace, *target)
    assert_explained(gradients)
    for name, index in (("layers.0.attention.Wq", (0, 1)), ("layers.1.mlp.W_down", (3, 2)), ("norm_epsilon", ())):
        expected = slope(trace, *target, name, index)
        assert float(gradients[name].data[index]) == pytest.approx(expected, rel=1e-6, abs=1e-10)


def test_edits_of_parameters_reach_both_models_and_overrides_the_first(cats: Model) -> None:
    before = traced(cats, "Cats sit on")
    head = traced(cats, "Cats sit on", Edit("lm_head.weight", (90, 0), 2.0))
    part = traced(cats, "Cats sit on", Edit("layers.0.attention.output", (), 0.0))
    changed = [
        [not np.array_equal(trace[name].data, before[name].data) for name in ("logits", "why_layers.logits")]
        for trace in (head, part)
    ]
    assert changed == [[True, True], [True, False]]


@pytest.mark.parametrize("preset", presets.NAMES)
def test_a_layer_left_out_hands_the_stream_on(preset: str) -> None:
    """x + 0 + 0 = x, to the last bit."""
    model = presets.load(preset)
    last = model.config.layers - 1
    enters = f"layers.{last - 1}.output" if last else (
        "embedding.sum" if model.config.positions == "learned" else "embedding.output"
    )
    trace = traced(
        model, presets.SENTENCES[preset],
        *(Edit(f"layers.{last}.{part}.output", (), 0.0) for part in ("attention", "mlp")),
    )
    np.testing.assert_array_equal(trace[f"layers.{last}.output"].data, trace[enters].data)


def test_what_an_mlp_adds_stays_at_its_position_until_attention_carries_it(cats: Model) -> None:
    """The MLP works on each position alone; in the next layer the later positions read of it, no earlier one."""
    before = traced(cats, "Cats sit on")
    after = traced(cats, "Cats sit on", Edit("layers.0.mlp.output", (0, 1, 2), 5.0))

    def moved(name: str) -> list[bool]:
        return (after[name].data != before[name].data).any(axis=-1)[0].tolist()
    assert moved("layers.0.output") == [False, True, False]
    assert moved("layers.1.output") == [False, True, True]


def test_a_second_layer_reads_what_the_first_has_read(cats: Model) -> None:
    """Cut what sit reads of Cats in layer 1: on hears of it in layer 2 only."""
    before = traced(cats, "Cats sit on")
    after = traced(cats, "Cats sit on", Edit("layers.0.attention.weights", (0, slice(None), 1, 0), 0.0))
    for name, differs in (("layers.0.output", False), ("layers.1.attention.output", True)):
        assert (not np.array_equal(after[name].data[0, 2], before[name].data[0, 2])) is differs
