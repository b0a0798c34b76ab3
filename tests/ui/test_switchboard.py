"""The switchboard: named combinations, Δ at every tensor and at the prediction, refusals, the notice."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from engine import ConfigError, Model, ModelConfig, presets, run
from engine.tokenizer import WordTokenizer
from engine.variants import variant
from tests.conftest import TESTS, Reference
from tests.ui.support import alive, edit, reader, send
from ui import comparison, runs, switchboard, switches
from ui.address import address, open_address
from ui.comparison import BEFORE, BOTH, HERE, Difference
from ui.state import State
from ui.switches import COMBINATIONS, FIELDS
from ui.text import LANGUAGES, catalogue

EVERY_PRESET = pytest.mark.parametrize("preset", presets.NAMES)


def switched(preset: str, **changes: Any) -> State:
    state = reader("switchboard", preset=preset)
    state.switch(**changes)
    return state


def listed(state: State) -> dict[str, Difference]:
    return {each.name: each for each in comparison.differences(state, comparison.unswitched(state))}


# ---- named combinations, against what the three projects' own code does

SOURCES: dict[str, dict[str, Any]] = {
    # openai/gpt-2, src/model.py: wpe, norm with g and b, gelu by tanh, conv1d with b, logits = h · wteᵀ
    "gpt2": {"positions": "learned", "norm": "layernorm", "activation": "gelu_tanh", "bias": True, "tied_head": True,
             "qk_norm": False, "logit_soft_cap": None},
    # meta-llama/llama, llama/model.py: view_as_complex of neighbours, RMSNorm, bias=False, output of its own
    "llama": {"positions": "rope", "rope_pairing": "interleaved", "rope_direction": 1, "norm": "rmsnorm",
              "bias": False, "tied_head": False, "qk_norm": False, "logit_soft_cap": None},
    # karpathy/nanochat, nanochat/gpt.py: x1·cos + x2·sin of halves, norm(q), relu².., softcap = 15
    "nanochat": {"positions": "rope", "rope_pairing": "half", "rope_direction": -1, "norm": "rmsnorm",
                 "activation": "relu_squared", "bias": False, "tied_head": False, "qk_norm": True,
                 "logit_soft_cap": 15.0},
}


@pytest.mark.parametrize("name", COMBINATIONS)
def test_combinations_are_what_the_projects_do(name: str) -> None:
    chosen = COMBINATIONS[name]
    assert {field: chosen[field] for field in SOURCES[name]} == SOURCES[name]
    assert all(chosen[field] is True for field in ("scale_scores", "causal", "residual"))
    assert chosen["norm_placement"] == "pre"
    for field, value in chosen.items():
        assert value in FIELDS[field]


def test_nanochat_turns_as_its_code_does() -> None:
    """y1 = x1·cos + x2·sin; y2 = −x1·sin + x2·cos, on halves."""
    state = switched("scratch", **switches.combination("nanochat", presets.load("scratch").config))
    q, turned = (state.trace[f"layers.0.attention.{name}"].data[0, 0] for name in ("q_heads", "q_rotated"))
    angles = np.outer(np.arange(len(q)), 1 / 10000 ** (np.arange(0, 4, 2) / 4))
    x1, x2 = q[:, :2], q[:, 2:]
    expected = np.hstack([x1 * np.cos(angles) + x2 * np.sin(angles), -x1 * np.sin(angles) + x2 * np.cos(angles)])
    np.testing.assert_allclose(turned, expected, atol=1e-12)
    normed = turned / np.sqrt((turned ** 2).mean(axis=-1, keepdims=True) + 1e-6)
    np.testing.assert_allclose(state.trace["layers.0.attention.q_norm.output"].data[0, 0], normed, atol=1e-12)


@EVERY_PRESET
@pytest.mark.parametrize("name", COMBINATIONS)
def test_a_combination_sets_every_switch(name: str, preset: str) -> None:
    own = presets.load(preset).config
    # whatever was switched before
    state = switched(preset, norm="none", causal=False, residual=False, scale_scores=False)
    state.switch(**switches.combination(name, own))
    assert switches.matches(name, state.model.config)
    others = [field for field in FIELDS if field not in COMBINATIONS[name]]
    assert all(getattr(state.model.config, field) == getattr(own, field) for field in others)
    state.switch(**{field: getattr(own, field) for field in FIELDS})
    assert state.choices.switches == ()
    assert state.model is runs.model(preset, 1, ())


def test_today_is_gpt2_as_it_stands() -> None:
    assert [name for name in COMBINATIONS if switches.matches(name, presets.load("today").config)] == ["gpt2"]
    assert not any(switches.matches(name, presets.load("cats").config) for name in COMBINATIONS)


@pytest.mark.parametrize(("field", "config", "expected"), [
    ("rope_pairing", {"positions": "none"}, False), ("rope_direction", {}, True), ("norm_placement", {}, True),
    ("norm_placement", {"norm": "none"}, False), ("causal", {}, True),
])
def test_switches_without_effect(field: str, config: dict[str, Any], expected: bool) -> None:
    made = ModelConfig(vocab_size=5, hidden_size=4, layers=1, heads=2, mlp_size=4, **config)
    assert switches.has_effect(field, made) == expected


# ---- Δ against PyTorch

SEED = 4321
# those of the reference's variants for which a model of all of GPT-2's parameters needs no others
VARIANTS: dict[str, dict[str, Any]] = {
    "gelu_erf": {"activation": "gelu_erf"}, "relu_squared": {"activation": "relu_squared"},
    "post_norm": {"norm_placement": "post"}, "no_norm": {"norm": "none"}, "no_positions": {"positions": "none"},
    "not_causal": {"causal": False}, "unscaled": {"scale_scores": False}, "no_residual": {"residual": False},
    "rope": {"positions": "rope"}, "rope_backward": {"positions": "rope", "rope_direction": -1},
    "soft_cap": {"logit_soft_cap": 15.0},
}


@pytest.fixture(scope="module")
def torch() -> Reference:
    return Reference(TESTS / "reference" / "gpt2_variants.npz")


@pytest.fixture
def as_scratch(torch: Reference, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The reference's GPT-2 in place of the scratch model; what is left is its sentence."""
    config = ModelConfig(**torch.settings["variants"]["gpt2"])
    stored = torch.under("parameters")
    model = Model(config, {name: stored[name] for name in config.parameter_shapes()}, WordTokenizer(23, {}))
    load = presets.load
    monkeypatch.setattr(presets, "load", lambda name, seed=1: model if seed == SEED else load(name, seed))
    yield " ".join(map(str, torch.ids[0]))
    runs.model.cache_clear()


