"""Edits laid over an array: as a copy where it is small, as a few cells beside it where it is large."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Any

import numpy as np

from engine.edits import Edit, Given, indices_of
from engine.errors import EditError
from engine.types import Array

# a table of more cells is never copied for an edit of a few of them
LARGE_TABLE = 1 << 17
MOST_CELLS = 1 << 12


class SparseOverlay:
    """A large table [rows, columns] with some cells set otherwise; it stands in for the array in NumPy calls.

    Rows by id and products with a matrix touch only the edited cells; any other use makes the whole
    array, for that use alone.
    """

    def __init__(self, base: Array, rows: Array, columns: Array, numbers: Array) -> None:
        self.base = base
        self.rows, self.columns, self.numbers = rows, columns, numbers
        self.shape, self.dtype, self.ndim = base.shape, base.dtype, base.ndim

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        whole = np.array(self.base, dtype=dtype)
        whole[self.rows, self.columns] = self.numbers
        return whole

    def __getitem__(self, rows: Array | slice) -> Array:
        """The rows of these ids, edits included."""
        ids = np.arange(self.shape[0])[rows]
        found = np.array(self.base[ids])
        for row, column, number in zip(self.rows, self.columns, self.numbers, strict=True):
            found[ids == row, column] = number
        return found

    def take(self, flat: Array | int, axis: int | None = None) -> Array:
        """The numbers at flat indices, row-major; with an axis, the row or column of that number."""
        if axis is not None:
            return np.asarray(self[np.array([flat])][0] if axis == 0 else np.asarray(self).take(flat, axis))
        found = np.array(self.base.take(flat))
        for place, number in zip(self.rows * self.shape[1] + self.columns, self.numbers, strict=True):
            found[flat == place] = number
        return found

    def swapaxes(self, first: int, second: int) -> SparseOverlay:
        """The transposed table."""
        return SparseOverlay(self.base.swapaxes(first, second), self.columns, self.rows, self.numbers)

    def __array_ufunc__(self, function: np.ufunc, method: str, *inputs: Any, **keywords: Any) -> Any:
        if function is np.matmul and method == "__call__" and inputs[1] is self and not keywords:
            return self._multiplied(np.asarray(inputs[0]))
        plain = [np.asarray(value) if isinstance(value, SparseOverlay) else value for value in inputs]
        return getattr(function, method)(*plain, **keywords)

    def __rmatmul__(self, left: Array) -> Array:
        return self._multiplied(left)

    def _multiplied(self, left: Array) -> Array:
        """left @ table: the product with the base, then the columns anew that hold an edit."""
        product = np.asarray(left @ self.base)
        for column in np.unique(self.columns):
            here = self.columns == column
            edited = np.array(self.base[:, column])
            edited[self.rows[here]] = self.numbers[here]
            product[..., column] = left @ edited
        return product


def overlay(array: Array, edits: Sequence[Edit]) -> Array:
    """Return a copy of `array` with numbers laid over it.

    Raises `EditError` for a value that is finite but too large for the array's float32.
    """
    edited = np.array(array)
    for edit in edits:
        edited[edit.index] = fitting(edit.name, edit.value, array.dtype)
    return edited


def overlay_parameter(array: Array, edits: Sequence[Edit]) -> Array | SparseOverlay:
    """Return `array` with the edits laid over it; of a large table only the edited cells are new.

    Raises `EditError` as `overlay` does.
    """
    if array.ndim != 2 or array.size <= LARGE_TABLE:
        return overlay(array, edits)
    numbers: dict[tuple[int, int], float] = {}
    for edit in edits:
        value = fitting(edit.name, edit.value, array.dtype)
        parts = (*edit.index, *[slice(None)] * (2 - len(edit.index)))
        across = [indices_of(part, size) for part, size in zip(parts, array.shape, strict=True)]
        if len(across[0]) * len(across[1]) + len(numbers) > MOST_CELLS:
            return overlay(array, edits)
        numbers |= {(row, column): value for row in across[0] for column in across[1]}
    places = np.array(list(numbers), dtype=np.int64)
    return SparseOverlay(array, places[:, 0], places[:, 1], np.array(list(numbers.values()), dtype=array.dtype))


def fitting(name: str, value: Given, dtype: np.dtype[Any]) -> float:
    """The number that `name` is set to, if the type can hold it. Raises `EditError` where it cannot."""
    assert isinstance(value, float)
    if isfinite(value) and not np.isfinite(dtype.type(value)):
        raise EditError("not_finite", f"{name}: {value} is not finite in {dtype}", name=name, value=value)
    return value
