"""run(base=…) equals a full run bit for bit, whatever was edited before and whatever is edited now."""

from __future__ import annotations

from math import inf

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import Carried, Edit, Mean, Model, Trace, presets, programs, run
from engine.edits import MASKS, position_axis
from tests.engine.support import assert_same_bits

SCRATCH = presets.load("scratch")
TENSORS = {
    name: tensor for name, tensor in run(SCRATCH, [1, 2, 3], program=programs.lessons).items() if name != "input_ids"
}
SHAPES = {name: tensor.shape for name, tensor in TENSORS.items()}
IDS = st.lists(st.integers(0, 15), min_size=3, max_size=3)
OTHER_IDS = st.lists(st.integers(0, 15), min_size=1, max_size=5).map(tuple)


@st.composite
def edits(draw: st.DrawFn) -> Edit:
    """Of any tensor: cells, slices and rows, within the sentence or beyond it."""
    name = draw(st.sampled_from(sorted(SHAPES)))
    shape = SHAPES[name]
    axes = draw(st.integers(0, len(shape)))
    index = tuple(
        draw(st.one_of(st.integers(-size, size - 1), st.just(slice(None)), st.just(slice(0, 1 + size // 2))))
        for size in shape[:axes]
    )
    values: st.SearchStrategy[float | Mean | Carried] = st.floats(-4, 4, width=16)
    if name.endswith(MASKS):
        values |= st.just(-inf)
    if TENSORS[name].node.kernel is not None:
        values |= st.builds(Carried, OTHER_IDS)
        if position_axis(TENSORS[name].axes) is not None:
            values |= st.just(Mean())
    return Edit(name, index, draw(values))


POOL = st.lists(edits(), min_size=1, max_size=5)


@settings(max_examples=60, deadline=None)
@given(pool=POOL, data=st.data())
def test_a_chain_of_reruns(pool: list[Edit], data: st.DataObject) -> None:
    """Each run takes the last one as its base; edits come, go, change order and stand twice."""
    base: Trace | None = None
    for ids in data.draw(st.lists(IDS, min_size=2, max_size=4)):
        chosen = data.draw(st.lists(st.sampled_from(pool), max_size=4))
        base = run(SCRATCH, ids, edits=chosen, base=base, program=programs.lessons)
        assert_same_bits(base, run(SCRATCH, ids, edits=chosen, program=programs.lessons))


@settings(max_examples=30, deadline=None)
@given(pool=POOL)
def test_taking_edits_back(pool: list[Edit]) -> None:
    plain = run(SCRATCH, [1, 2, 3], program=programs.lessons)
    trace = plain
    for count in (*range(len(pool) + 1), *reversed(range(len(pool)))):
        trace = run(SCRATCH, [1, 2, 3], edits=pool[:count], base=trace, program=programs.lessons)
    assert_same_bits(trace, plain)


def test_the_sign_of_zero_does_not_linger() -> None:
    """Edits to 0 and −0 are equal, so they must mean the same bits."""
    name = "layers.0.norm1.rms"
    positive, negative = (run(SCRATCH, [1, 2], edits=[Edit(name, (0, 1), zero)]) for zero in (0.0, -0.0))
    assert_same_bits(positive, negative)


def test_a_base_of_another_model_length_or_program_is_not_used(cats: Model) -> None:
    trace = run(cats, "Cats sit on")
    parameters = {**cats.parameters, "final_norm.weight": np.array([1.0, 2.0, 3.0, 4.0])}
    other = Model(cats.config, parameters, cats.tokenizer)
    assert_same_bits(run(other, "Cats sit on", base=trace), run(other, "Cats sit on"))
    assert_same_bits(run(cats, "Cats sit", base=trace), run(cats, "Cats sit"))
    assert_same_bits(
        run(cats, "Cats sit on", base=trace, program=programs.lessons),
        run(cats, "Cats sit on", program=programs.lessons),
    )


def test_upstream_arrays_are_shared(cats: Model) -> None:
    base = run(cats, "Cats sit on")
    trace = run(cats, "Cats sit on", edits=[Edit("layers.1.mlp.up", (0, 0, 0), 3.0)], base=base)
    assert trace["layers.1.residual1"].data is base["layers.1.residual1"].data
    assert trace["layers.1.mlp.activation"].data is not base["layers.1.mlp.activation"].data