@pytest.mark.parametrize("name", VARIANTS)
def test_differences_are_those_of_pytorch(name: str, torch: Reference, as_scratch: str) -> None:
    state = reader("switchboard", preset="scratch", seed=SEED, text=as_scratch)
    state.switch(**VARIANTS[name])
    found = listed(state)
    for tensor, after in torch.under(f"{name}/tensors").items():
        before = torch.arrays[f"gpt2/tensors/{tensor}"]
        delta = np.abs(after[0] - before[0])
        assert found[tensor].place == BOTH
        assert found[tensor].largest == pytest.approx(delta.max(), abs=1e-11)
    last_before, last_after = (torch.arrays[f"{each}/tensors/probabilities"][0, -1] for each in ("gpt2", name))
    outcomes = comparison.outcomes(state, comparison.unswitched(state))
    assert {int(token) for row in (last_before, last_after) for token in np.argsort(-row)[:3]} == {
        outcome.token for outcome in outcomes
    }
    for outcome in outcomes:
        assert outcome.before == pytest.approx(last_before[outcome.token], abs=1e-12)
        assert outcome.after == pytest.approx(last_after[outcome.token], abs=1e-12)
    assert [outcome.after for outcome in outcomes] == sorted((outcome.after for outcome in outcomes), reverse=True)


