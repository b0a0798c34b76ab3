"""A model under other choices of architecture: its own parameters where they fit, neutral ones elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from engine.config import ModelConfig
from engine.model import Model
from engine.types import Array

POSITIONS = 32
# small beside the embeddings, so that a table that nobody trained does not drown the words
POSITION_SPREAD = 0.1


def variant(model: Model, **changes: object) -> Model:
    """Return the model with `changes` to its configuration.

    Parameters that the new architecture asks for and the model does not have are neutral: norm
    weights 1, biases 0, an untied head the embedding's rows. Learned positions have no neutral
    value; theirs are small numbers drawn once from a fixed seed. Raises `ConfigError` for choices
    that do not go together.
    """
    config = replace(model.config, **{**_bound(model.config, changes), **changes})  # type: ignore[arg-type]
    own = model.parameters
    parameters = {
        name: own[name] if name in own and own[name].shape == shape else _neutral(model, name, shape)
        for name, shape in config.parameter_shapes().items()
    }
    return Model(config, parameters, model.tokenizer)


def _bound(config: ModelConfig, changes: Mapping[str, object]) -> dict[str, int | None]:
    """The bound on positions that comes with a position table, and goes with it."""
    learned = changes.get("positions", config.positions) == "learned"
    if learned and config.max_positions is None:
        return {"max_positions": POSITIONS}
    return {"max_positions": None} if config.positions == "learned" and not learned else {}


def untrained_positions(shape: tuple[int, ...]) -> Array:
    """Rows for positions that nobody trained, drawn once from a fixed seed: of fewer rows, the first are the same."""
    return np.round(POSITION_SPREAD * np.random.default_rng(0).standard_normal(shape), 2)


def _neutral(model: Model, name: str, shape: tuple[int, ...]) -> Array:
    if name == "lm_head.weight":
        return model.parameters["embedding.weight"]
    if name == "position_embedding.weight":
        return untrained_positions(shape).astype(model.dtype)
    return neutral(name, shape).astype(model.dtype)


def neutral(name: str, shape: tuple[int, ...]) -> Array:
    """A parameter that changes nothing: 1 for the weight of a norm, 0 for anything else."""
    is_norm_weight = "norm" in name and name.endswith(".weight")
    return np.full(shape, 1.0 if is_norm_weight else 0.0)
