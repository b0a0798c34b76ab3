"""Edits to a mean over the positions of the sentence, and to the same cells of another run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import Carried, Edit, EditError, InputError, Mean, Model, Trace, explain, gradient, programs, run
from engine.edits import Given
from engine.generation import generate
from engine.trace import Past
from tests.engine.support import Array, assert_explained, assert_same_bits, model_with

ATTENTION = "layers.0.attention"
HEADS, WEIGHTS, MASKED = (f"{ATTENTION}.{name}" for name in ("head_output", "weights", "masked_scores"))
MODEL = model_with(vocab_size=11, hidden_size=12, heads=3, layers=2, mlp_size=7)
IDS, OTHER = [3, 1, 4, 1, 5], (2, 7, 1, 8, 2)
# beyond 4096 rows the vocabulary's tensors are computed when somebody looks
LARGE = model_with(vocab_size=5000, hidden_size=4, heads=2, mlp_size=3)


def edited(*edits: Edit, model: Model = MODEL, ids: Any = IDS, **more: Any) -> Trace:
    return run(model, ids, edits=edits, **more)


def before(trace: Trace, name: str) -> Array:
    """What an override replaced."""
    return trace[name].inputs[0].data


class TestMean:
    def test_of_a_head(self) -> None:
        """Every position of head 1 holds the average of its five vectors; the other heads are as they were."""
        trace, plain = edited(Edit(HEADS, (0, 1), Mean())), run(MODEL, IDS)
        computed = plain[HEADS].data[0, 1]
        by_hand = [sum(computed[position, feature] for position in range(5)) / 5 for feature in range(4)]
        np.testing.assert_allclose(trace[HEADS].data[0, 1], [by_hand] * 5, rtol=1e-14)
        assert np.array_equal(trace[HEADS].data[0, [0, 2]], plain[HEADS].data[0, [0, 2]])
        assert np.array_equal(before(trace, HEADS), plain[HEADS].data)

    def test_of_what_this_run_computed(self) -> None:
        """An edit upstream moves the mean; one of the same tensor does not."""
        upstream = Edit(f"{ATTENTION}.v_heads", (0, 1, 0), 3.0)
        trace = edited(upstream, Edit(HEADS, (0, 1), 9.0), Edit(HEADS, (0, 1), Mean()))
        np.testing.assert_allclose(
            trace[HEADS].data[0, 1], [edited(upstream)[HEADS].data[0, 1].mean(axis=0)] * 5, rtol=1e-14
        )

    def test_of_one_cell(self) -> None:
        name = "layers.1.mlp.activation"
        trace, plain = edited(Edit(name, (0, 2, 6), Mean())), run(MODEL, IDS)[name].data
        expected = plain.copy()
        expected[0, 2, 6] = plain[0, :, 6].mean()
        np.testing.assert_allclose(trace[name].data, expected, rtol=1e-14)

    def test_each_sentence_of_a_batch_has_its_own(self) -> None:
        ids = [IDS, list(OTHER)]
        trace, plain = edited(Edit(HEADS, (), Mean()), ids=ids), run(MODEL, ids)
        for number in range(2):
            np.testing.assert_allclose(
                trace[HEADS].data[number], np.repeat(plain[HEADS].data[number].mean(axis=1)[:, None], 5, axis=1),
                rtol=1e-14,
            )

    def test_of_weights_is_the_mean_of_what_may_be_read(self) -> None:
        """Rows sum to 1, so query t gives each of its t + 1 keys 1/(t + 1), and the future stays at 0."""
        weights = edited(Edit(WEIGHTS, (0, 0), Mean()))[WEIGHTS].data[0, 0]
        expected = np.tril(np.ones((5, 5))) / np.arange(1, 6)[:, None]
        np.testing.assert_allclose(weights, expected, rtol=1e-14)
        assert not weights[np.triu_indices(5, 1)].any()

    def test_of_weights_without_a_causal_mask_is_of_all(self) -> None:
        free = model_with(hidden_size=8, heads=2, causal=False)
        weights = edited(Edit(WEIGHTS, (0, 0), Mean()), model=free)[WEIGHTS].data[0, 0]
        np.testing.assert_allclose(weights, np.full((5, 5), 0.2), rtol=1e-14)

    def test_of_masked_scores_leaves_the_masked_ones_out(self) -> None:
        edits = [Edit("causal_mask", (4, 1), -np.inf), Edit(MASKED, (0, 2), Mean())]
        trace = edited(*edits)
        scores = trace[f"{ATTENTION}.scores"].data[0, 2]
        for query in range(5):
            read = [key for key in range(query + 1) if (query, key) != (4, 1)]
            np.testing.assert_allclose(trace[MASKED].data[0, 2, query, read], scores[query, read].mean(), rtol=1e-13)
            assert np.isneginf(trace[MASKED].data[0, 2, query, query + 1:]).all()

    def test_of_a_row_that_is_masked_whole_is_masked(self) -> None:
        edits = [Edit("causal_mask", (2,), -np.inf), Edit(MASKED, (), Mean())]
        trace = edited(*edits)
        assert np.isneginf(trace[MASKED].data[:, :, 2]).all()
        assert not np.isnan(trace["logits"].data).any()

    def test_a_cell_that_may_not_be_read_is_no_part_of_it(self) -> None:
        trace = edited(Edit(WEIGHTS, (0, 0), Mean()))
        assert explain(trace, WEIGHTS, (0, 0, 1, 3)).op == "share"
        assert explain(trace, WEIGHTS, (0, 0, 3, 1)).op == "override"

    def test_follows_the_sentence(self) -> None:
        edit = Edit(HEADS, (0, 1), Mean())
        for ids in ([1], [1, 2], [4, 4, 4, 4, 4, 4]):
            trace = edited(edit, ids=ids)
            np.testing.assert_allclose(trace[HEADS].data[0, 1], [before(trace, HEADS)[0, 1].mean(axis=0)] * len(ids))

    @pytest.mark.parametrize(("name", "code"), [
        ("layers.0.attention.Wq", "needs_number"), ("norm_epsilon", "needs_number"), ("causal_mask", "needs_number"),
        ("rope.positions", "needs_number"),
    ])
    def test_of_what_is_given(self, name: str, code: str) -> None:
        for value in (Mean(), Carried((1, 2))):
            with pytest.raises(EditError) as raised:
                edited(Edit(name, (), value))
            assert (raised.value.code, raised.value.details["name"]) == (code, name)

    def test_of_what_has_no_positions(self) -> None:
        name = "softmax_demo.small_weights"
        with pytest.raises(EditError) as raised:
            edited(Edit(name, (), Mean()), program=programs.lessons)
        assert (raised.value.code, raised.value.details["name"]) == ("no_positions", name)


class TestCarried:
    def test_of_a_position(self) -> None:
        name = "layers.0.output"
        trace, donor = edited(Edit(name, (0, 2), Carried(OTHER))), run(MODEL, [list(OTHER)])
        assert np.array_equal(trace[name].data[0, 2], donor[name].data[0, 2])
        assert np.array_equal(trace[name].data[0, [0, 1, 3, 4]], run(MODEL, IDS)[name].data[0, [0, 1, 3, 4]])

    def test_all_of_the_stream_gives_the_other_sentence(self) -> None:
        trace = edited(Edit("layers.0.output", (), Carried(OTHER)))
        assert np.array_equal(trace["logits"].data, run(MODEL, [list(OTHER)])["logits"].data)

    def test_the_other_run_is_unedited(self) -> None:
        name = "layers.1.attention.head_output"
        trace = edited(Edit("embedding.output", (), 0.5), Edit(name, (0, 0), Carried(OTHER)))
        assert np.array_equal(trace[name].data[0, 0], run(MODEL, [list(OTHER)])[name].data[0, 0])

    @pytest.mark.parametrize("other", [(2, 7), (2, 7, 1, 8, 2, 8, 1)], ids=["shorter", "longer"])
    def test_positions_are_matched_by_index(self, other: tuple[int, ...]) -> None:
        trace, donor = edited(Edit(WEIGHTS, (), Carried(other))), run(MODEL, [list(other)])
        both = min(5, len(other))
        assert np.array_equal(trace[WEIGHTS].data[..., :both, :both], donor[WEIGHTS].data[..., :both, :both])
        assert np.array_equal(trace[WEIGHTS].data[..., both:, :], run(MODEL, IDS)[WEIGHTS].data[..., both:, :])

    @pytest.mark.parametrize("index", [(0, 3), (0, -1), (0, slice(2, None)), (0, slice(None, None, -4), 1)])
    def test_beyond_the_other_sentence_is_kept_and_inactive(self, index: tuple[Any, ...]) -> None:
        name = "layers.0.mlp.output"
        trace = edited(Edit(name, index, Carried((2, 7))))
        reached = isinstance(index[1], slice) and index[1].step == -4
        assert trace[name].overridden == reached
        rest = np.array_equal(trace[name].data[0, 1:], run(MODEL, IDS)[name].data[0, 1:])
        assert rest

    def test_one_sentence_serves_a_batch(self) -> None:
        name = "layers.0.output"
        trace = edited(Edit(name, (), Carried(OTHER)), ids=[IDS, IDS])
        donor = run(MODEL, [list(OTHER)])
        assert all(np.array_equal(part, donor[name].data[0]) for part in trace[name].data)

    def test_under_the_same_circumstances(self) -> None:
        model = model_with(hidden_size=8, heads=2, dropout=0.5)
        name = "layers.0.mlp.dropped"
        trace = edited(Edit(name, (), Carried((2, 6, 1))), model=model, ids=[1, 2, 3], training=True, seed=4)
        donor = run(model, [2, 6, 1], training=True, seed=4)
        assert np.array_equal(trace[name].data, donor[name].data)
        assert not np.array_equal(trace[name].data, run(model, [2, 6, 1], training=True, seed=5)[name].data)

    @pytest.mark.parametrize("other", [(2, 7), OTHER, (2, 7, 1, 8, 2, 8)], ids=["shorter", "equal", "longer"])
    def test_with_targets(self, other: tuple[int, ...]) -> None:
        trace = edited(Edit("layers.0.output", (0, 1), Carried(other)), targets=[1, 4, 1, 5, 9])
        assert np.isfinite(trace["loss"].data)

    @pytest.mark.parametrize("ids", [(), "12", None, 3, (1.0,), (True,), (-1,), ((1, 2),)])
    def test_what_is_no_sentence(self, ids: Any) -> None:
        with pytest.raises(EditError) as raised:
            Carried(ids)
        assert raised.value.code == "carried_ids"

    def test_lists_and_numpy_numbers_are_the_same_ids(self) -> None:
        assert Carried([np.int64(2), 7]) == Carried((2, 7))  # type: ignore[arg-type]

    def test_a_sentence_that_the_model_cannot_read(self) -> None:
        with pytest.raises(InputError) as raised:
            edited(Edit(HEADS, (), Carried((2, 11))))
        assert raised.value.code == "id_out_of_range"


@pytest.mark.parametrize("value", [Mean(), Carried(OTHER), Carried((2, 7))], ids=["mean", "carried", "shorter"])
class TestBoth:
    def test_equal_edits_are_one(self, value: Given) -> None:
        first, second = Edit(HEADS, (0, 1), value), Edit(HEADS, (0, 1), value)
        assert (first, hash(first), first.key) == (second, hash(second), second.key)
        assert first != Edit(HEADS, (0, 1), 0.0)

    def test_every_cell_explains_itself(self, value: Given) -> None:
        trace = edited(Edit(HEADS, (0, 1), value), Edit("layers.1.attention.scores", (0, 0, 3), value),
                       Edit("layers.1.attention.weights", (0, 2), value))
        assert_explained(trace)
        cell = explain(trace, HEADS, (0, 1, 1, 2))
        assert (cell.op, cell.evaluate()) == ("override", trace[HEADS].data[0, 1, 1, 2])
        assert cell.computed is not None
        assert cell.computed.value == before(trace, HEADS)[0, 1, 1, 2]

    def test_the_gradient_stops_where_it_has_a_value(self, value: Given) -> None:
        trace = edited(Edit(WEIGHTS, (0, 1), value))
        upstream = gradient(trace, "logits", (0, 4, 3))[f"{WEIGHTS}.exp"].data[0]
        # a shorter sentence has none for later queries
        assert not np.tril(upstream[1, :2, :2]).any()
        assert upstream[1, 4].any() == (value == Carried((2, 7)))
        assert upstream[0, 4].any()

    def test_with_float32(self, value: Given) -> None:
        single = Model(MODEL.config, {name: array.astype(np.float32) for name, array in MODEL.parameters.items()})
        trace = edited(Edit(HEADS, (0, 1), value), Edit(WEIGHTS, (0, 2), value), model=single)
        assert trace[HEADS].data.dtype == trace[WEIGHTS].data.dtype == trace["logits"].data.dtype == np.float32

    def test_large_vocabulary(self, value: Given) -> None:
        plain = run(LARGE, IDS)
        edits = [Edit("logits", (0, 1), value), Edit("logits", (0, 4, 77), value)]
        trace = edited(*edits, model=LARGE, base=plain)
        whole, expected = plain["logits"].data, plain["logits"].data.copy()
        if isinstance(value, Mean):
            expected[0, 1], expected[0, 4, 77] = whole[0].mean(axis=0), whole[0, :, 77].mean()
        else:
            donor = run(LARGE, [list(value.ids)])["logits"].data
            expected[0, 1] = donor[0, 1]
            if len(value.ids) == 5:
                expected[0, 4, 77] = donor[0, 4, 77]
        np.testing.assert_allclose(trace["logits"].data, expected, rtol=1e-13)
        assert trace["logits"].number((0, 1, 9)) == trace["logits"].data[0, 1, 9]
        assert explain(trace, "logits", (0, 1, 9)).op == "override"
        is_reached = value != Carried((2, 7))
        assert (explain(trace, "logits", (0, 4, 77)).op == "override") == is_reached
        gradients = gradient(trace, "probabilities", (0, 4, 77))
        assert np.isfinite(gradients["final_norm.output"].data).all()

    def test_a_cache_is_of_no_use(self, value: Given) -> None:
        """What a full pass makes of earlier positions changes, so a cached loop gives the same tokens as a full one."""
        edits = [Edit(HEADS, (0, 1), value), Edit("layers.1.output", (0, 1), value)]
        cached, full = (
            [step.token for step in generate(MODEL, IDS, count=6, edits=edits, cached=cached)]
            for cached in (True, False)
        )
        assert cached == full

    def test_with_a_past(self, value: Given) -> None:
        """Positions are those of the pass: the new ones."""
        plain = run(MODEL, [1, 2])
        arrays = {
            f"layers.{layer}.attention.{letter}_cache": plain[f"layers.{layer}.attention.{name}"].data
            for layer in range(2) for letter, name in (("k", "k_rotated"), ("v", "v_heads"))
        }
        past = Past(2, arrays)
        trace = edited(Edit(WEIGHTS, (0, 0), value), past=past)
        assert trace[WEIGHTS].shape == (1, 3, 5, 7)
        np.testing.assert_allclose(trace[WEIGHTS].data[0, 0].sum(axis=-1), 1.0)


@settings(max_examples=25, deadline=None)
@given(ids=st.lists(st.integers(0, 4999), min_size=3, max_size=3), data=st.data())
def test_reruns_over_a_large_vocabulary(ids: list[int], data: st.DataObject) -> None:
    """Also of what is computed when somebody looks, a rerun has the same bits as a full run."""
    values = st.sampled_from([Mean(), Carried((4, 99)), Carried((1, 2, 3, 4)), 0.5])
    names = st.sampled_from(["logits", "probabilities", "probabilities.sum", "final_norm.output"])
    index = st.sampled_from([(), (0,), (0, 1), (0, slice(1, None))])
    edits = st.lists(st.builds(Edit, names, index, values), max_size=3)
    base = None
    for chosen in data.draw(st.lists(edits, min_size=2, max_size=3)):
        base = run(LARGE, ids, edits=chosen, base=base)
        full = run(LARGE, ids, edits=chosen)
        assert_same_bits(base, full)
        for name in ("logits", "probabilities", "probabilities.sum"):
            assert base[name].data.tobytes() == full[name].data.tobytes()


class TestOfGradientsOfALargeVocabulary:
    """They are computed when somebody looks, and have axes of the sentence beside batch and position."""

    NAME = f"gradient.{ATTENTION}.dot"
    TARGETS = (1, 4, 1, 5, 9)

    def run(self, ids: Any, *edits: Edit, targets: Any = TARGETS) -> Trace:
        return run(LARGE, ids, edits=edits, program=programs.of("backward"), targets=targets)

    @pytest.mark.parametrize("other", [(2, 7), (2, 7, 1, 8, 2), (2, 7, 1, 8, 2, 8, 1)], ids=["short", "equal", "long"])
    @pytest.mark.parametrize("index", [(0, 0), (0, 1, -1, -1), (0, slice(None), slice(1, 4), 0), ()], ids=str)
    def test_cells_are_those_of_the_same_place(self, other: tuple[int, ...], index: tuple[int | slice, ...]) -> None:
        plain = self.run(IDS)[self.NAME].data
        donor = self.run([list(other)], targets=[[*self.TARGETS[:len(other)], *other[5:]]])[self.NAME].data
        both = min(5, len(other))
        given, is_named = plain.copy(), np.zeros(plain.shape, dtype=bool)
        given[..., :both, :both] = donor[..., :both, :both]
        is_named[index] = True
        is_named[..., both:, :] = is_named[..., both:] = False
        trace = self.run(IDS, Edit(self.NAME, index, Carried(other)))
        assert np.array_equal(trace[self.NAME].data, np.where(is_named, given, plain))
        slot = trace[self.NAME].slot
        for cell in np.ndindex(*plain.shape):
            assert trace.recording.covers(slot, cell) == is_named[cell]
            assert trace[self.NAME].number(cell) == trace[self.NAME].data[cell]

    def test_a_gate_is_made_for_the_place_that_is_looked_at(self) -> None:
        """One edited logit stops the gradient there; the run makes no table of the vocabulary for it."""
        base = self.run(IDS)
        edits = [Edit("logits", (0, 1, 7), 0.5), Edit("logits", (0, 3), Carried((2, 7, 1, 8)))]
        trace = run(LARGE, IDS, edits=edits, program=programs.of("backward"), targets=self.TARGETS, base=base)
        made = [now.size for now, old in zip(trace.recording.values, base.recording.values, strict=True)
                if now is not old]
        assert max(made, default=0) < 5000
        plan = trace.recording.plan
        gate = next(node for node in plan.nodes
                    if node.operation == "kept" and node.attributes["of"] == plan.names["logits"])
        expected = np.ones((1, 5, 5000))
        expected[0, 1, 7] = expected[0, 3] = 0
        assert np.array_equal(trace.recording.data(gate.slot), expected)
        assert not trace[f"gradient.{ATTENTION}.dot"].shares(base[f"gradient.{ATTENTION}.dot"])
        passed = expected[0] * trace["gradient.logits"].data[0]
        np.testing.assert_allclose(
            trace["gradient.final_norm.output"].data[0], passed @ LARGE.parameters["lm_head.weight"], rtol=1e-9
        )
        own = gradient(trace, "loss", ())["final_norm.output"].data
        np.testing.assert_allclose(own, trace["gradient.final_norm.output"].data, rtol=1e-9)


def test_whole_numbers_have_no_mean() -> None:
    """The mean of ranks or ids need not be one."""
    program = programs.of("lens")
    name = "lens.embedding.leading"
    with pytest.raises(EditError) as raised:
        edited(Edit(name, (0, 1), Mean()), program=program)
    assert (raised.value.code, raised.value.details["name"]) == ("whole_mean", name)
    carried = edited(Edit(name, (0, 1), Carried(OTHER)), program=program)
    assert carried[name].data[0, 1] == run(MODEL, [list(OTHER)], program=program)[name].data[0, 1]
