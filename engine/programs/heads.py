"""What each head's weights come to, seen from the queries and from the keys."""

from __future__ import annotations

import numpy as np

from engine.blocks import contract
from engine.config import ModelConfig
from engine.plan import Scope, Value
from engine.types import Array

MARKS = ("on_itself", "on_previous", "on_first")
BY_QUERY = (*MARKS, "entropy", "effective")
PER_QUERY = "batch head query key, query key -> batch head query"


def program(scope: Scope, config: ModelConfig) -> None:
    """For each layer, of weights [B,H,Q,K]: what every key receives, and where every query's weight lies.

    Sources: Clark et al. 2019, "What Does BERT Look At?", for the offsets and the entropy.
    """
    heads, length = scope.at("heads"), scope.find("input_ids").shape[1]
    position = np.arange(length)
    reads: Array = position[:, None] >= position if config.causal else np.ones((length, length))
    asked = (
        position[:, None] == position, position[:, None] == position + 1,
        np.broadcast_to(position == 0, (length, length)),
    )
    share = _table(heads, "share_of_readers", reads / np.sum(reads, axis=0))
    marks = {name: _table(heads, f"{name}.mark", mark) for name, mark in zip(MARKS, asked, strict=True)}
    # the first position of a causal model can read nothing but itself
    counted: Array = position > 0 if config.causal and length > 1 else np.ones(length)
    mean = heads.constant("share_of_queries", ("query",), counted / np.sum(counted))
    for layer in range(config.layers):
        _layer(heads.at(str(layer)), scope.find(f"layers.{layer}.attention.weights"), share, marks, mean)


def _table(heads: Scope, name: str, numbers: Array) -> Value:
    return heads.constant(name, ("query", "key"), np.asarray(numbers, dtype=np.float64))


def _layer(scope: Scope, weights: Value, share: Value, marks: dict[str, Value], mean: Value) -> None:
    """received [B,H,K] averages each key's weights over its readers; by query [B,H,Q], and its mean [B,H]."""
    scope.record("received", contract("batch head query key, query key -> batch head key", weights, share))
    found = {name: scope.record(name, contract(PER_QUERY, weights, mark)) for name, mark in marks.items()}
    found["entropy"] = scope.record("entropy", weights.builder.apply("entropy", weights, axis="key"))
    found["effective"] = scope.record("effective", weights.builder.apply("exp", found["entropy"]))
    for name, by_query in found.items():
        scope.record(f"mean_{name}", contract("batch head query, query -> batch head", by_query, mean))
