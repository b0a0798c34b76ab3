"""Gradients of the loss as tensors of the trace: against differences, against PyTorch, by way of every consumer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine import Edit, EditError, Mean, Model, ModelConfig, Trace, gradient, plan, presets, programs, run
from engine.differences import five_point
from engine.trace import forward_plan
from tests.conftest import Arrays, Reference
from tests.engine.support import Array, again, assert_explained, assert_same_bits, model_with, slope
from tests.engine.test_gpt2_parts import VARIANTS

FILE = Path(__file__).parents[1] / "reference" / "gradients.npz"
BACKWARD = programs.of("backward")
# cells of a tensor with more of them, drawn from all over it
CELLS = 6
CLOSE = 1e-10
Ids = list[list[int]]

MODELS: dict[str, tuple[dict[str, Any], Ids, Ids]] = {
    "D = 16": ({"hidden_size": 32, "heads": 2}, [[1, 2, 3]], [[2, 3, 6]]),
    "T ≠ H, batch of two, repeated tokens": (
        {"hidden_size": 8, "heads": 4}, [[1, 2, 1, 2, 5], [3, 3, 3, 3, 3]], [[2, 1, 2, 5, 0], [3, 3, 3, 3, 6]],
    ),
    "one token": ({"hidden_size": 8, "heads": 2, "layers": 2}, [[4]], [[4]]),
    "GPT-2": ({"hidden_size": 8, "heads": 2, "layers": 2, "norm": "layernorm", "positions": "learned", "bias": True,
               "max_positions": 6, "activation": "gelu_tanh", "tied_head": True}, [[1, 2, 1, 6]], [[2, 1, 6, 0]]),
    "norms after": ({"hidden_size": 8, "heads": 2, "norm_placement": "post", "activation": "gelu_erf", "qk_norm": True,
                     "rope_direction": -1, "rope_pairing": "half"}, [[1, 2, 6]], [[2, 6, 0]]),
    "no norm, soft cap": ({"hidden_size": 8, "heads": 2, "norm": "none", "activation": "relu_squared", "causal": False,
                           "logit_soft_cap": 3.0}, [[1, 2, 6]], [[2, 6, 0]]),
    "no residual": ({"hidden_size": 8, "heads": 2, "residual": False, "positions": "none", "scale_scores": False,
                     "activation": "none"}, [[1, 2, 6]], [[2, 6, 0]]),
}
OVERRIDES = (
    Edit("layers.0.attention.head_output", (0, 1), 0.0),
    Edit("layers.1.attention.weights", (0, 0, 2, 1), 0.7),
    Edit("layers.0.attention.masked_scores", (0, 0, 2, 1), -inf),
    Edit("layers.1.residual1", (0, 2, 3), 0.4),
    Edit("layers.0.mlp.W_up", (slice(None), 2), 0.2),
    Edit("loss.per_position", (0, 0), 1.5),
)


def supervised(preset: str, *edits: Edit) -> Trace:
    model = presets.load(preset)
    assert model.tokenizer is not None
    ids = model.tokenizer.encode(presets.SENTENCES[preset])
    return run(model, [ids], targets=[[*ids[1:], presets.TARGETS[preset]]], program=BACKWARD, edits=edits)


def random(name: str, *edits: Edit) -> Trace:
    sizes, ids, targets = MODELS[name]
    return run(model_with(seed=3, **sizes), ids, targets=targets, program=BACKWARD, edits=edits)


def assert_follows(trace: Trace, cells: int = CELLS, every: int = 1, least: int = 100) -> None:
    """Gradients agree with five-point differences wherever a cell has neighbours and no kink is near."""
    generator = np.random.default_rng(1)
    compared = 0
    for name in gradients_of(trace)[::every]:
        shape = trace[name].shape
        size = int(np.prod(shape))
        for flat in generator.choice(size, min(cells, size), replace=False):
            index = tuple(int(part) for part in np.unravel_index(flat, shape))
            found = five_point(trace, name, index)
            if found is None or found.kink is not None:
                continue
            recorded = trace[f"gradient.{name}"].number(index)
            assert recorded == pytest.approx(found.slope, rel=CLOSE, abs=CLOSE), (name, index, found)
            compared += 1
    assert compared >= least


def gradients_of(trace: Trace) -> list[str]:
    return [name for name in trace if f"gradient.{name}" in trace]


@pytest.mark.parametrize("name", MODELS)
def test_every_tensor_follows(name: str) -> None:
    assert_follows(random(name))


@pytest.mark.parametrize("edits", [(), OVERRIDES], ids=["plain", "overridden"])
@pytest.mark.parametrize("preset", ["cats", "scratch"])
def test_every_tensor_of_a_preset_follows(preset: str, edits: Sequence[Edit]) -> None:
    assert_follows(supervised(preset, *edits), cells=4 if edits else 12)


def test_the_largest_number_of_a_row_is_held_fixed() -> None:
    """With a step of softmax set by hand it does not cancel: a difference sees it move, the gradient does not."""
    trace = supervised("scratch", Edit("probabilities.shifted", (0, 1, 5), -2.0))
    place = (0, 1, int(trace["logits"].data[0, 1].argmax()))
    found = five_point(trace, "logits", place)
    assert found is not None
    assert abs(found.slope - trace["gradient.logits"].number(place)) > 1e-3
    fixed = again(trace, [*trace.edits, Edit("probabilities.max", (), 1.5)])
    found = five_point(fixed, "logits", place)
    assert found is not None
    assert fixed["gradient.logits"].number(place) == pytest.approx(found.slope, abs=CLOSE)


def test_tensors_of_today_follow() -> None:
    """Over a vocabulary of 50257, position by position."""
    edits = [Edit("embedding.weight", (5120, 3), 0.5), Edit("logits", (0, 4, 5120), 2.0)]
    assert_follows(supervised("today", *edits), cells=1, every=6, least=10)


def test_every_cell_of_a_small_model_by_runs_alone() -> None:
    """With the tests' own differences, cell by cell, none left out."""
    model = model_with(hidden_size=4, heads=2, mlp_size=3, vocab_size=4, layers=1, activation="gelu_tanh")
    trace = run(model, [[1, 3, 1]], targets=[[3, 1, 0]], program=BACKWARD)
    for name in gradients_of(trace):
        for index in np.ndindex(*trace[name].shape):
            if np.isfinite(trace[name].data[index]):
                expected = slope(trace, "loss", (), name, index)
                assert trace[f"gradient.{name}"].number(index) == pytest.approx(expected, rel=1e-7, abs=1e-8), name


