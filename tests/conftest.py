"""The models and independent numbers that tests of every layer share."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from engine import Model, ModelConfig, Trace, presets, run

TESTS = Path(__file__).parent
Arrays = dict[str, NDArray[Any]]


@pytest.fixture(scope="session")
def cats() -> Model:
    return presets.load("cats")


@pytest.fixture(scope="session")
def cats_trace(cats: Model) -> Trace:
    return run(cats, "Cats sit on")


@pytest.fixture(scope="session")
def golden() -> Arrays:
    """Name → float64 array of every tensor of *Cats sit on*, computed by other people's code."""
    tensors = json.loads((TESTS / "golden_cats.json").read_text())["tensors"]
    # null stands for −∞ and becomes NaN on the way
    return {
        name: np.nan_to_num(np.array(entry["data"], dtype=np.float64), nan=-np.inf, neginf=-np.inf)
        for name, entry in tensors.items()
    }


class Reference:
    """The arrays that PyTorch made (`reference/README.md`), and the engine's model of the same numbers."""

    def __init__(self, path: Path) -> None:
        with np.load(path, allow_pickle=False) as stored:
            self.arrays: Arrays = dict(stored)
        self.settings: dict[str, Any] = json.loads(self.arrays["settings"].item())
        self.ids = self.arrays["ids"]

    def under(self, prefix: str) -> Arrays:
        """Name → array of the stored keys that begin with `prefix/`."""
        return {
            key.removeprefix(f"{prefix}/"): array
            for key, array in self.arrays.items() if key.startswith(f"{prefix}/")
        }

    def model(self, pairing: str = "interleaved", dtype: type[np.floating] = np.float64) -> Model:
        parameters = {name: array.astype(dtype) for name, array in self.under("parameters").items()}
        return Model(ModelConfig(**self.settings["config"], rope_pairing=pairing), parameters)

    def target(self, letter: str) -> tuple[str, tuple[int, ...]]:
        """Name and cell of a stored gradient's target."""
        name, index = self.settings["targets"][letter]
        return name, tuple(index)


@pytest.fixture(scope="session")
def reference() -> Reference:
    return Reference(TESTS / "reference" / "random_model.npz")
