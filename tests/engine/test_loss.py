"""Cross-entropy by hand, its numbers on the lesson's board, and what is wrong with targets."""

from __future__ import annotations

import math

import numpy as np
import pytest

from engine import Edit, InputError, Model, ModelConfig, Trace, explain, plan, presets, programs, run
from engine.trace import forward_plan
from engine.types import Array
from engine.variants import variant
from tests.engine.support import again, assert_explained, model_with

IDS, TARGETS = [[12, 45, 78]], [[45, 78, 90]]
LOSS = programs.of("loss")


@pytest.fixture(scope="module")
def cats_loss(cats: Model) -> Trace:
    return run(cats, IDS, targets=TARGETS, program=LOSS)


def by_hand(logits: Array, targets: list[list[int]]) -> Array:
    """−ln p of every target, from p itself."""
    exponential = np.exp(logits)
    odds = exponential / exponential.sum(axis=-1, keepdims=True)
    picked = [[odds[b, t, target] for t, target in enumerate(row)] for b, row in enumerate(targets)]
    return np.asarray(-np.log(picked))


def test_cats(cats_loss: Trace) -> None:
    surprise = by_hand(cats_loss["logits"].data, TARGETS)
    np.testing.assert_allclose(cats_loss["loss.per_position"].data, surprise, rtol=1e-13)
    assert cats_loss["loss"].shape == ()
    assert round(cats_loss["loss"].number(()), 4) == 5.2490
    assert cats_loss["loss.target_probability"].data[0, 2] == cats_loss["probabilities"].data[0, 2, 90]
    assert cats_loss["targets"].data.tolist() == TARGETS


@pytest.mark.parametrize("preset", presets.NAMES)
def test_the_lesson_s_numbers(preset: str) -> None:
    model = presets.load(preset)
    assert model.tokenizer is not None
    ids = model.tokenizer.encode(presets.SENTENCES[preset])
    targets = [[*ids[1:], presets.TARGETS[preset]]]
    trace = run(model, [ids], targets=targets, program=LOSS)
    surprise = by_hand(trace["logits"].data, targets)
    number = {name: trace[f"loss.{name}"].number(()) for name in ("uniform", "perplexity", "together", "product")}
    assert trace["loss"].number(()) == pytest.approx(surprise.mean(), rel=1e-12)
    assert number["uniform"] == math.log(model.config.vocab_size)
    assert number["perplexity"] == pytest.approx(math.exp(surprise.mean()), rel=1e-12)
    assert number["together"] == pytest.approx(surprise.sum(), rel=1e-12)
    assert number["product"] == pytest.approx(np.prod(np.exp(-surprise)), rel=1e-11)
    wanted = np.zeros(trace["logits"].shape)
    for position, target in enumerate(targets[0]):
        wanted[0, position, target] = 1
    np.testing.assert_array_equal(trace["loss.wanted"].data, wanted)
    error = trace["probabilities"].data - wanted
    np.testing.assert_array_equal(trace["loss.error"].data, error)
    np.testing.assert_allclose(trace["gradient.logits"].data, error / len(ids), rtol=0, atol=1e-15)


def test_a_uniform_guess_costs_ln_v() -> None:
    """With a head of zeros every token has 1/V."""
    model = model_with({"lm_head.weight": np.zeros((7, 4))}, hidden_size=4)
    trace = run(model, [[1, 2, 6]], targets=[[2, 6, 0]], program=LOSS)
    np.testing.assert_allclose(trace["loss.per_position"].data, math.log(7), rtol=1e-15)
    assert trace["loss.perplexity"].number(()) == pytest.approx(7, rel=1e-14)


def test_a_batch_is_the_mean_over_its_positions() -> None:
    model = model_with(hidden_size=4)
    ids, targets = [[1, 2, 1], [5, 5, 0]], [[2, 1, 6], [5, 0, 0]]
    both = run(model, ids, targets=targets)
    alone = [run(model, [row], targets=[wanted])["loss"].number(()) for row, wanted in zip(ids, targets, strict=True)]
    np.testing.assert_allclose(both["loss.per_sequence"].data, alone, rtol=1e-13)
    assert both["loss"].number(()) == pytest.approx(sum(alone) / 2, rel=1e-13)


