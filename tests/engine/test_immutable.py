"""Nothing can be changed after the fact: not a trace, not a model, not what another thread runs."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest

from engine import Edit, Model, ModelConfig, Tensor, TensorMap, Trace, gradient, presets, run
from engine.gradient import backward_plan
from engine.trace import forward_plan
from engine.variants import variant
from tests.engine.support import assert_same_bits, model_with, steps

OVERRIDE = Edit("layers.0.attention.head_output", (0, 1), 0.0)


def writeable(array: Any) -> bool:
    """Whether the array, or whatever it is a view of, can be written to."""
    while isinstance(array, np.ndarray):
        if array.flags.writeable:
            return True
        array = array.base
    return False


def everything(tensors: TensorMap) -> list[Tensor]:
    replaced = [source for tensor in steps(tensors) if tensor.overridden for source in tensor.inputs]
    return [*steps(tensors), *replaced]


@pytest.mark.parametrize("length", [1, 3])
def test_every_step_is_read_only_in_any_order(length: int) -> None:
    """The latest first: views must not stay writeable because their source was not looked at yet."""
    trace = run(model_with(hidden_size=8, heads=2), [1, 2, 3][:length], edits=[OVERRIDE])
    for tensors in (trace, gradient(trace, "probabilities", (0, length - 1, 2))):
        for tensor in reversed(everything(tensors)):
            assert not writeable(tensor.data), tensor
            if tensor.shape:
                with pytest.raises(ValueError, match="read-only"):
                    tensor.data[...] = 0


def test_ids_are_a_frozen_copy(cats: Model) -> None:
    ids = np.array([[12, 45, 78]])
    trace = run(cats, ids)
    ids[:] = 0
    assert trace.ids.tolist() == [[12, 45, 78]]
    assert not writeable(trace.ids)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_model_keeps_frozen_copies(cats: Model, dtype: type[np.floating]) -> None:
    given = {name: array.astype(dtype) for name, array in cats.parameters.items()}
    model = Model(cats.config, given)
    given["layers.0.attention.Wq"][:] = 9
    del given["final_norm.weight"]
    assert np.array_equal(model.parameters["layers.0.attention.Wq"], np.eye(4))
    assert not any(writeable(array) for array in model.parameters.values())
    with pytest.raises(TypeError):
        model.parameters["final_norm.weight"] = np.zeros(4)  # type: ignore[index]


def test_objects_are_frozen(cats: Model) -> None:
    edit = Edit("logits", (0, 0, 0), 1.0)
    frozen = ((cats, "parameters"), (cats.config, "layers"), (edit, "value"))
    for instance, attribute in frozen:
        with pytest.raises(FrozenInstanceError):
            setattr(instance, attribute, None)
    with pytest.raises(TypeError):
        cats.tokenizer.words[1] = "dogs"  # type: ignore[index, union-attr]


def test_edits_leave_model_and_baseline_alone(cats: Model, cats_trace: Trace) -> None:
    before = {name: tensor.data.tobytes() for name, tensor in cats_trace.items()}
    edits = [Edit(name, (), 0.5) for name in cats_trace if name != "input_ids"]
    run(cats, "Cats sit on", edits=edits, base=cats_trace)
    assert {name: tensor.data.tobytes() for name, tensor in cats_trace.items()} == before
    assert_same_bits(run(cats, "Cats sit on"), cats_trace)


def test_threads_do_not_see_each_other() -> None:
    """Many threads, different edits, sentences and pairings, plans being built meanwhile."""
    model = presets.load("scratch")
    models = (model, variant(model, rope_pairing="half"))

    def work(number: int) -> tuple[bytes, bytes]:
        edits = [Edit("layers.0.attention.Wq", (0, number % 8), number / 7)]
        if number % 3 == 0:
            edits.append(Edit("layers.1.mlp.activation", (0, 0, number % 12), 1.5))
        ids = [(number * step) % 16 for step in range(1, 2 + number % 4)]
        base = run(models[number % 2], ids)
        trace = run(models[number % 2], ids, edits=edits, base=base)
        gradients = gradient(trace, "logits", (0, 0, number % 16))
        return trace["logits"].data.tobytes(), gradients["embedding.weight"].data.tobytes()

    numbers = range(96)
    expected = [work(number) for number in numbers]
    forward_plan.cache_clear()
    backward_plan.cache_clear()
    with ThreadPoolExecutor(max_workers=8) as pool:
        assert list(pool.map(work, numbers)) == expected


def test_plans_are_shared_and_their_cache_is_bounded(cats: Model) -> None:
    first, second = run(cats, [12, 45]), run(cats, [78, 90], edits=[Edit("norm_epsilon", (), 0.5)])
    assert first.recording.plan is second.recording.plan
    for cache in (forward_plan, backward_plan):
        assert cache.cache_info().maxsize is not None


def test_configurations_can_be_keys() -> None:
    sizes = {"vocab_size": 5, "hidden_size": 4, "layers": 1, "heads": 2, "mlp_size": 3}
    assert len({ModelConfig(**sizes), ModelConfig(**sizes), ModelConfig(**sizes, rope_base=2.0)}) == 2  # type: ignore[arg-type]


def test_rows_and_masks_are_read_only_too(cats: Model) -> None:
    trace = run(cats, "Cats sit on", edits=[Edit("logits", (0, 2, 90), 3.0)])
    override = trace.recording.overrides[trace["logits"].slot]
    for array in (trace["logits"].row(0, 2), override.covered, override.computed):
        assert not writeable(array)
