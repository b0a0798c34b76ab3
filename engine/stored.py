"""Named arrays and notes in one file, in the safetensors format.

Eight bytes for the length of a JSON text, the text, then the numbers, little-endian and without gaps.
Source: https://github.com/huggingface/safetensors, "Format".
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import pairwise
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from engine.errors import ConfigError
from engine.types import Array

LENGTH_BYTES = 8
DTYPES: Mapping[str, str] = {"F64": "<f8", "F32": "<f4"}


def read(file: Path) -> tuple[dict[str, Array], dict[str, str]]:
    """Return name → array and name → text of a file. Raises `ConfigError` where it is not as the format has it."""
    contents = file.read_bytes()
    try:
        return _arrays(contents)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError("stored_file", f"{file.name} is no safetensors file: {error}", file=file.name) from error


def _arrays(contents: bytes) -> tuple[dict[str, Array], dict[str, str]]:
    start = LENGTH_BYTES + int.from_bytes(contents[:LENGTH_BYTES], "little")
    header: dict[str, Any] = json.loads(contents[LENGTH_BYTES:start].decode())
    notes = dict(header.pop("__metadata__", {}))
    places = {name: tuple(entry["data_offsets"]) for name, entry in header.items()}
    # without gaps and overlaps, from the first byte to the last
    edges = [(0, 0), *sorted(places.values()), (len(contents) - start,) * 2]
    if any(before != after for (_, before), (after, _) in pairwise(edges)):
        raise ValueError("the arrays do not fill it from end to end")
    arrays = {}
    for name, entry in header.items():
        dtype, shape = np.dtype(DTYPES[entry["dtype"]]), tuple(entry["shape"])
        first, last = places[name]
        if last - first != prod(shape) * dtype.itemsize:
            raise ValueError(f"{name} has {last - first} bytes for the shape {shape}")
        arrays[name] = np.frombuffer(contents, dtype, prod(shape), start + first).reshape(shape)
    return arrays, notes