def test_certain_and_wrong_is_dear_but_finite(cats: Model) -> None:
    """p is 0 in double precision; the loss comes straight from the logits."""
    edits = [Edit("logits", (0, 2, 90), -2000.0), Edit("logits", (0, 0, 45), 2000.0)]
    trace = run(cats, IDS, targets=TARGETS, edits=edits)
    assert trace["loss.target_probability"].data[0, 2] == 0
    others = trace["logits"].data[0, 2]
    expected = 2000 + math.log(sum(math.exp(logit) for logit in others if logit > -1000))
    assert trace["loss.per_position"].data[0, 2] == pytest.approx(expected, rel=1e-12)
    assert trace["loss.per_position"].data[0, 0] == 0, "certain and right"


def test_every_cell_explains_itself() -> None:
    model = model_with(hidden_size=4, layers=1)
    trace = run(model, [[1, 2, 1], [5, 5, 0]], targets=[[2, 1, 6], [5, 0, 0]], program=LOSS,
                edits=[Edit("loss.target_shifted", (0, 1), -0.5), Edit("logits", (1, 2, 0), 0.25)])
    assert_explained(trace)
    cell = explain(trace, "loss.target_probability", (1, 0))
    assert [(term.name, term.index) for term in cell.terms] == [("probabilities", (1, 0, 5)), ("targets", (1, 0))]


def test_a_run_with_targets_and_no_program_records_the_loss(cats: Model, cats_loss: Trace) -> None:
    plain = run(cats, IDS, targets=TARGETS)
    assert plain["loss"].number(()) == cats_loss["loss"].number(())
    assert "gradient.logits" not in plain
    other = run(cats, IDS, targets=[[45, 78, 91]], base=plain)
    assert other["loss"].number(()) == run(cats, IDS, targets=[[45, 78, 91]])["loss"].number(())
    assert other["loss"].number(()) != plain["loss"].number(())


def test_an_edit_computes_again_what_a_full_run_does(cats_loss: Trace) -> None:
    edits = [Edit("layers.0.attention.Wq", (0, 1), 0.5), Edit("loss.vocabulary_size", (), 100.0)]
    trace, full = again(cats_loss, edits, base=cats_loss), again(cats_loss, edits)
    for name in trace:
        assert trace[name].data.tobytes() == full[name].data.tobytes(), name
    assert trace["loss.uniform"].number(()) == math.log(100)


@pytest.mark.parametrize(("targets", "code"), [
    ([[45, 78]], "targets_shape"), ([[45, 78, 90], [45, 78, 90]], "targets_shape"),
    ([[45, 78, 256]], "id_out_of_range"),
    ([[45, 78, -1]], "id_out_of_range"), ([], "empty"), ([[0.5, 1, 2]], "not_ids"), (None, "no_targets"),
])
def test_targets_that_do_not_fit(cats: Model, targets: list[list[int]] | None, code: str) -> None:
    with pytest.raises(InputError) as raised:
        run(cats, IDS, targets=targets, program=LOSS)
    assert raised.value.code == code


def test_a_capped_head_is_compared_after_its_cap() -> None:
    model = variant(presets.load("scratch"), logit_soft_cap=2.0)
    trace = run(model, [[0, 2, 3]], targets=[[2, 3, 4]], program=LOSS)
    np.testing.assert_allclose(
        trace["loss.per_position"].data, by_hand(trace["logits"].data, [[2, 3, 4]]), rtol=1e-13
    )
    assert "gradient.logits.uncapped" not in trace


def test_a_large_vocabulary_gives_what_a_small_one_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """Deferred, position by position, and computed at once."""
    config = ModelConfig(vocab_size=5003, hidden_size=6, layers=1, heads=1, mlp_size=5)
    generator = np.random.default_rng(2)
    model = Model(config, {name: generator.normal(size=shape) for name, shape in config.parameter_shapes().items()})
    ids, targets, program = [[7, 5002, 7], [0, 3, 5]], [[5002, 0, 7], [3, 3, 9]], programs.of("backward")
    deferred = run(model, ids, targets=targets, program=program)
    assert deferred["loss"].is_deferred
    monkeypatch.setattr(plan, "LARGE_VOCABULARY", 10_000)
    forward_plan.cache_clear()
    at_once = run(model, ids, targets=targets, program=program)
    forward_plan.cache_clear()
    assert not at_once["loss"].is_deferred
    for name, tensor in at_once.items():
        np.testing.assert_allclose(deferred[name].data, tensor.data, rtol=1e-11, atol=1e-14, err_msg=name)
