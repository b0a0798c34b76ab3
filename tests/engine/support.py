"""Small models, whole-array edits and ways to look at every step, for the engine's tests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from engine import Edit, Model, ModelConfig, Tensor, TensorMap, Term, Trace, explain, run

Array = NDArray[Any]
Cell = tuple[int, ...]


def model_with(given: Mapping[str, ArrayLike] | None = None, *, seed: int = 0, **sizes: Any) -> Model:
    """A model of one layer (unless `sizes` says more) with normal parameters but for those given."""
    config = ModelConfig(**{"vocab_size": 7, "layers": 1, "heads": 1, "mlp_size": 5, **sizes})
    generator = np.random.default_rng(seed)
    parameters: dict[str, ArrayLike] = {
        name: np.ones(shape) if "norm" in name else generator.normal(size=shape)
        for name, shape in config.parameter_shapes().items()
    }
    return Model(config, {name: np.asarray(array) for name, array in {**parameters, **(given or {})}.items()})


def assign(name: str, values: ArrayLike, *where: int) -> list[Edit]:
    """One edit per cell: the cells of `name` from index `where` on become `values`."""
    return [Edit(name, (*where, *cell), float(value)) for cell, value in np.ndenumerate(np.asarray(values))]


def steps(tensors: TensorMap) -> Iterator[Tensor]:
    """Every value of a trace or a gradient, in order of computation, unnamed steps included."""
    recording = tensors.recording
    for slot in range(len(recording.plan.nodes)):
        if recording.values[slot] is not None:
            yield Tensor(recording, slot)


def assert_explained(tensors: TensorMap) -> None:
    """Every cell follows from the numbers of its terms, and every term is the cell that it names."""
    for tensor in steps(tensors):
        cells = [explain(tensors, tensor, index) for index in np.ndindex(*tensor.shape)]
        assert [cell.value for cell in cells] == tensor.data.ravel().tolist()
        assert_terms_are_cells(term for cell in cells for term in cell.terms)
        evaluated = np.array([cell.evaluate() for cell in cells]).reshape(tensor.shape)
        # where terms cancel, rounding is relative to them and not to what is left
        np.testing.assert_allclose(evaluated, tensor.data, rtol=1e-12, atol=1e-14, err_msg=str(tensor))


def assert_terms_are_cells(terms: Iterable[Term]) -> None:
    arrays: dict[tuple[int, bool], Array] = {}
    values, cells = [], []
    for term in terms:
        key = term.tensor.slot, term.tensor.computed
        if key not in arrays:
            arrays[key] = term.tensor.data
        values.append(term.value)
        cells.append(arrays[key][term.index])
    assert values == cells


def assert_same_bits(actual: Trace, expected: Trace) -> None:
    """Two traces agree in every bit of every step, overridden values included."""
    assert [bits(tensor) for tensor in steps(actual)] == [bits(tensor) for tensor in steps(expected)]


def bits(tensor: Tensor) -> tuple[str | None, str, bytes, tuple[bytes, ...]]:
    replaced = tuple(source.data.tobytes() for source in tensor.inputs) if tensor.overridden else ()
    return tensor.name, tensor.op, tensor.data.tobytes(), replaced


def again(trace: Trace, edits: Iterable[Edit] = (), base: Trace | None = None) -> Trace:
    """The same run with other edits, from nothing or from `base`."""
    around = trace.circumstances
    return run(
        trace.model, trace.ids, edits=tuple(edits), base=base, program=around.program, targets=around.targets,
        training=around.training, seed=around.seed, past=around.past, moments=around.moments,
    )


def five_point(function: Callable[[float], float], x: float, step: float = 1e-5) -> float:
    """f′(x) to fourth order in `step`, which is short: ReLU has kinks."""
    before, after = function(x - step) - function(x + step), function(x + 2 * step) - function(x - 2 * step)
    return -(8 * before + after) / (12 * step)


def slope(trace: Trace, target: str, target_index: Cell, name: str, index: Cell) -> float:
    """∂ target / ∂ name[index] by runs with that cell edited: no derivative of the engine's is used."""
    def outcome(value: float) -> float:
        edited = again(trace, [*trace.edits, Edit(name, index, value)], base=trace)
        return float(edited[target].data[target_index])

    return five_point(outcome, float(trace[name].data[index]))
