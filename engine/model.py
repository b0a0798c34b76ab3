"""A model: its configuration, an immutable snapshot of its parameters, and its tokenizer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from engine.config import ModelConfig
from engine.errors import ConfigError
from engine.tokenizer import WordTokenizer
from engine.types import Array

# kinds of NumPy types: signed and unsigned whole numbers, and floating point
REAL = "iuf"


@dataclass(frozen=True, eq=False)
class Model:
    """Parameters by name, checked against the configuration, copied and frozen.

    Parameters are float64 unless every array given is float32.
    Raises `ConfigError` for a missing, unknown or misshapen parameter, and for one that is not of finite numbers.
    """

    config: ModelConfig
    parameters: Mapping[str, Array]
    tokenizer: WordTokenizer | None = None

    def __post_init__(self) -> None:
        shapes = self.config.parameter_shapes()
        given = {name: np.asarray(array) for name, array in self.parameters.items()}
        missing, unknown = shapes.keys() - given.keys(), given.keys() - shapes.keys()
        if missing or unknown:
            raise ConfigError(
                "parameter_names", f"parameters missing: {sorted(missing)}; unknown: {sorted(unknown)}",
                missing=sorted(missing), unknown=sorted(unknown),
            )
        single = all(array.dtype == np.float32 for array in given.values())
        frozen = {}
        for name, shape in shapes.items():
            if given[name].dtype.kind not in REAL:
                raise ConfigError("parameter_value", f"{name} is not an array of real numbers", name=name)
            array = _frozen(given[name], np.dtype(np.float32 if single else np.float64))
            if array.shape != shape:
                raise ConfigError(
                    "parameter_shape", f"{name} has shape {array.shape}, not {shape}",
                    name=name, shape=array.shape, expected=shape,
                )
            if not np.isfinite(array).all():
                raise ConfigError("parameter_value", f"{name} holds a value that is not finite", name=name)
            frozen[name] = array
        object.__setattr__(self, "parameters", MappingProxyType(frozen))

    @property
    def dtype(self) -> np.dtype[np.floating]:
        """float64, or float32 where every parameter is."""
        return self.parameters["embedding.weight"].dtype


def _frozen(array: Array, dtype: np.dtype[np.floating]) -> Array:
    """A read-only copy; an array that owns its numbers and is read-only already is shared."""
    if array.dtype == dtype and array.base is None and not array.flags.writeable:
        return array
    copied = np.array(array, dtype=dtype)
    copied.flags.writeable = False
    return copied