# ---- Δ by hand

@EVERY_PRESET
def test_every_tensor_is_listed_once_in_order(preset: str) -> None:
    state = switched(preset, positions="none" if preset == "today" else "learned", norm="layernorm", causal=False)
    own, now = presets.load(preset), state.model
    before, after = (list(run(model, presets.SENTENCES[preset])) for model in (own, now))
    found = listed(state)
    assert [name for name, each in found.items() if each.place != BEFORE] == after
    assert [name for name, each in found.items() if each.place != HERE] == [
        name for name in found if name in before
    ]
    assert {name for name, each in found.items() if each.place == BOTH} == {*before} & {*after}
    assert {*found} == {*before, *after}


def test_a_tensor_that_is_gone_stands_where_it_stood() -> None:
    names = list(listed(switched("cats", causal=False)))
    place = names.index("layers.0.attention.masked_scores")
    assert names[place - 1] == "layers.0.attention.scores"
    assert names[place + 1] == "layers.0.attention.weights.max"


def test_scores_without_their_scale_by_hand() -> None:
    """Off, the scores are the products: 15 printed scores become √12 times as large."""
    found = listed(switched("today", scale_scores=False))
    assert found["layers.0.attention.scores"].place == BEFORE
    assert found["layers.0.attention.dot"].largest == 0
    weights = found["layers.0.attention.weights"]
    rows = [[0.5, 3.1], [0.1, 2.2, 1.8], [0.2, 1.1, 2.0, 2.5], [0.3, 0.8, 0.9, 1.2, 1.5]]
    sizes = {}
    for query, row in enumerate(rows, start=1):
        scores = np.array(row)
        soft, sharp = (np.exp(factor * scores) / np.exp(factor * scores).sum() for factor in (1, 12 ** 0.5))
        sizes |= {(query, key): size for key, size in enumerate(np.abs(sharp - soft))}
    query, key = max(sizes, key=sizes.__getitem__)
    assert weights.largest == pytest.approx(sizes[query, key], abs=1e-9)
    tokens = ["今", "1:天", "2:天", "气", "真"]
    assert weights.where == f"L1·weights[h0, {tokens[query]}, {tokens[key]}]"


def test_pairs_of_a_head_of_two_are_the_same_either_way() -> None:
    found = listed(switched("cats", rope_pairing="half"))
    assert {each.largest for each in found.values()} == {0}
    assert {each.place for each in found.values()} == {BOTH}
    assert {each.where for each in found.values()} == {None}


def test_turning_the_other_way_keeps_each_position_s_score_for_itself() -> None:
    state = switched("cats", rope_direction=-1)
    name = "layers.0.attention.scores"
    delta = np.abs(state.trace[name].data - comparison.unswitched(state)[name].data)[0]
    for head in delta:
        np.testing.assert_allclose(np.diag(head), 0, atol=1e-15)
    assert listed(state)[name].largest == delta.max() > 0.1


def test_both_sides_are_under_the_reader_s_edits() -> None:
    state = switched("cats", norm="layernorm")
    edit(state, "layers.0.attention.Wq", (0, 1), 0.5)
    edit(state, "layers.0.norm1.bias", (2,), 0.25)
    own = run(presets.load("cats"), "Cats sit on", edits=[state.edits[0]])
    now = run(variant(presets.load("cats"), norm="layernorm"), "Cats sit on", edits=state.edits)
    found = listed(state)
    for name in ("layers.0.attention.q", "logits", "layers.1.output"):
        assert found[name].largest == np.abs(own[name].data - now[name].data).max() > 0
    assert found["layers.0.attention.Wq"].largest == 0
    assert found["layers.0.norm1.bias"].place == HERE


