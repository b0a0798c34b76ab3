"""A whole trace, or one tensor of it, as a file at full precision."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from engine import Carried, Mean, Tensor, Trace
from engine.overlays import LARGE_TABLE


def to_npz(trace: Trace) -> bytes:
    """Every tensor by name in NumPy's compressed archive; read it with `numpy.load`."""
    buffer = io.BytesIO()
    arrays: dict[str, Any] = {name: tensor.data for name, tensor in trace.items()}
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


def to_json(trace: Trace) -> str:
    """Every tensor with shape, axes, operation and numbers; null stands for −∞ and other non-numbers.

    Of a tensor with more than 131 072 cells there is no `data`: as text it would take megabytes, and
    seconds in which no other reader is served. The npz has it.
    """
    return json.dumps({
        "input_ids": trace.ids.tolist(),
        "edits": [
            {"name": edit.name, "index": [_part(part) for part in edit.index], "value": _given(edit.value)}
            for edit in trace.edits
        ],
        "tensors": {
            name: {
                "shape": list(tensor.shape), "axes": list(tensor.axes), "op": tensor.op,
                **({"data": _nested(tensor.data.tolist())} if prod(tensor.shape) <= LARGE_TABLE else {}),
            }
            for name, tensor in trace.items()
        },
    }, allow_nan=False)


def to_csv(tensor: Tensor, labels: Sequence[Sequence[str]]) -> str:
    """One line a cell: the index and label on every axis, then the value as the shortest exact decimal.

    `labels` holds one label per index for every axis, in the order of the tensor's axes.
    """
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    header = [column for axis in _distinct(tensor.axes) for column in (axis, f"{axis}_label")]
    writer.writerow([*header, "value"])
    # once: a deferred tensor is put together at every look
    data = tensor.data
    for index in np.ndindex(*tensor.shape):
        cells = [cell for axis, part in enumerate(index) for cell in (part, labels[axis][part])]
        writer.writerow([*cells, repr(data[index].item())])
    return buffer.getvalue()


def _distinct(axes: Sequence[str]) -> list[str]:
    """Axis names with numbers where a name stands twice, as in `feature_1`, `feature_2`."""
    return [
        f"{axis}_{list(axes[:place + 1]).count(axis)}" if list(axes).count(axis) > 1 else axis
        for place, axis in enumerate(axes)
    ]


def _part(part: int | slice) -> Any:
    return part if isinstance(part, int) else [part.start, part.stop, part.step]


def _given(value: float | Mean | Carried) -> Any:
    """What an edit sets its cells to: a number, the mean over positions, or the cells of a run on other ids."""
    if isinstance(value, Mean):
        return {"mean_over": "positions"}
    return {"run_on": list(value.ids)} if isinstance(value, Carried) else _number(value)


def _number(value: float) -> float | None:
    return value if np.isfinite(value) else None


def _nested(data: Any) -> Any:
    return [_nested(item) for item in data] if isinstance(data, list) else _number(data)
