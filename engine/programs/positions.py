"""How position reaches the first layer's queries and keys: not at all, by added rows, or by a turn."""

from __future__ import annotations

from engine.blocks import contract, rms_norm, split_heads
from engine.config import ModelConfig
from engine.plan import Scope, Value
from engine.programs.parts import norm, project
from engine.recipe import rotations
from engine.variants import untrained_positions

ATTENTION = "layers.0.attention"
MATCH = "batch head query head_feature, batch head key head_feature -> batch head query key"


def program(scope: Scope, config: ModelConfig) -> None:
    """Queries, keys and scores of the first layer three ways, from the model's own rows and matrices.

    A model without a position table of its own gets one that nobody trained; one without RoPE gets
    the turn of its configuration. A turn needs pairs, so an odd head size has none. Source: second
    article, 4.1 step 3; "RoPE".
    """
    inside, tokens = scope.at("positions"), scope.find("embedding.output")
    query, key = _queries_and_keys(scope, inside.at("none"), config, tokens)
    _match(scope, inside.at("none"), config, query, key)

    table = _table(scope, inside.at("learned"), config, tokens.size("position") + 1)
    for name, first in (("learned", 0), ("later", 1)):
        if first + tokens.size("position") <= table.size("position"):
            _learned(scope, inside.at(name), config, tokens, table, first)
    if config.head_size % 2 == 0:
        _turned(scope, inside.at("rope"), config, query, key)


def _table(scope: Scope, way: Scope, config: ModelConfig, rows: int) -> Value:
    """The model's rows for positions, or as many rows as needed that nobody trained."""
    if config.positions == "learned":
        return scope.find("position_embedding.weight")
    return way.constant(
        "position_embedding.weight", ("position", "feature"), untrained_positions((rows, config.hidden_size))
    )


def _learned(scope: Scope, way: Scope, config: ModelConfig, tokens: Value, table: Value, first: int) -> None:
    """stream[b,t] = token[b,t] + table[t + first], matched as usual."""
    rows = scope.builder.apply("rows", table, first=first, count=tokens.size("position"))
    stream = way.record("stream", tokens + way.record("rows", rows))
    _match(scope, way, config, *_queries_and_keys(scope, way, config, stream))


def _turned(scope: Scope, way: Scope, config: ModelConfig, query: Value, key: Value) -> None:
    """Queries and keys without positions, each pair turned by its position's angle, then matched."""
    if config.positions == "rope":
        angles = scope.find("rope.cosines"), scope.find("rope.sines")
    else:
        angles = rotations(way, config, query.size("query"), 0)
    turned = (
        way.record(f"{letter}_rotated", scope.builder.apply("rotate", x, *angles, pairing=config.rope_pairing))
        for letter, x in (("q", query), ("k", key))
    )
    _match(scope, way, config, *turned)


def _queries_and_keys(scope: Scope, way: Scope, config: ModelConfig, stream: Value) -> tuple[Value, Value]:
    """q and k [B,H,T,D] of the first layer's heads for another stream than its own."""
    # with norms after the additions, attention reads the stream as it is
    reads = norm(scope, way.at("norm"), config, "layers.0.norm1", stream) if config.norm_placement == "pre" else stream
    query, key = (
        way.record(letter, project(scope, config, reads, f"{ATTENTION}.W{letter}", f"{ATTENTION}.b{letter}"))
        for letter in "qk"
    )
    return (
        way.record("q_heads", split_heads(query, config.heads, "query")),
        way.record("k_heads", split_heads(key, config.heads, "key")),
    )


def _match(scope: Scope, way: Scope, config: ModelConfig, query: Value, key: Value) -> None:
    """scores = q·k / √D [B,H,T,T], before the mask; normalised and scaled as the model does it."""
    ready = (
        rms_norm(way.at(f"{letter}_norm"), None, scope.find("norm_epsilon"), x) if config.qk_norm else x
        for letter, x in (("q", query), ("k", key))
    )
    dot = way.record("dot", contract(MATCH, *ready))
    if config.scale_scores:
        way.record("scores", dot / scope.find("sqrt_head_size"))
