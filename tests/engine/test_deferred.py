"""A large vocabulary: tables that are not copied, tensors that are computed when somebody looks."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

from engine import Edit, EditError, Model, ModelConfig, Trace, explain, gradient, presets, programs, run
from engine.deferred import _PARTS
from engine.edits import Part
from engine.memory import BoundedCache
from engine.overlays import LARGE_TABLE, SparseOverlay, overlay, overlay_parameter
from engine.plan import LARGE_VOCABULARY
from tests.engine.support import Array, model_with

V = 12000
IDS = [[7, 11999, 7], [4096, 0, 5]]
VOCABULARY = ("logits", "probabilities", "probabilities.shifted", "probabilities.exp")


def model(tied: bool) -> Model:
    """C=12 features and 12000 rows, asymmetric random numbers, once with one table and once with two."""
    config = ModelConfig(
        vocab_size=V, hidden_size=12, layers=1, heads=2, mlp_size=5, tied_head=tied, logit_soft_cap=3.0,
    )
    generator = np.random.default_rng(3)
    return Model(config, {name: generator.normal(size=shape) for name, shape in config.parameter_shapes().items()})


@pytest.fixture(scope="module", params=[False, True], ids=["two tables", "one table"])
def large(request: pytest.FixtureRequest) -> Model:
    assert V > LARGE_VOCABULARY
    assert V * 12 > LARGE_TABLE
    return model(request.param)


def by_hand(trace: Trace, table: Array) -> tuple[Array, Array]:
    """Logits and probabilities with plain NumPy, from the final norm's output on."""
    raw = trace["final_norm.output"].data @ table.T
    logits = 3.0 * np.tanh(raw / 3.0)
    exponential = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return logits, exponential / exponential.sum(axis=-1, keepdims=True)


def test_a_run_leaves_the_vocabulary_alone(large: Model) -> None:
    trace = run(large, IDS, program=programs.lessons)
    nodes = trace.recording.plan.nodes
    for name, tensor in trace.items():
        made = trace.recording.values[tensor.slot] is not None
        large_or_below = any(size == V for size in tensor.shape) and nodes[tensor.slot].kernel is not None
        assert made != (large_or_below or name.startswith(("probabilities", "scaled.with", "scaled.without"))), name


def test_numbers_are_those_of_plain_numpy(large: Model) -> None:
    trace = run(large, IDS)
    logits, probabilities = by_hand(trace, large.parameters[
        "embedding.weight" if large.config.tied_head else "lm_head.weight"
    ])
    np.testing.assert_allclose(trace["logits"].data, logits, rtol=0, atol=1e-12)
    np.testing.assert_allclose(trace["probabilities"].data, probabilities, rtol=0, atol=1e-14)
    flat = np.array([0, V - 1, 3 * V + 4096, 2 * V + 7])
    for name in VOCABULARY:
        tensor = trace[name]
        assert tensor.take(flat).tolist() == tensor.data.ravel()[flat].tolist(), name
        assert tensor.number((1, 2, 11999)) == tensor.data[1, 2, 11999], name


EDITS: tuple[tuple[str, tuple[Part, ...], float], ...] = (
    ("embedding.weight", (7, 3), 0.5), ("embedding.weight", (slice(5, 9), 2), -0.25),
    ("lm_head.weight", (4096, 0), 2.0), ("embedding.weight", (slice(None), 1), 0.0),
    ("logits", (0, 2, 90), 4.0), ("probabilities", (slice(None), 1), 0.125), ("probabilities.sum", (1, 2), 2.0),
    ("final_norm.output", (1, 0, 11), 1.0),
)


