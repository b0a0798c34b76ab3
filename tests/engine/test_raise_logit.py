"""What would raise a logit: slopes against finite differences, and the smallest edit against trying everything."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from math import nan

import numpy as np
import pytest

from engine import Edit, InputError, Model, Trace, presets, programs, run
from engine.programs.question import Question
from engine.search import (
    CELLS,
    CELLS_LARGE,
    MARGIN,
    RUNS,
    Found,
    Outcome,
    _Probe,
    first_order,
    smallest_edit,
    standing,
    steepest,
)
from engine.variants import variant
from tests.engine.support import Array, model_with, slope

IDS = [2, 5, 2, 1]
SMOOTH = {"hidden_size": 4, "heads": 2, "activation": "gelu_tanh"}
AGAINST = Edit("raise_logit.against", (), 1.0)
ARCHITECTURES: tuple[dict[str, object], ...] = (
    {}, {"tied_head": True, "bias": True, "norm": "layernorm", "positions": "learned", "max_positions": 6},
    {"norm": "none", "residual": False, "logit_soft_cap": 2.0}, {"norm_placement": "post", "qk_norm": True},
)


def asked(model: Model, ids: list[int], token: int, rival: int, *edits: Edit) -> Trace:
    return run(model, ids, edits=edits, program=programs.of("raise_logit", Question(token, rival)))


def last_logits(model: Model, ids: list[int], *edits: Edit) -> Array:
    return np.array(run(model, ids, edits=edits)["logits"].row(0, len(ids) - 1))


# ---- slopes

@pytest.mark.parametrize("architecture", ARCHITECTURES, ids=str)
@pytest.mark.parametrize("edits", [(), (AGAINST,)], ids=["one logit", "difference"])
def test_every_slope_is_what_small_changes_make_of_the_goal(architecture: dict[str, object],
                                                            edits: tuple[Edit, ...]) -> None:
    trace = asked(variant(model_with(**SMOOTH), **architecture), IDS, 3, 6, *edits)
    logits = trace["logits"].data[0, -1]
    assert trace["raise_logit.goal"].data.tolist() == [logits[3] - (logits[6] if edits else 0.0)]
    for name in trace.model.parameters:
        slopes = trace[f"gradient.{name}"]
        assert slopes.shape == trace[name].shape
        for index in np.ndindex(*slopes.shape):
            expected = slope(trace, "raise_logit.goal", (0,), name, index)
            assert float(slopes.data[index]) == pytest.approx(expected, rel=1e-7, abs=1e-9), (name, index)


def test_a_logit_that_is_set_by_hand_follows_no_parameter() -> None:
    trace = asked(model_with(**SMOOTH), IDS, 3, 6, Edit("logits", (0, 3, 3), 1.5))
    assert trace["raise_logit.goal"].data.tolist() == [1.5]
    assert not any(trace[f"gradient.{name}"].data.any() for name in trace.model.parameters)


def test_a_unit_that_is_shut_everywhere_hides_its_weights() -> None:
    """In *Cats sit on*, by the ReLU: a column of W_up and a row of W_down without a slope.

    Of the last layer only the last position counts.
    """
    trace = asked(presets.load("cats"), [12, 45, 78], 90, 91)
    for layer, positions in ((0, slice(None)), (1, slice(2, 3))):
        name = f"layers.{layer}.mlp"
        shut = ~(trace[f"{name}.activation"].data[0, positions] > 0).any(axis=0)
        assert shut.any()
        np.testing.assert_array_equal(~trace[f"gradient.{name}.W_up"].data.any(axis=0), shut)
        np.testing.assert_array_equal(~trace[f"gradient.{name}.W_down"].data.any(axis=1), shut)


@pytest.mark.parametrize("preset", presets.NAMES)
def test_the_steepest_cells(preset: str) -> None:
    model = presets.load(preset)
    assert model.tokenizer is not None
    trace = asked(model, model.tokenizer.encode(presets.SENTENCES[preset]), *(
        {"today": (5120, 6144)}.get(preset, (5, 6))
    ))
    table = steepest(trace)
    assert {one.name for one in table} == set(model.parameters)
    sizes = [abs(one.slope) for one in table]
    assert sizes == sorted(sizes, reverse=True)
    for one in table:
        slopes = trace[f"gradient.{one.name}"].data
        assert abs(one.slope) == np.abs(slopes).max() == abs(slopes[one.index])
        assert (one.sloped, one.cells) == (np.count_nonzero(slopes), slopes.size)


# ---- the first order

def test_what_a_cell_needs_to_first_order() -> None:
    """Two rivals, by hand: the first is ahead by 1, the second behind by 3 and has to stay there."""
    needs = np.array([1.0, -3.0])
    cells = {
        (2.0, 0.0): 0.5, (2.0, -6.0): 0.5,  # at 1/2 the second has just come up
        (-0.5, 1.0): -2.0,  # the other way
        (4.0, -20.0): np.inf, (0.0, 1.0): np.inf,  # the second is past before; no slope at all
    }
    found = first_order(needs, np.array(list(cells)).T)
    assert np.abs(found).tolist() == np.abs(list(cells.values())).tolist()
    assert found[:3].tolist() == list(cells.values())[:3]


# ---- the search

def brute_force(model: Model, ids: list[int], token: int, changes: Array) -> tuple[float, str]:
    """The smallest of these changes of any cell, either way, that gives the token the lead; and of which parameter."""
    base = run(model, ids)
    for change in changes:
        for name, array in model.parameters.items():
            for index in np.ndindex(*array.shape):
                for value in (array[index] + change, array[index] - change):
                    trace = run(model, ids, edits=[Edit(name, index, float(value))], base=base)
                    if leads(np.array(trace["logits"].row(0, len(ids) - 1)), token):
                        return float(change), name
    return np.inf, ""


def leads(logits: Array, token: int) -> bool:
    """By the margin."""
    others = np.delete(logits, token)
    return bool(logits[token] - others.max() >= MARGIN)


@pytest.mark.parametrize("place", [1, 2])
@pytest.mark.parametrize("sizes", [
    {"activation": "relu"}, {"activation": "gelu_tanh", "norm": "layernorm", "bias": True, "tied_head": True},
], ids=["relu", "gelu, tied"])
def test_nothing_smaller_is_found_by_trying_everything(sizes: dict[str, object], place: int) -> None:
    model = model_with(vocab_size=5, hidden_size=2, mlp_size=3, **sizes, seed=4)  # type: ignore[arg-type]
    ids = [1, 4, 0]
    token = int(np.argsort(-last_logits(model, ids))[place])
    outcome = smallest_edit(model, ids, token)
    best = outcome.found[0]
    size = abs(best.change)
    assert [abs(one.change) for one in outcome.found] == sorted(abs(one.change) for one in outcome.found)
    assert brute_force(model, ids, token, size * np.linspace(0.1, 0.99, 12)) == (np.inf, "")
    assert brute_force(model, ids, token, np.array([size * 1.001]))[0] > 0


@pytest.mark.parametrize("preset", presets.NAMES)
def test_what_is_found_is_verified(preset: str) -> None:
    """Each edit makes the token lead, in a run of its own; nine tenths of the smallest do not."""
    model = presets.load(preset)
    assert model.tokenizer is not None
    ids = model.tokenizer.encode(presets.SENTENCES[preset])
    logits = last_logits(model, ids)
    token, leader = int(np.argsort(-logits, kind="stable")[1]), int(np.argmax(logits))
    token = 91 if preset == "cats" else token
    outcome = smallest_edit(model, ids, token)
    assert (outcome.leader, outcome.lead) == (leader, float(logits[token] - logits[leader]))
    assert not outcome.leads
    assert outcome.found
    for one in outcome.found:
        assert one.before == model.parameters[one.name][one.index]
        then = last_logits(model, ids, one.edit)
        assert leads(then, token)
        assert standing(then, token).lead == pytest.approx(one.lead, abs=1e-12)
        assert standing(then, token).leader == one.runner_up
    best = outcome.found[0]
    assert not leads(last_logits(model, ids, Edit(best.name, best.index, best.before + 0.9 * best.change)), token)
    most = CELLS_LARGE if preset == "today" else CELLS
    assert outcome.verified <= most * len(model.parameters)
    assert outcome.runs <= (RUNS + 3) * outcome.verified
    named = {*(one.name for one in outcome.found), *outcome.failed, *outcome.flat}
    assert named == set(model.parameters)


def test_of_the_row_of_the_head_the_estimate_is_exact() -> None:
    """A logit is a straight line in its own row; further back the estimate is one thing and the edit another."""
    outcome = smallest_edit(presets.load("cats"), [12, 45, 78], 91)
    found = {one.name: one for one in outcome.found}
    head, embedding = found["lm_head.weight"], found["embedding.weight"]
    assert outcome.found[0] is head
    assert head.index == (91, 3)
    # the gap of 0.9984 and the margin, over what the head reads
    assert head.estimate == pytest.approx((0.9984 + MARGIN) / 1.7522, abs=2e-4)
    assert head.change == pytest.approx(head.estimate, rel=0.005)
    assert abs(embedding.estimate) > 2 * abs(embedding.change)


def test_a_third_token_that_takes_over_is_seen() -> None:
    """Along the only feature that is read, token 2 grows three times as fast as token 1; its own row is left."""
    head = np.array([[1.0, 0.0], [0.0, 0.0], [3.0, 0.0]])
    model = model_with({
        "embedding.weight": np.array([[0.0, 0.0], [-1.0, 0.5], [0.0, 0.0]]), "lm_head.weight": head,
        **{f"layers.0.{name}": np.zeros(shape) for name, shape in (
            ("attention.Wo", (2, 2)), ("mlp.W_down", (5, 2)))},
    }, vocab_size=3, hidden_size=2, norm="none", positions="none")
    ids, token = [1, 1], 0
    assert last_logits(model, ids).tolist() == [-1.0, 0.0, -3.0]
    outcome = smallest_edit(model, ids, token)
    assert outcome.leader == 1
    for one in outcome.found:
        assert int(np.argmax(last_logits(model, ids, one.edit))) == token
    # the input would have to be above 0 for token 0 to pass token 1, and then token 2 is ahead
    assert "embedding.weight" in outcome.failed
    assert {one.name for one in outcome.found} == {"lm_head.weight"}


def test_a_token_that_leads_needs_nothing() -> None:
    model = presets.load("cats")
    outcome = smallest_edit(model, [12, 45, 78], 90)
    assert outcome.leads
    assert (outcome.found, outcome.runs) == ((), 0)
    # of equal logits the lower id counts as larger, everywhere
    assert standing(np.array([1.0, 2.0, 2.0]), 1).leads
    assert not standing(np.array([1.0, 2.0, 2.0]), 2).leads


@pytest.mark.parametrize("token", [-1, 256])
def test_a_token_that_is_no_row_of_the_head_is_refused(token: int) -> None:
    model, ids = presets.load("cats"), [12, 45, 78]
    for lesson in ("raise_logit", "lens", "wrote", "patch"):
        for question in (Question(token, 90), Question(90, token)):
            with pytest.raises(InputError, match=f"id {token} is outside 0…255"):
                run(model, ids, program=programs.of(lesson, question))
    with pytest.raises(InputError, match=f"id {token} is outside 0…255"):
        smallest_edit(model, ids, token)


def test_where_nothing_has_a_slope_nothing_is_tried() -> None:
    model = model_with({"embedding.weight": np.zeros((7, 4)), "lm_head.weight": np.zeros((7, 4))}, hidden_size=4)
    outcome = smallest_edit(model, IDS, 3)
    assert (outcome.found, outcome.failed, outcome.sloped, outcome.verified) == ((), (), 0, 0)
    assert set(outcome.flat) == set(model.parameters)
    assert outcome.cells == sum(array.size for array in model.parameters.values())


def test_a_token_whose_row_is_zero_can_only_win_by_that_row() -> None:
    """253 other tokens of *Cats sit on* have the logit 0 as well: pulling `mats` down is not enough."""
    outcome = smallest_edit(presets.load("cats"), [12, 45, 78], 92)
    assert [one.name for one in outcome.found] == ["lm_head.weight"]
    assert outcome.found[0].index[0] == 92
    assert len(outcome.failed) > 10


def test_the_search_starts_from_the_edits_in_force() -> None:
    """An edit of the same cell is taken further, others stay; one that a plain run does not know is left out."""
    model, ids = presets.load("cats"), [12, 45, 78]
    search = partial(smallest_edit, model, ids, 91)
    plain = search().found[0]
    half = Edit(plain.name, plain.index, plain.before + plain.change / 2)
    others = (half, Edit("layers.0.attention.weights", (0, 0, 2, 1), 0.25), Edit("raise_logit.against", (), 1.0))
    found = search(edits=others).found[0]
    assert (found.name, found.index, found.before) == (plain.name, plain.index, half.value)
    assert abs(found.change) < abs(plain.change)
    assert leads(last_logits(model, ids, *others[1:2], found.edit), 91)


def test_values_that_are_found_are_short() -> None:
    """So that they can be read, and links stay short."""
    found = smallest_edit(presets.load("cats"), [12, 45, 78], 91).found
    assert [len(repr(one.after)) <= 6 for one in found] == [True] * len(found)
    assert isinstance(found[0], Found)


def test_what_runs_over_is_no_lead(monkeypatch: pytest.MonkeyPatch) -> None:
    """At a rounded value the logits may be no numbers; then the change itself counts, which was verified."""
    model, ids = presets.load("cats"), [12, 45, 78]
    plain = smallest_edit(model, ids, 91).found[0]
    at = _Probe.at

    def overflowing(probe: _Probe, value: float) -> Outcome:
        found = at(probe, value)
        return replace(found, lead=nan) if value == round(value, 3) else found
    monkeypatch.setattr(_Probe, "at", overflowing)
    found = smallest_edit(model, ids, 91).found[0]
    assert found.after != plain.after
    assert found.lead >= MARGIN