def test_infinities_are_left_out() -> None:
    state = switched("cats", norm="layernorm")
    assert np.isfinite(listed(state)["layers.0.attention.masked_scores"].largest or np.nan)
    edit(state, "layers.0.norm1.weight", (0,), 1e308)
    for each in listed(state).values():
        assert each.largest is None or np.isfinite(each.largest)


def test_nothing_of_a_large_vocabulary_is_compared_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a table of 50257 rows was made")
    monkeypatch.setattr("engine.deferred.whole", refuse)
    state = switched("today", positions="rope", norm="rmsnorm", tied_head=False)
    edit(state, "embedding.weight", (4096, 0), 0.5)
    before = comparison.unswitched(state)
    found = {each.name: each for each in comparison.differences(state, before)}
    assert found["lm_head.weight"].largest == 0.8  # the edit of the table no longer reaches the head
    rows = [1024, 2048, 3072, 4096, 5120, 6144, 7168]
    delta = np.abs(before["logits"].row(0, 4)[rows] - state.trace["logits"].row(0, 4)[rows])
    assert found["logits"].largest == delta.max() > 0
    assert [outcome.label for outcome in comparison.outcomes(state, before)][:1] == ["好"]


# ---- controls

def test_choices_that_do_not_go_together_leave_all_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    state = switched("cats", norm="layernorm")
    monkeypatch.setattr(switchboard, "current", lambda: state)
    kept, known = state.choices, runs.model

    def refuse(preset: str, seed: int, chosen: switches.Switches) -> Model:
        if ("positions", "learned") in chosen:
            raise ConfigError("odd_head_size", "head size D = 3 must be even", head_size=3)
        return known(preset, seed, chosen)
    monkeypatch.setattr(runs, "model", refuse)
    switchboard.take({"positions": "learned"})
    assert state.choices == kept
    assert state.message == ("error", catalogue("en")["error_odd_head_size"].format(head_size=3))
    switchboard.take({"causal": False})
    assert state.message is None
    assert dict(state.choices.switches) == {"norm": "layernorm", "causal": False}


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_choice_has_its_words(language: str) -> None:
    words, state = catalogue(language), reader("switchboard", language=language)
    for field, values in FIELDS.items():
        assert words[f"arch_{field}"]
        assert words[f"arch_{field}_help"]
        assert len({switchboard.choice(state, field, value) for value in values}) == len(values)
    for name in COMBINATIONS:
        assert words[f"combination_{name}_missing"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_notice_names_what_differs(language: str) -> None:
    state = reader("scores", preset="cats", language=language)
    state.switch(norm="layernorm", causal=False)
    words = catalogue(language)
    notice = switchboard.notice(state)
    for key in ("arch_norm", "arch_norm_layernorm", "arch_causal", "arch_off"):
        assert words[key] in notice
    assert words["arch_positions"] not in notice


@pytest.mark.parametrize("name", COMBINATIONS)
def test_a_combination_comes_back_from_its_address(name: str) -> None:
    state = switched("cats", **switches.combination(name, presets.load("cats").config))
    query = dict(pair.split("=") for pair in address(state).removeprefix("?").split("&"))
    assert "arch" in query
    again = open_address({key: value.replace("%2C", ",") for key, value in query.items()}, None)
    assert again.message is None
    assert again.choices.switches == state.choices.switches


def test_a_way_back_through_cells_that_are_gone() -> None:
    """The trail of an explanation loses the cells that the switched model does not have."""
    state = reader("switchboard")
    for trail, (tensor, index) in enumerate([
        ("layers.0.attention.q_rotated", [0, 0, 1, 0]), ("layers.0.attention.q_heads", [0, 0, 1, 0]),
    ]):
        send(state, "select", tensor=tensor, index=index, trail="push" if trail else "start")
    state.switch(positions="none")
    data = alive("switchboard", state)
    assert [step["tensor"] for step in data["explanation"]["trail"]] == ["layers.0.attention.q_heads"]
    state.switch(positions="rope")
    assert alive("switchboard", state)["explanation"]["title"]
