"""The choosing lesson's steps are the reference sampler's, agree with PyTorch, and explain and differentiate."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from engine import Edit, EditError, Model, ModelConfig, Trace, explain, gradient, presets, programs, run
from engine.programs.choosing import DRAWS, LEADING, SEED
from engine.sampling import Choice, choose, draw
from tests.engine.support import Array, assert_explained, slope
from tests.engine.test_gpt2_parts import VARIANTS
from tests.engine.test_sampling import FILTERS

PROGRAM = programs.of("choosing")
CONSTANTS = ("temperature", "top_k", "top_p", "seed")
SETTINGS: list[dict[str, float]] = [
    {}, {"temperature": 0.0}, {"temperature": 0.3}, {"temperature": 2.0, "top_k": 3}, {"top_p": 0.5},
    {"temperature": 1.5, "top_k": 5, "top_p": 0.7, "seed": 7}, {"top_k": 1}, {"temperature": 5e-324},
]


def edits(settings: dict[str, float]) -> list[Edit]:
    return [Edit(f"choosing.{name}", (), value) for name, value in settings.items()]


def reference(trace: Trace, settings: dict[str, float]) -> Choice:
    logits = trace["logits"].row(0, trace.ids.shape[1] - 1)
    filters: dict[str, Any] = {name: value for name, value in settings.items() if name != "seed"}
    if "top_k" in filters:
        filters["top_k"] = int(filters["top_k"])
    return choose(logits, **filters)


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("preset", presets.NAMES)
def test_every_column_is_the_reference_sampler_s(preset: str, settings: dict[str, float]) -> None:
    trace = run(presets.load(preset), presets.SENTENCES[preset], program=PROGRAM, edits=edits(settings))
    choice = reference(trace, settings)
    at = {name: trace[f"choosing.{name}"].data[0] for name in (
        "order", "ranked", "tempered", "kept_k", "kept_p", "probabilities", "drawn", "counts",
    )}
    order = choice.order
    np.testing.assert_array_equal(at["order"], order)
    np.testing.assert_array_equal(at["ranked"], choice.logits[order])
    np.testing.assert_array_equal(at["tempered"], choice.scaled[order])
    np.testing.assert_array_equal(at["kept_k"] > -np.inf, (choice.kept_k & (choice.scaled > -np.inf))[order])
    np.testing.assert_array_equal(at["kept_p"] > 0, (choice.kept_p & (choice.probabilities > 0))[order])
    np.testing.assert_allclose(at["probabilities"], choice.probabilities[order], rtol=1e-12, atol=1e-300)
    generator = np.random.default_rng(int(settings.get("seed", SEED)))
    assert at["drawn"].tolist() == [draw(choice, generator) for _ in range(DRAWS)]
    assert at["counts"].sum() == DRAWS
    np.testing.assert_array_equal(at["counts"], [np.sum(at["drawn"] == token) for token in order])


def scoring(logits: Array) -> Model:
    """A model whose head gives these logits: one feature of 1 times a row for each token."""
    config = ModelConfig(vocab_size=len(logits), hidden_size=1, layers=1, heads=1, mlp_size=1, norm="none",
                         positions="none", residual=False)
    parameters = {name: np.zeros(shape) for name, shape in config.parameter_shapes().items()}
    return Model(config, {**parameters, "lm_head.weight": logits[:, None]})


@pytest.mark.parametrize("key", [key for key in FILTERS if "/six/" not in key])  # it has a −∞, no logit of a model
def test_probabilities_agree_with_pytorch(key: str) -> None:
    _, vector, spec = key.split("/")
    found = {name: re.search(rf"{name}_([\d.]+)", spec) for name in CONSTANTS}
    settings = {name: float(match[1]) for name, match in found.items() if match}
    model = scoring(VARIANTS.arrays[f"sampling/{vector}/logits"])
    trace = run(model, [0], program=PROGRAM, edits=[*edits(settings), Edit("layers.0.output", (), 1.0)])
    order = trace["choosing.order"].data[0].astype(int)
    expected = VARIANTS.arrays[key][order]
    np.testing.assert_allclose(trace["choosing.probabilities"].data[0], expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize(("settings", "expected"), [
    ({"temperature": 0.0}, [1, 0, 0]), ({"temperature": 1e-3}, [1, 0, 0]), ({"temperature": 1e-40}, [1, 0, 0]),
    ({}, [0.54654939, 0.33149896, 0.12195165]), ({"temperature": 2.0}, [0.44421398, 0.34595419, 0.20983183]),
])
def test_a18_temperature_on_the_board(settings: dict[str, float], expected: list[float]) -> None:
    trace = run(scoring(np.array([1, 2, 2.5])), [0], program=PROGRAM,
                edits=[*edits(settings), Edit("layers.0.output", (), 1.0)])
    np.testing.assert_allclose(trace["choosing.probabilities"].data[0], expected, atol=5e-9)
    assert trace["choosing.order"].data[0].tolist() == [2, 1, 0]


@pytest.mark.parametrize(("probabilities", "p", "expected"), [
    ([0.5, 0.41, 0.09], 0.9, [0.54945055, 0.45054945, 0]),
    ([0.4, 0.3, 0.2, 0.1], 0.8, [0.44444444, 0.33333333, 0.22222222, 0]),
    # the mass before the second is p itself, which is not below p
    ([0.5, 0.25, 0.25], 0.5, [1, 0, 0]), ([0.5, 0.25, 0.25], 0.75, [0.66666667, 0.33333333, 0]),
])
def test_a20_top_p_on_the_board(probabilities: list[float], p: float, expected: list[float]) -> None:
    trace = run(scoring(np.log(probabilities)), [0], program=PROGRAM,
                edits=[*edits({"top_p": p}), Edit("layers.0.output", (), 1.0)])
    np.testing.assert_allclose(trace["choosing.probabilities"].data[0], expected, atol=5e-9)


def test_the_article_s_choice_is_likely_and_not_certain() -> None:
    """好 0.85, 棒 0.10, 差 0.02; under the article's seed 123 this generator draws 好 first and 17 times of 20."""
    trace = run(presets.load("today"), "今天天气真", program=PROGRAM)
    np.testing.assert_allclose(trace["choosing.probabilities"].take(np.arange(3)), [0.85, 0.10, 0.02], atol=1e-12)
    assert trace["choosing.order"].take(np.arange(3)).tolist() == [5120, 6144, 7168]
    numbers = np.random.default_rng(SEED).random(DRAWS)
    below = [5120 if u < 0.85 else 6144 if u < 0.95 else 7168 for u in numbers]
    assert trace["choosing.drawn"].data[0].tolist() == below
    assert below[0] == 5120
    assert below.count(5120) == 17


