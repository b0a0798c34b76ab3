"""Leaving parts out agrees with a forward pass written separately, and is recognised in the edits again."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import Edit, Mean, Model, presets, run
from engine.edits import Given
from engine.removal import BRANCHES, Contribution, Edge, Head, Part, Position, Unit, parts_at, removal, removed, values
from engine.variants import variant
from tests.engine.by_hand import forward
from tests.engine.support import Array, model_with

# head size 16, more positions than heads, tokens that come again
SIZES = {"vocab_size": 9, "hidden_size": 32, "heads": 2, "layers": 2, "mlp_size": 12}
IDS = [3, 1, 4, 1, 5, 1, 3]
ARCHITECTURES: dict[str, dict[str, object]] = {
    "own": {}, "half": {"rope_pairing": "half"}, "learned": {"positions": "learned", "max_positions": 8},
    "LayerNorm": {"norm": "layernorm", "bias": True}, "post-norm": {"norm_placement": "post", "norm": "layernorm"},
    "not causal": {"causal": False}, "unscaled": {"scale_scores": False, "positions": "none"},
    "no residual": {"residual": False, "activation": "gelu_tanh"},
    "GPT-2": {"norm": "layernorm", "bias": True, "positions": "learned", "max_positions": 8, "tied_head": True,
              "activation": "gelu_tanh"},
}
EVERY_ARCHITECTURE = pytest.mark.parametrize("changes", ARCHITECTURES.values(), ids=ARCHITECTURES)
PARTS: tuple[Part, ...] = (
    Edge(0, 1, 4, 2), Edge(1, 0, 6, 0), Edge(0, 0, 0, 0), Position(2), Position(0), Position(6), Head(0, 1),
    Head(1, 0, 3), Unit(0, 5), Unit(1, 11, 6), Contribution(0, "attention"), Contribution(1, "attention", 2),
    Contribution(0, "mlp", 0), Contribution(1, "mlp"),
)
EVERY_PART = pytest.mark.parametrize("part", PARTS, ids=str)


def built(**changes: object) -> Model:
    """Parameters so small that no softmax puts all its weight on one key."""
    model = model_with(**SIZES, **changes, seed=5)
    return Model(model.config, {
        name: array if "norm" in name and name.endswith(".weight") else 0.3 * array
        for name, array in model.parameters.items()
    })


def expected(model: Model, ids: Sequence[int], wanted: dict[Part, Given]) -> Array:
    """Logits by the separate forward pass, in which each part is left out in so many words."""
    config = model.config

    def masked(layer: int, head: int, query: int, key: int) -> bool:
        return config.causal and any(
            part == Edge(layer, head, query, key) or (isinstance(part, Position) and part.position == key < query)
            for part in wanted
        )

    def change(what: str, layer: int, array: Array) -> Array:
        computed = array.copy()
        for part, value in wanted.items():
            match what, part:
                case "weights", Edge(at, head, query, key) if at == layer and not config.causal:
                    array[head, query, key] = 0.0
                case "weights", Position(key) if not config.causal:
                    array[:, [query for query in range(len(ids)) if query != key], key] = 0.0
                case "head", Head(at, head, position) if at == layer:
                    _set(array[head], computed[head], position, value)
                case "hidden", Unit(at, unit, position) if at == layer:
                    _set(array[:, unit], computed[:, unit], position, value)
                case ("attention" | "mlp"), Contribution(at, branch, position) if (at, branch) == (layer, what):
                    _set(array, computed, position, value)
        return array

    return forward(config, model.parameters, ids, change, masked)


def _set(array: Array, computed: Array, position: int | None, value: Given) -> None:
    """Zero, or the mean over positions (the first axis), at every position or at one."""
    given = sum(computed) / len(computed) if value == Mean() else 0.0
    array[slice(None) if position is None else position] = given


def logits(model: Model, ids: Sequence[int], wanted: dict[Part, Given]) -> Array:
    edits = [edit for part, value in wanted.items() for edit in removal(part, model.config, value)]
    return run(model, list(ids), edits=edits)["logits"].data[0]


@EVERY_ARCHITECTURE
def test_nothing_removed(changes: dict[str, object]) -> None:
    model = built(**changes)
    for ids in (IDS, [4], [1, 1]):
        np.testing.assert_allclose(logits(model, ids, {}), expected(model, ids, {}), rtol=1e-10, atol=1e-10)


@EVERY_PART
@EVERY_ARCHITECTURE
def test_one_part(changes: dict[str, object], part: Part) -> None:
    model = built(**changes)
    for value in values(part, model.config):
        actual = logits(model, IDS, {part: value})
        np.testing.assert_allclose(actual, expected(model, IDS, {part: value}), rtol=1e-9, atol=1e-9)


@EVERY_PART
def test_each_part_matters(part: Part) -> None:
    model = built(**ARCHITECTURES["GPT-2"])
    for value in values(part, model.config):
        # of the last position nothing reads but itself
        assert np.allclose(logits(model, IDS, {part: value}), logits(model, IDS, {})) == (part == Position(6))


@EVERY_PART
def test_one_token(part: Part) -> None:
    """Beyond the sentence a part is out of reach and stays; the mean of one position is itself."""
    model = built()
    for value in values(part, model.config):
        actual = logits(model, [4], {part: value})
        np.testing.assert_allclose(actual, expected_within(model, [4], part, value), rtol=1e-9, atol=1e-9)
        if value == Mean():
            np.testing.assert_allclose(actual, logits(model, [4], {}), rtol=1e-12)


def expected_within(model: Model, ids: Sequence[int], part: Part, value: Given) -> Array:
    position = getattr(part, "position", None) or 0
    reached = max(position, getattr(part, "query", 0)) < len(ids)
    return expected(model, ids, {part: value} if reached else {})


@settings(max_examples=30, deadline=None)
@given(
    chosen=st.lists(st.sampled_from(PARTS), unique=True, max_size=5), data=st.data(),
    ids=st.lists(st.integers(0, 8), min_size=7, max_size=8), changes=st.sampled_from(list(ARCHITECTURES.values())),
)
def test_several_parts(chosen: list[Part], data: st.DataObject, ids: list[int], changes: dict[str, object]) -> None:
    model = built(**changes)
    wanted = {part: data.draw(st.sampled_from(values(part, model.config))) for part in chosen}
    np.testing.assert_allclose(logits(model, ids, wanted), expected(model, ids, wanted), rtol=1e-8, atol=1e-8)


def test_an_edge_that_is_gone_leaves_its_share_to_the_others() -> None:
    model = built()
    before = run(model, IDS)["layers.0.attention.weights"].data[0, 1, 4]
    trace = run(model, IDS, edits=removal(Edge(0, 1, 4, 2), model.config, -inf))
    after = trace["layers.0.attention.weights"].data[0, 1, 4]
    assert after[2] == 0
    others = [0, 1, 3, 4]
    np.testing.assert_allclose(after[others], before[others] / (1 - before[2]), rtol=1e-12)


def test_a_position_goes_on_reading_itself() -> None:
    model = built()
    trace = run(model, IDS, edits=removal(Position(2), model.config, -inf))
    for layer in range(2):
        weights = trace[f"layers.{layer}.attention.weights"].data[0]
        assert not weights[:, 3:, 2].any()
        assert (weights[:, 2, :3] > 0).all()
        np.testing.assert_allclose(weights.sum(axis=-1), 1.0)
    plain = run(model, IDS)
    assert np.array_equal(trace["logits"].data[0, :3], plain["logits"].data[0, :3])


class TestRecognition:
    @EVERY_PART
    @pytest.mark.parametrize("causal", [True, False])
    def test_there_and_back(self, part: Part, causal: bool) -> None:
        config = built(causal=causal).config
        for value in values(part, config):
            edits = [Edit("embedding.weight", (1, 2), 0.5), *removal(part, config, value)]
            assert removed(edits, config) == {part: value}

    def test_several_in_order(self) -> None:
        config = built().config
        wanted = {part: values(part, config)[-1] for part in PARTS}
        edits = [edit for part, value in wanted.items() for edit in removal(part, config, value)]
        assert list(removed(edits, config).items()) == list(wanted.items())

    def test_half_a_position_is_none(self) -> None:
        config = built().config
        assert removed(removal(Position(2), config, -inf)[:1], config) == {}

    @pytest.mark.parametrize("edit", [
        Edit("layers.0.attention.head_output", (0, 1), 0.5), Edit("layers.0.attention.head_output", (), 0.0),
        Edit("layers.0.attention.head_output", (0, 1, 2, 3), 0.0), Edit("layers.0.mlp.activation", (0,), 0.0),
        Edit("layers.0.attention.weights", (0, 1, 2, 1), 0.0), Edit("layers.0.mlp.up", (0, 1, 2), 0.0),
        Edit("layers.0.attention.masked_scores", (0, 1, 2, 1), 0.0), Edit("layers.0.output", (0,), 0.0),
        Edit("layers.0.attention.output", (slice(None),), 0.0), Edit("logits", (0, 1), 0.0),
        Edit("layers.0.attention.masked_scores", (0, slice(None), slice(None), 1), -inf),
        Edit("layers.0.mlp.activation", (0, slice(1, None), 2), 0.0), Edit("causal_mask", (2, 1), -inf),
    ])
    def test_other_edits_are_no_removals(self, edit: Edit) -> None:
        assert removed([edit], built().config) == {}


class TestOffers:
    @pytest.mark.parametrize(("name", "index", "parts"), [
        ("layers.1.attention.weights", (0, 1, 4, 2), (Edge(1, 1, 4, 2), Position(2), Head(1, 1))),
        ("layers.0.attention.masked_scores", (0, 0, 6, 6), (Edge(0, 0, 6, 6), Head(0, 0))),
        ("layers.0.attention.weights", (0, 0, 2, 4), (Position(4), Head(0, 0))),
        ("layers.0.attention.head_output", (0, 1, 3, 7), (Head(0, 1, 3), Head(0, 1))),
        ("layers.1.mlp.activation", (0, 3, 7), (Unit(1, 7, 3), Unit(1, 7))),
        ("layers.1.mlp.output", (0, 3, 7), (Contribution(1, "mlp", 3), Contribution(1, "mlp"))),
        ("layers.0.attention.output", (0, 3, 7), (Contribution(0, "attention", 3), Contribution(0, "attention"))),
        ("layers.0.output", (0, 3, 7), ()), ("logits", (0, 3, 7), ()), ("layers.0.attention.Wq", (3, 7), ()),
        ("layers.0.attention.weights.sum", (0, 1, 3), ()), ("layers.0.norm1.output", (0, 3, 7), ()),
    ])
    def test_at_a_cell(self, name: str, index: tuple[int, ...], parts: tuple[Part, ...]) -> None:
        assert parts_at(name, index, built().config, 7) == parts

    def test_without_a_causal_mask_all_read_all(self) -> None:
        config = built(causal=False).config
        assert parts_at("layers.0.attention.weights", (0, 0, 2, 6), config, 7) == (
            Edge(0, 0, 2, 6), Position(6), Head(0, 0),
        )

    def test_every_offer_of_a_trace_runs(self) -> None:
        for preset in presets.NAMES:
            for changes in ({}, {"causal": False}, {"scale_scores": False}):
                model = variant(presets.load(preset), **changes)
                assert model.tokenizer is not None
                trace = run(model, presets.SENTENCES[preset])
                offers = {
                    part for name, tensor in trace.items() if name.startswith("layers.")
                    for part in parts_at(name, (0,) * len(tensor.shape), model.config, trace.ids.shape[1])
                }
                assert {type(part) for part in offers} == {Edge, Position, Head, Unit, Contribution}
                for part in offers:
                    for value in values(part, model.config):
                        run(model, presets.SENTENCES[preset], edits=removal(part, model.config, value), base=trace)


def test_the_branches_are_those_of_a_layer() -> None:
    trace = run(built(), IDS)
    assert all(f"layers.0.{branch}.output" in trace for branch in BRANCHES)


class TestTheCopyMachine:
    """What the lessons say of it, with the weights as they are committed."""

    SENTENCE, NEXT = "planetplan", "e"

    def probability(self, *parts: tuple[Part, Given]) -> float:
        model = presets.load("copy_machine")
        assert model.tokenizer is not None
        edits = [edit for part, value in parts for edit in removal(part, model.config, value)]
        trace = run(model, self.SENTENCE, edits=edits)
        (token,) = model.tokenizer.encode(self.NEXT)
        return float(trace["probabilities"].data[0, -1, token])

    def test_three_heads_carry_the_copying(self) -> None:
        before = self.probability()
        assert before > 0.95
        for value in (0.0, Mean()):
            for head in (Head(0, 1), Head(1, 0), Head(1, 1)):
                assert self.probability((head, value)) < before / 2, (head, value)
            assert self.probability((Head(0, 0), value)) > before - 0.01

    def test_an_edge_moves_the_weight_elsewhere(self) -> None:
        model = presets.load("copy_machine")
        edge = Edge(1, 1, 9, 4)
        trace, plain = (run(model, self.SENTENCE, edits=edits) for edits in (removal(edge, model.config, -inf), ()))
        before, after = (each["layers.1.attention.weights"].data[0, 1, 9] for each in (plain, trace))
        assert before[4] > 0.9
        assert after[4] == 0
        assert after.sum() == pytest.approx(1.0)

    def test_the_layer_behind_changes_though_nobody_touched_it(self) -> None:
        model = presets.load("copy_machine")
        edits = removal(Head(0, 1), model.config, 0.0)
        before, after = (
            run(model, self.SENTENCE, edits=each)["layers.1.attention.weights"].data[0, :, 9, 4] for each in ((), edits)
        )
        assert (before > 0.9).all()
        assert (after < 0.5).all()