@pytest.mark.parametrize("edit", [Edit(*edit) for edit in EDITS], ids=lambda edit: f"{edit.name}{edit.index}")
def test_edits_reach_what_is_computed_later(large: Model, edit: Edit) -> None:
    base = run(large, IDS)
    trace = run(large, IDS, edits=[edit], base=base)
    full = run(large, IDS, edits=[edit])
    for name in (*VOCABULARY, "probabilities.sum", "embedding.output"):
        assert trace[name].data.tobytes() == full[name].data.tobytes(), name
    changed = trace[edit.name]
    assert np.all(changed.data[edit.index] == edit.value)
    if changed.is_deferred:
        covered = np.zeros(changed.shape, dtype=bool)
        covered[edit.index] = True
        np.testing.assert_array_equal(changed.data[~covered], base[edit.name].data[~covered])
    tables = {
        name: overlay(array, [edit] if edit.name in aliases else [])
        for name, array, aliases in _tables(large)
    }
    if edit.name not in VOCABULARY and not edit.name.startswith("probabilities"):
        logits, probabilities = by_hand(trace, tables["head"])
        np.testing.assert_allclose(trace["logits"].data, logits, rtol=0, atol=1e-12)
        np.testing.assert_allclose(trace["probabilities"].data, probabilities, rtol=0, atol=1e-13)
        ids = np.array(IDS)
        np.testing.assert_array_equal(trace["embedding.output"].data, tables["embedding"][ids])
    assert trace["logits"].shares(base["logits"]) == (edit.name in ("probabilities", "probabilities.sum"))


def _tables(large: Model) -> list[tuple[str, Array, tuple[str, ...]]]:
    embedding = large.parameters["embedding.weight"]
    if large.config.tied_head:
        both = ("embedding.weight", "lm_head.weight")
        return [("embedding", embedding, both), ("head", embedding, both)]
    return [("embedding", embedding, ("embedding.weight",)),
            ("head", large.parameters["lm_head.weight"], ("lm_head.weight",))]


def test_an_edited_cell_explains_itself(large: Model) -> None:
    edits = [Edit("logits", (0, 2, 90), 4.0), Edit("embedding.weight", (7, 3), 0.5)]
    trace = run(large, IDS, edits=edits)
    replaced = explain(trace, "logits", (0, 2, 90))
    assert (replaced.op, replaced.value) == ("override", 4.0)
    assert replaced.computed is not None
    assert replaced.computed.evaluate() == pytest.approx(replaced.computed.value, abs=1e-12)
    for name, index in (("logits", (0, 2, 91)), ("probabilities", (1, 1, 5)), ("probabilities.shifted", (0, 2, 90)),
                        ("embedding.output", (0, 0, 3)), ("logits.uncapped", (1, 0, 7))):
        cell = explain(trace, name, index)
        assert cell.value == trace[name].data[index]
        assert cell.evaluate() == pytest.approx(cell.value, rel=1e-12, abs=1e-14), name
    total = explain(trace, "probabilities.sum", (1, 2))
    assert total.evaluate() == pytest.approx(total.value, rel=1e-12)
    short = explain(trace, "probabilities.sum", (1, 2), most=24)
    assert (len(short.terms), short.omitted) == (24, V - 24)


def test_gradients_pass_through(large: Model) -> None:
    """Against a five-point difference, for an edited table and an overridden logit."""
    edits = [Edit("lm_head.weight", (4096, 0), 2.0), Edit("logits", (0, 2, 90), 4.0)]
    gradients = gradient(run(large, IDS, edits=edits), "probabilities", (0, 2, 4096))
    for name, index in (("lm_head.weight", (4096, 5)), ("embedding.weight", (7, 2)), ("final_norm.weight", (3,))):
        at, step = run(large, IDS, edits=edits)[name].data[index], 1e-4
        values = [
            run(large, IDS, edits=[*edits, Edit(name, index, at + k * step)])["probabilities"].number((0, 2, 4096))
            for k in (-2, -1, 1, 2)
        ]
        slope = (values[0] - 8 * values[1] + 8 * values[2] - values[3]) / (12 * step)
        assert gradients[name].data[index] == pytest.approx(slope, rel=1e-6, abs=1e-12), name


def test_an_edit_of_a_large_table_costs_no_copy_of_it() -> None:
    today = presets.load("today")
    base = run(today, "今天天气真", program=programs.lessons)
    tracemalloc.start()
    traces = [run(today, "今天天气真", edits=[Edit("embedding.weight", (5120, 0), k / 7)], base=base,
                  program=programs.lessons) for k in range(50)]
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(traces) == 50
    assert kept / 50 < 100_000, "a copy of the table has 4.8 MB, one position of the logits 0.4 MB"


