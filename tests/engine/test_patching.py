"""Patching agrees with a forward pass written separately, in which one vector is put in by hand."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from engine import Carried, Edit, Model, Trace, patching, presets, programs, run
from engine.patching import KINDS
from engine.programs.question import Question
from tests.engine.by_hand import forward
from tests.engine.support import Array, assert_explained, assert_same_bits, model_with

# head size 16, more positions than heads, tokens that come again, and two positions that differ
SIZES = {"vocab_size": 9, "hidden_size": 32, "heads": 2, "layers": 2, "mlp_size": 12}
IDS, OTHER = [3, 1, 4, 1, 5, 1, 3], [3, 7, 4, 1, 2, 1, 3]
QUESTION = Question(token=6, rival=2)
ARCHITECTURES: dict[str, dict[str, object]] = {
    "own": {}, "learned": {"positions": "learned", "max_positions": 8},
    "LayerNorm": {"norm": "layernorm", "bias": True}, "post-norm": {"norm_placement": "post", "norm": "layernorm"},
    "not causal": {"causal": False},
    "no residual": {"residual": False, "activation": "gelu_tanh"}, "no norm": {"norm": "none"},
    "GPT-2": {"norm": "layernorm", "bias": True, "positions": "learned", "max_positions": 8, "tied_head": True,
              "activation": "gelu_tanh"},
}
EVERY_ARCHITECTURE = pytest.mark.parametrize("changes", ARCHITECTURES.values(), ids=ARCHITECTURES)
EVERY_KIND = pytest.mark.parametrize("kind", KINDS)


def built(**changes: object) -> Model:
    """Parameters so small that no softmax puts all its weight on one key."""
    model = model_with(**SIZES, **changes, seed=5)
    return Model(model.config, {
        name: array if "norm" in name and name.endswith(".weight") else 0.3 * array
        for name, array in model.parameters.items()
    })


def unedited(model: Model, ids: list[int] = IDS) -> Trace:
    return run(model, ids, program=programs.of("patch", QUESTION))


def by_hand(model: Model, kind: str, layer: int, position: int, head: int) -> float:
    """The difference of logits when a vector of the other sentence's pass is put into this one's."""
    # the separate pass counts what is inside a layer from 0, and the stream as `patching` does
    what, at = kind, layer if kind == "stream" else layer - 1
    kept: dict[tuple[str, int], Array] = {}

    def keep(name: str, number: int, array: Array) -> Array:
        kept[name, number] = array.copy()
        return array

    def put(name: str, number: int, array: Array) -> Array:
        if (name, number) == (what, at):
            place = (head, position) if kind == "head" else position
            array = array.copy()
            array[place] = kept[name, number][place]
        return array

    forward(model.config, model.parameters, OTHER, keep)
    last = forward(model.config, model.parameters, IDS, put)[-1]
    return float(last[QUESTION.token] - last[QUESTION.rival])


@EVERY_KIND
@EVERY_ARCHITECTURE
def test_every_place(changes: dict[str, object], kind: str) -> None:
    model, head = built(**changes), 1
    here = unedited(model)
    for layer, position in product(patching.layers(model.config, kind), range(len(IDS))):
        edit = patching.carry(here, OTHER, kind, layer, position, head)
        expected = by_hand(model, kind, layer, position, head)
        assert patching.patched(here, edit) == pytest.approx(expected, rel=1e-9, abs=1e-10), (layer, position)


def test_places_matter() -> None:
    """No test above passes because nothing is carried: where the runs differ, most places move the difference."""
    here = unedited(built())
    for kind in KINDS:
        effects = [
            patching.patched(here, patching.carry(here, OTHER, kind, layer, position, 1))
            for layer in patching.layers(here.model.config, kind) for position in range(len(IDS))
        ]
        assert len({round(effect, 9) for effect in effects}) > 3


@EVERY_ARCHITECTURE
def test_what_is_certain_beforehand(changes: dict[str, object]) -> None:
    """All of what enters makes the other sentence, to the bit; behind the last layer one position is enough."""
    model = built(**changes)
    here, there = unedited(model), unedited(model, OTHER)
    config = model.config
    entering = patching.tensor(config, "stream", 0)
    whole = run(model, IDS, edits=[Edit(entering, (), Carried(tuple(OTHER)))])
    assert np.array_equal(whole["logits"].data, there["logits"].data)
    for position in range(len(IDS)):
        effect = patching.patched(here, patching.carry(here, OTHER, "stream", config.layers, position))
        assert effect == patching.difference(there if position == len(IDS) - 1 else here)


def test_the_difference() -> None:
    model = built()
    trace = unedited(model)
    last = forward(model.config, model.parameters, IDS)[-1]
    assert trace["patch.token_logit"].data == pytest.approx(last[6], rel=1e-10)
    assert trace["patch.rival_logit"].data == pytest.approx(last[2], rel=1e-10)
    assert patching.difference(trace) == pytest.approx(last[6] - last[2], rel=1e-9)


def test_only_what_lies_downstream_is_computed() -> None:
    model = built()
    here = unedited(model)
    edit = patching.carry(here, OTHER, "stream", 1, 4)
    patched = run(model, IDS, edits=[edit], base=here, program=here.circumstances.program)
    above, place = here.recording.plan.names, here.recording.plan.names["layers.0.output"]
    assert all(patched[name].shares(here[name]) for name, slot in above.items() if slot < place)
    assert_same_bits(patched, run(model, IDS, edits=[edit], program=here.circumstances.program))


@pytest.mark.parametrize("preset", presets.NAMES)
def test_a_patched_run_explains_itself(preset: str) -> None:
    """Every cell of the small presets; of the others the difference, down to the logits."""
    model = presets.load(preset)
    assert model.tokenizer is not None
    other = model.tokenizer.encode(presets.OTHERS[preset][0])
    here = run(model, presets.SENTENCES[preset], program=programs.of("patch", Question(5, 4)))
    edit = patching.carry(here, other, "stream", 0, 1)
    trace = run(model, here.ids, edits=[edit], base=here, program=here.circumstances.program)
    assert patching.difference(trace) == patching.patched(here, edit)
    row = trace["logits"].row(0, here.ids.shape[1] - 1)
    assert patching.difference(trace) == row[5] - row[4]
    if preset in ("cats", "scratch"):
        assert_explained(trace)


@pytest.mark.parametrize("preset", presets.NAMES)
def test_the_presets_sentences_differ_in_one_token_and_their_difference_moves(preset: str) -> None:
    model = presets.load(preset)
    assert model.tokenizer is not None
    ids, other = (model.tokenizer.encode(text) for text in (presets.SENTENCES[preset], presets.OTHERS[preset][0]))
    assert sum(own != their for own, their in zip(ids, other, strict=True)) == 1
    logits = [run(model, each)["logits"].row(0, len(ids) - 1) for each in (ids, other)]
    first, second = np.argsort(-logits[0], kind="stable")[:2]
    here, there = (row[first] - row[second] for row in logits)
    assert abs(there - here) > 0.05


@pytest.mark.parametrize(("patched", "here", "there", "expected"), [
    (1.0, 1.0, 3.0, 0.0), (3.0, 1.0, 3.0, 1.0), (2.5, 1.0, 3.0, 0.75), (4.0, 1.0, 3.0, 1.5), (0.0, 1.0, 3.0, -0.5),
    (-1.0, 1.0, -3.0, 0.5), (2.0, 1.0, 1.0, None), (2.0, 1.0, 1.0 + 1e-13, None), (2.0, 1e6, 1e6 + 1e-5, None),
    (0.0, 0.0, 1e-6, 0.0), (float("nan"), 1.0, float("nan"), None),
])
def test_share(patched: float, here: float, there: float, expected: float | None) -> None:
    assert patching.share(patched, here, there) == expected


def test_share_of_nothing_has_no_sign() -> None:
    assert str(patching.share(1.0, 1.0, -3.0)) == "0.0"