@pytest.mark.parametrize("preset", ["cats", "scratch"])
def test_the_others_are_what_the_leading_ranks_leave(preset: str) -> None:
    trace = run(presets.load(preset), presets.SENTENCES[preset], program=PROGRAM)
    for name, whole in (("shares", 1.0), ("kept_p", 1.0), ("probabilities", 1.0), ("counts", float(DRAWS))):
        leading = trace[f"choosing.{name}"].data[0, :LEADING].sum()
        assert trace[f"choosing.others.{name}"].data[0] == pytest.approx(whole - leading, abs=1e-12)


@pytest.mark.parametrize("settings", SETTINGS[:6], ids=str)
def test_every_cell_explains_itself(settings: dict[str, float]) -> None:
    trace = run(presets.load("scratch"), presets.SENTENCES["scratch"], program=PROGRAM, edits=edits(settings))
    assert_explained(trace)
    if settings.get("temperature") != 0:
        assert_explained(gradient(trace, "choosing.probabilities", (0, 1)))


def test_cells_of_a_large_vocabulary_explain_themselves() -> None:
    trace = run(presets.load("today"), "今天天气真", program=PROGRAM, edits=edits({"top_p": 0.9, "top_k": 40}))
    for name in (name for name in trace if name.startswith("choosing.")):
        tensor = trace[name]
        for last in {0, 1, 2, 9, 11} if tensor.axes[-1:] in (("rank",), ("draw",)) else {0}:
            index = (*(0,) * (len(tensor.shape) - 1), last) if tensor.shape else ()
            cell = explain(trace, name, index)
            assert cell.evaluate() == pytest.approx(cell.value, rel=1e-12, abs=1e-14), (name, index)