def test_a_sparse_overlay_stands_in_for_the_array() -> None:
    generator = np.random.default_rng(1)
    table = generator.normal(size=(LARGE_TABLE // 8 + 1, 8))
    edits = [Edit("t", (5, 1), 2.0), Edit("t", (5, 1), 3.0), Edit("t", (-1, 0), 1.0), Edit("t", (slice(7, 9),), 0.5)]
    sparse = overlay_parameter(table, edits)
    whole = overlay(table, edits)
    assert isinstance(sparse, SparseOverlay)
    left = generator.normal(size=(3, 8))
    ids = np.array([[5, 8], [len(table) - 1, 5]])
    np.testing.assert_array_equal(np.asarray(sparse), whole)
    np.testing.assert_array_equal(sparse[ids], whole[ids])
    np.testing.assert_array_equal(sparse.take(np.array([41, 0, 57])), whole.take([41, 0, 57]))
    np.testing.assert_allclose(left @ sparse.swapaxes(-1, -2), left @ whole.T, rtol=0, atol=1e-13)
    np.testing.assert_array_equal(np.multiply(sparse, 2.0), 2.0 * whole)
    everything = overlay_parameter(table, [Edit("t", ..., 0.0)])  # type: ignore[arg-type]
    assert isinstance(everything, np.ndarray)
    assert not everything.any()


def test_rows_of_a_product_over_the_vocabulary_are_made_alone(large: Model) -> None:
    trace = run(large, IDS, edits=[Edit("lm_head.weight", (4096, 0), 2.0)], program=programs.lessons)
    before = _PARTS.bytes
    flat = np.array([4096 * 12, 4096 * 12 + 5, 90 * 12 + 11, 0])
    found = trace["contributions"].take(flat)
    assert _PARTS.bytes == before, "nothing of the vocabulary's size was made"
    np.testing.assert_array_equal(found, trace["contributions"].data.ravel()[flat])


def test_what_is_kept_is_bounded_in_bytes() -> None:
    cache: BoundedCache[Array] = BoundedCache(100)
    made: list[int] = []

    def make(number: int) -> Array:
        made.append(number)
        return np.full(5, float(number))

    for number in (1, 2, 1, 3, 1, 2):
        assert cache.get(number, lambda number=number: make(number)).tolist() == [float(number)] * 5  # type: ignore[misc]
        assert cache.bytes <= 100
    assert made == [1, 2, 3, 2], "the one that was not asked for longest goes first"
    assert cache.get("large", lambda: np.zeros(1000)).shape == (1000,)
    assert cache.bytes == 0


def test_a_number_beyond_float32_is_refused_before_anybody_looks() -> None:
    double = model(False)
    single = Model(double.config, {name: array.astype(np.float32) for name, array in double.parameters.items()})
    with pytest.raises(EditError) as raised:
        run(single, IDS, edits=[Edit("logits", (0, 1, 7), 1e300)])
    assert raised.value.code == "not_finite"


@pytest.mark.parametrize("lesson", ["wrote", "backward", "raise_logit", "system", "why_layers"])
@pytest.mark.parametrize("name", ["layers.0.attention.Wo", "layers.0.attention.Wq", "position_embedding.weight"])
def test_an_edited_large_table_is_as_good_as_a_model_with_the_number(lesson: str, name: str) -> None:
    """Of over 131072 cells, edits lie beside the table; rows, slices, transposes and products see them all the same."""
    large = model_with(vocab_size=10, hidden_size=400, heads=1, mlp_size=4, positions="learned", max_positions=400)
    table = np.array(large.parameters[name])
    table[1, 0] = 5.0
    holding = Model(large.config, {**large.parameters, name: table})
    more: dict[str, Any] = {"program": programs.of(lesson), "targets": [[2, 3, 4]]}
    edited = run(large, [[1, 2, 3]], edits=[Edit(name, (1, 0), 5.0)], **more)
    expected = run(holding, [[1, 2, 3]], **more)
    for tensor in expected.values():
        if tensor.name is not None:
            np.testing.assert_allclose(
                edited[tensor.name].data, tensor.data, rtol=1e-9, atol=1e-9, err_msg=str(tensor)
            )


def test_rows_of_an_overlay_by_any_index() -> None:
    table = np.arange(12.0).reshape(4, 3)
    laid = SparseOverlay(table, np.array([1, 3]), np.array([2, 0]), np.array([50.0, 60.0]))
    whole = np.asarray(laid)
    for rows in (slice(0, 2), slice(1, None), slice(None, None, -1), np.array([[3, 1], [1, 0]]), np.array([1])):
        assert np.array_equal(laid[rows], whole[rows])
