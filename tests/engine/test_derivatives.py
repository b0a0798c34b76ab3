"""Derivatives of the table's rows that no page differentiates, against differences; and where none is right."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest

from engine import ModelConfig, Trace, gradient, programs, run
from engine.operations import OPERATIONS
from engine.plan import Scope, Value
from engine.programs.question import Question
from engine.rows import stop
from engine.training import Setting
from tests.engine.support import assert_explained, model_with, slope

IDS, TARGETS = [3, 1, 3, 5], [[1, 3, 5, 2]]
# steps, choices and draws: small changes move nothing; the largest number of softmax cancels
STOPS = {"at_least", "positive", "max", "order", "draw", "count", "leader", "rank", "uniform", "normal"}


def _made(scope: Scope, config: ModelConfig) -> dict[str, Value]:
    """Each row on numbers that small changes of the model move."""
    apply = scope.builder.apply
    table, stream, ids = scope.find("lm_head.weight"), scope.find("final_norm.output"), scope.find("input_ids")
    logits = scope.find("logits")
    constants = {"limit": 0.7, "beta": 0.9, "step": 3.0}
    limit, beta, step = (scope.constant(name, (), np.array(value)) for name, value in constants.items())
    total, angles = apply("collapse", stream, kept=()), scope.find("rope.frequencies")
    turned = scope.find("layers.0.attention.q_rotated")
    pairs = apply("contract", turned, turned, equation="b h t d, b h t d -> t d", axes=("position", "head_feature"))
    order = apply("order", logits)
    return {
        "collapse": apply("collapse", scope.find("layers.0.attention.weights"), kept=(1, 3)),
        "unpick": apply("unpick", apply("mean", stream, axis="feature"), ids, size=config.vocab_size),
        "scatter": apply("scatter", stream, ids, rows=config.vocab_size),
        "pad_rows": apply("pad_rows", apply("rows", table, first=1, count=3), first=2, rows=7),
        "place": apply("place", stream, axis="step", number=1, index=2, size=4),
        "fold_pairs": apply("fold_pairs", pairs, pairing=config.rope_pairing),
        "concatenate": apply("concatenate", stream, apply("square", stream), axis="position"),
        "ungather": apply("ungather", apply("gather", logits, order), order, axis="vocabulary"),
        "spread_from": apply("spread_from", total, first=2, size=4, axis="rank"),
        "power": apply("power", beta * total, step),
        "clipped": apply("clip_share", limit, apply("square", apply("scale", total, factor=9.0))),
        "unclipped": apply("clip_share", limit, apply("scale", limit, factor=0.1)),
        "entropy_slope": apply("entropy_slope", scope.find("probabilities")),
        "soft_cap_slope": apply("soft_cap_slope", stream, cap=2.0),
        "largest": apply("largest", logits, axis="vocabulary"),
        "frequencies": apply("collapse", angles, kept=(0,)),
    }


def every_row(scope: Scope, config: ModelConfig) -> None:
    """all.NAME = Σ uneven · NAME², so that each cell gets an upstream gradient of its own."""
    inside = scope.at("all")
    for name, value in _made(scope, config).items():
        uneven = np.cos(1.0 + np.arange(prod(value.shape))).reshape(value.shape)
        weighed = value * value * inside.constant(f"{name}_uneven", value.axes, uneven)
        inside.record(name, scope.builder.apply("collapse", weighed, kept=()))


def traced(pairing: str = "interleaved") -> Trace:
    return run(model_with(hidden_size=8, heads=2, rope_pairing=pairing), IDS, program=every_row)


@pytest.mark.parametrize("pairing", ["interleaved", "half"])
def test_every_path_counts(pairing: str) -> None:
    trace = traced(pairing)
    for target in (name for name in trace if name.startswith("all.") and not name.endswith("_uneven")):
        gradients = gradient(trace, target, ())
        assert len(gradients) > 2, target
        for name in gradients:
            if trace[name].op in ("parameter", "constant") and not name.endswith(("_uneven", "step", "causal_mask")):
                cells = list(np.ndindex(*trace[name].shape))
                for index in (cells[0], cells[len(cells) // 2], cells[-1]):
                    expected = slope(trace, target, (), name, index)
                    found = gradients[name].number(index)
                    assert found == pytest.approx(expected, rel=1e-6, abs=1e-6), (target, name, index)


def test_derivatives_explain_themselves() -> None:
    trace = traced()
    for target in ("all.largest", "all.clipped", "all.fold_pairs", "all.concatenate", "all.power"):
        assert_explained(gradient(trace, target, ()))


def test_where_no_gradient_passes_is_said() -> None:
    assert {name for name, row in OPERATIONS.items() if row.derivative is stop} == STOPS


def test_of_equal_numbers_the_first_is_the_largest() -> None:
    """As everywhere, the lower id counts as larger; a share for each would add up to more than there is."""
    model = model_with({"lm_head.weight": np.zeros((7, 4))}, hidden_size=4)
    trace = run(model, IDS, program=programs.of("lens", Question(1, 2)))
    gradients = gradient(trace, "lens.embedding.leading_probability", (0, 1))
    assert gradients["lens.embedding.probabilities"].data[0, 1].tolist() == [1, 0, 0, 0, 0, 0, 0]


def test_a_step_of_training_is_followed_to_its_start() -> None:
    """∂ (updated weight) / ∂ (the weight), by way of the gradient and of its length, too."""
    model = model_with(hidden_size=4, heads=2)
    trace = run(model, IDS, targets=TARGETS, program=Setting("sgd", clips=True).program)
    target = "optimizer.sgd.final_norm.weight.updated"
    gradients = gradient(trace, target, (0,))
    for name in ("final_norm.weight", "lm_head.weight", "layers.0.attention.Wq", "optimizer.clip"):
        for index in list(np.ndindex(*trace[name].shape))[:3]:
            expected = slope(trace, target, (0,), name, index)
            assert gradients[name].number(index) == pytest.approx(expected, rel=1e-6, abs=1e-9), (name, index)