@pytest.mark.parametrize(("target", "index"), [
    ("choosing.probabilities", (0, 1)), ("choosing.running_sum", (0, 2)), ("choosing.mass_before", (0, 3)),
    ("choosing.others.probabilities", (0,)), ("choosing.tempered", (0, 4)),
])
@pytest.mark.parametrize("name", ["choosing.temperature", "choosing.logits", "lm_head.weight"])
def test_gradients_agree_with_finite_differences(target: str, index: tuple[int, ...], name: str) -> None:
    settings = {"temperature": 1.5, "top_k": 13.0, "top_p": 0.97}
    trace = run(presets.load("scratch"), presets.SENTENCES["scratch"], program=PROGRAM, edits=edits(settings))
    computed = gradient(trace, target, index)[name].data
    cells = [()] if name == "choosing.temperature" else [(0, 2), (0, 11)] if "logits" in name else [(2, 3), (14, 0)]
    if "logits" in name:  # an activation: unedited it is computed, so the edit itself is the nudge
        trace = run(presets.load("scratch"), presets.SENTENCES["scratch"], program=PROGRAM, edits=[
            *edits(settings), *(Edit(name, cell, float(trace[name].data[cell])) for cell in cells),
        ])
    for cell in cells:
        assert computed[cell] == pytest.approx(slope(trace, target, index, name, cell), rel=1e-6, abs=1e-9)


def test_filters_pass_no_gradient_to_their_thresholds() -> None:
    trace = run(presets.load("scratch"), presets.SENTENCES["scratch"], program=PROGRAM)
    assert not {"choosing.top_k", "choosing.top_p"} & set(gradient(trace, "choosing.probabilities", (0, 0)))


@pytest.mark.parametrize(("name", "value", "code"), [
    ("temperature", -0.1, "out_of_bounds"), ("top_k", 0.0, "out_of_bounds"), ("top_k", 17.0, "out_of_bounds"),
    ("top_k", 2.5, "not_whole"), ("top_p", 0.0, "not_above"), ("top_p", 1.1, "not_above"),
    ("seed", -1.0, "out_of_bounds"), ("seed", 0.5, "not_whole"), ("order", 16.0, "out_of_bounds"),
])
def test_settings_that_choose_nothing_are_refused(name: str, value: float, code: str) -> None:
    index = (0, 0) if name == "order" else ()
    with pytest.raises(EditError) as raised:
        run(presets.load("scratch"), "red", program=PROGRAM, edits=[Edit(f"choosing.{name}", index, value)])
    assert raised.value.code == code
    assert raised.value.details["name"] == f"choosing.{name}"


def test_numbers_that_ran_over_draw_a_token_all_the_same() -> None:
    trace = run(presets.load("cats"), "Cats sit on", program=PROGRAM,
                edits=[Edit("layers.0.norm1.weight", (0,), 1e308)])
    assert not np.isfinite(trace["choosing.probabilities"].data).all()
    assert set(trace["choosing.drawn"].data[0].tolist()) <= set(range(256))


@pytest.mark.parametrize("preset", presets.NAMES)
def test_the_loop_draws_with_the_numbers_of_the_seed_one_after_the_other(preset: str) -> None:
    model, sentence = presets.load(preset), presets.SENTENCES[preset]
    alone = run(model, sentence, program=PROGRAM)
    loop = run(model, sentence, program=programs.of("generating"))
    np.testing.assert_array_equal(loop["generating.drawn"].data[:, :DRAWS], alone["choosing.drawn"].data)
    np.testing.assert_array_equal(loop["generating.u"].data[:DRAWS], alone["choosing.u"].data)