def test_all_that_the_loss_is_made_from_has_a_gradient() -> None:
    trace = supervised("scratch")
    apart = {"input_ids", "targets", "probabilities", "loss.target_probability"}
    forward = [name for name in trace if not name.startswith("gradient.")]
    assert set(forward) - set(gradients_of(trace)) == apart
    for name in gradients_of(trace):
        tensor = trace[f"gradient.{name}"]
        assert (tensor.axes, tensor.shape) == (trace[name].axes, trace[name].shape), name
        assert tensor.node.attributes["goal"] == "loss"


@pytest.fixture(scope="module")
def torch_gradients() -> Arrays:
    with np.load(FILE, allow_pickle=False) as stored:
        return dict(stored)


@pytest.mark.parametrize("name", ["random", "gpt2", "post_norm", "nanochat_like"])
def test_loss_and_every_gradient_agree_with_pytorch(name: str, reference: Reference, torch_gradients: Arrays) -> None:
    settings = json.loads(torch_gradients["settings"].item())
    if name == "random":
        model, ids = reference.model(), reference.ids
    else:
        model, ids = VARIANTS.model(name), VARIANTS.arrays["ids"]
    targets = settings["targets"]["random" if name == "random" else "gpt2"]
    trace = run(model, ids, targets=targets, program=BACKWARD)
    assert trace["loss"].number(()) == pytest.approx(torch_gradients[f"{name}/loss"].item(), rel=1e-13)
    prefix = f"{name}/gradients/"
    expected = {key.removeprefix(prefix): array for key, array in torch_gradients.items() if key.startswith(prefix)}
    assert set(model.config.parameter_shapes()) <= set(expected)
    assert len(expected) > 70
    for tensor, array in expected.items():
        np.testing.assert_allclose(trace[f"gradient.{tensor}"].data, array, rtol=1e-9, atol=1e-13, err_msg=tensor)


def test_softmax_and_cross_entropy_leave_p_minus_one() -> None:
    trace = supervised("cats")
    expected = trace["probabilities"].data.copy()
    for position, target in enumerate((45, 78, 90)):
        expected[0, position, target] -= 1
    np.testing.assert_allclose(trace["gradient.logits"].data, expected / 3, rtol=0, atol=1e-16)
    assert trace["gradient.loss"].number(()) == 1
    assert trace["gradient.loss.per_position"].data.tolist() == [[1 / 3] * 3]


@pytest.mark.parametrize("edits", [(), OVERRIDES], ids=["plain", "overridden"])
def test_what_comes_by_way_of_each_consumer_adds_up(edits: Sequence[Edit]) -> None:
    trace = supervised("scratch", *edits)
    recording = trace.recording
    consumers = {}
    for name in gradients_of(trace):
        ways = trace[f"gradient.{name}"].node.attributes["ways"]
        parts = [recording.data(part) for _, part in ways]
        np.testing.assert_allclose(sum(parts), trace[f"gradient.{name}"].data, rtol=1e-12, atol=1e-16, err_msg=name)
        consumers[name] = {recording.plan.nodes[slot].name for slot, _ in ways}
        for slot, _ in ways:
            assert name == "loss" or trace[name].slot in recording.plan.nodes[slot].inputs
    assert consumers["layers.0.attention.q_rotated"] == {"layers.0.attention.dot"}
    assert consumers["layers.0.output"] == {
        "layers.1.norm1.mean_square", "layers.1.norm1.normalized", "layers.1.residual1",
    }
    assert consumers["norm_epsilon"] == {f"layers.{n}.norm{k}.rms" for n in (0, 1) for k in (1, 2)} | {"final_norm.rms"}
    assert consumers["loss"] == {"loss"}


def test_every_cell_explains_itself() -> None:
    model = model_with(hidden_size=4, heads=2, mlp_size=3, vocab_size=5, layers=1)
    trace = run(model, [[1, 3, 1]], targets=[[3, 1, 0]], program=BACKWARD, edits=[
        Edit("layers.0.attention.weights", (0, 1, 2, 1), 0.7), Edit("gradient.layers.0.attention.v", (0, 1, 2), 0.5),
    ])
    assert_explained(trace)


def test_as_the_gradients_of_any_cell_are() -> None:
    """`gradient` finds the same numbers; the trace that has gradients of its own can be asked, too."""
    trace = supervised("scratch")
    plain = again(trace)
    found = gradient(plain, "loss", ())
    for name in gradients_of(trace):
        np.testing.assert_array_equal(found[name].data, trace[f"gradient.{name}"].data, err_msg=name)
    assert {str(tensor.name).split(".")[0] for tensor in found.values()} == {"slope"}
    of_logit = gradient(run(trace.model, trace.ids), "logits", (0, 4, 2))
    assert {str(tensor.name).split(".")[0] for tensor in of_logit.values()} == {"gradient"}


EDITS = (
    (Edit("layers.0.attention.Wq", (0, 1), 0.5),), (Edit("sqrt_head_size", (), 2.0),),
    (Edit("probabilities.shifted", (0, 1, 5), -2.0), Edit("logits", (0, 2, 7), 1.0)), OVERRIDES,
    (Edit("layers.1.attention.head_output", (0, 1), Mean()),), (Edit("layers.0.mlp.up", (0, 2, 1), 0.0),),
    (Edit("gradient.layers.1.output", (0, 1), 0.25), Edit("gradient.seed", (), 2.0)),
)


@pytest.mark.parametrize("edits", EDITS, ids=lambda edits: edits[-1].name)
@pytest.mark.parametrize("preset", ["scratch", "today"])
def test_what_an_edit_computes_again_is_a_full_run_bit_for_bit(preset: str, edits: tuple[Edit, ...]) -> None:
    base = supervised(preset)
    here = tuple(edit for edit in edits if edit.name in base and not (preset == "today" and "head" in edit.name))
    once = again(base, here, base=base)
    assert_same_bits(once, again(base, here))
    assert_same_bits(again(base, base=once), base)


def test_a_value_set_by_hand_ends_the_gradient(cats: Model) -> None:
    """With every head set by hand only the skip path is left, and it does not leave the position."""
    edits = [Edit(f"layers.{layer}.attention.head_output", (), 0.25) for layer in range(2)]
    trace = run(cats, "Cats sit on", targets=[[45, 78, 90]], program=BACKWARD, edits=edits)
    assert trace["gradient.layers.1.attention.head_output"].data.any()
    for name in ("layers.1.attention.v", "layers.1.attention.weights", "layers.0.attention.Wv"):
        assert not trace[f"gradient.{name}"].data.any()
    assert trace["gradient.embedding.output"].data.any()


def test_only_the_covered_cells_end_it() -> None:
    base = supervised("scratch")
    name = "layers.1.mlp.activation"
    trace = again(base, [Edit(name, (0, 3, slice(2, 5)), 0.5)], base=base)
    stopped = trace["gradient.layers.1.mlp.up"].data == 0
    positive = trace["layers.1.mlp.up"].data > 0
    expected = ~positive
    expected[0, 3, 2:5] = True
    np.testing.assert_array_equal(stopped, expected)
    assert trace[f"gradient.{name}"].data[0, 3, 2:5].all(), "what was set moves the loss all the same"


def test_an_edited_gradient_is_handed_on() -> None:
    """A gradient is a tensor like any other: twice the start gives twice the gradients, and no other loss."""
    base = supervised("scratch")
    double = again(base, [Edit("gradient.seed", (), 2.0)], base=base)
    assert double["loss"].number(()) == base["loss"].number(())
    for name in gradients_of(base):
        np.testing.assert_allclose(double[f"gradient.{name}"].data, 2 * base[f"gradient.{name}"].data, rtol=1e-15)
    halted = again(base, [Edit("gradient.layers.1.output", (), 0.0)], base=base)
    assert not any(halted[f"gradient.layers.0.attention.{name}"].data.any() for name in ("Wq", "Wk", "Wv", "Wo"))
    assert halted["gradient.final_norm.weight"].data.any()


def test_a_gradient_takes_no_infinity() -> None:
    trace = supervised("cats")
    for name in ("gradient.layers.0.attention.masked_scores", "gradient.causal_mask"):
        with pytest.raises(EditError) as raised:
            again(trace, [Edit(name, (), -inf)])
        assert raised.value.code == "not_finite"


def test_a_score_behind_the_mask_gets_nothing_and_a_row_of_scores_adds_up_to_nothing() -> None:
    trace = supervised("scratch")
    scores = trace["gradient.layers.0.attention.masked_scores"].data
    assert not scores[..., np.triu(np.ones((5, 5), dtype=bool), 1)].any()
    np.testing.assert_allclose(scores.sum(axis=-1), 0, atol=1e-16)
    assert scores.any()


def test_a_norm_hands_nothing_back_along_its_vector() -> None:
    trace = supervised("scratch")
    stream, back = trace["layers.1.output"].data, trace["gradient.layers.1.output"].data
    assert np.abs((stream * back).sum(axis=-1)).max() < 1e-5 * np.abs(stream * back).max(), "but for ε"


def test_tied_tables_collect_from_both_ends() -> None:
    config = ModelConfig(vocab_size=7, hidden_size=4, layers=1, heads=1, mlp_size=3, tied_head=True)
    generator = np.random.default_rng(5)
    drawn: dict[str, Array] = {name: generator.normal(size=shape) for name, shape in config.parameter_shapes().items()}
    untied = ModelConfig(vocab_size=7, hidden_size=4, layers=1, heads=1, mlp_size=3)
    targets = [[2, 2, 1]]
    tied = run(Model(config, drawn), [[1, 2, 2]], targets=targets, program=BACKWARD)
    apart = run(Model(untied, {**drawn, "lm_head.weight": drawn["embedding.weight"]}), [[1, 2, 2]], targets=targets,
                program=BACKWARD)
    np.testing.assert_allclose(
        tied["gradient.embedding.weight"].data,
        apart["gradient.embedding.weight"].data + apart["gradient.lm_head.weight"].data, rtol=1e-13,
    )
    assert "gradient.lm_head.weight" not in tied


@pytest.mark.parametrize("tied", [False, True])
def test_a_large_vocabulary_has_the_gradients_of_a_small_one(tied: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Computed when somebody looks, with edits on the way, or all at once."""
    config = ModelConfig(vocab_size=5003, hidden_size=6, layers=1, heads=2, mlp_size=5, tied_head=tied,
                         positions="none", logit_soft_cap=4.0)
    generator = np.random.default_rng(2)
    model = Model(config, {name: generator.normal(size=shape) for name, shape in config.parameter_shapes().items()})
    edits = [Edit("embedding.weight", (7, 3), 0.5), Edit("logits", (1, 2, 4096), 2.0),
             Edit("gradient.logits", (0, 1, 3), 0.125), Edit("loss.log_sum", (0, 0), 9.0)]
    ids, targets = [[7, 5002, 7], [0, 3, 5]], [[5002, 0, 7], [3, 3, 9]]
    deferred = run(model, ids, targets=targets, program=BACKWARD, edits=edits)
    assert deferred["gradient.layers.0.attention.Wq"].is_deferred
    monkeypatch.setattr(plan, "LARGE_VOCABULARY", 10_000)
    forward_plan.cache_clear()
    at_once = run(model, ids, targets=targets, program=BACKWARD, edits=edits)
    forward_plan.cache_clear()
    for name, tensor in at_once.items():
        np.testing.assert_allclose(deferred[name].data, tensor.data, rtol=1e-11, atol=1e-14, err_msg=name)
        flat = np.linspace(0, tensor.data.size - 1, 5).astype(int)
        np.testing.assert_array_equal(deferred[name].take(flat), deferred[name].data.ravel()[flat], err_msg=name)
