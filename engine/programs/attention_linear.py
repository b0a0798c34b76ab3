"""How linear attention is: the tests of linearity with its weights held, and with its weights following.

What is computed again here takes the model's own matrices, rotation, mask and scale, and leaves its
biases out: a bias fails these tests by itself, and the question is what attention does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from engine.blocks import contract, merge_heads, rms_norm, softmax, split_heads
from engine.config import ModelConfig
from engine.plan import Scope, Value
from engine.programs.linear import compare
from engine.programs.parts import stream_into

READ = "batch head query key, batch head key head_feature -> batch head query head_feature"
MATCH = "batch head query head_feature, batch head key head_feature -> batch head query key"


def program(scope: Scope, config: ModelConfig) -> None:
    """For every layer: what its attention reads, x, a second input x′, and what attention makes of both.

    x′ is x with its rows in reverse order. Source: second article, 3.3, and the first row of the table in 3.4.
    """
    inside = scope.at("attention_linear")
    length = scope.find("input_ids").size("position")
    factor = inside.constant("factor", (), np.array(2.0))
    order = inside.constant("order", ("query", "position"), np.eye(length)[::-1])
    readable = np.ones((length, length))
    visible = inside.constant("visible", ("query", "key"), np.tril(readable) if config.causal else readable)
    for number in range(config.layers):
        place, layer = scope.at(f"layers.{number}.attention_linear"), Attention(scope, config, number)
        x = place.record("x", layer.own_input().copy())
        other = place.record("other_x", x.builder.apply(
            "contract", order, x, equation="to from, batch from feature -> batch to feature", axes=x.axes,
        ))
        inputs = {"once": x, "other": other, "both": place.record("x_sum", x + other)}
        weights_held(place.at("held"), layer, other, factor)
        attended = {name: layer.attend(place.at(name), tokens) for name, tokens in inputs.items()}
        scaled = layer.attend(place.at("scaled"), place.record("x_scaled", x * factor))
        weights_follow(place.at("follow"), attended, scaled, factor)
        products(place, attended["once"], visible, factor)
        two_layers(place, layer, Attention(scope, config, (number + 1) % config.layers), inputs, attended)


@dataclass(frozen=True)
class Attended:
    """What attention made of an input on its way to the output [B,H,T,D]."""

    query: Value
    key: Value
    values: Value
    dot: Value
    weights: Value
    output: Value


class Attention:
    """One layer's attention, applicable to any input [B,T,C]."""

    def __init__(self, model: Scope, config: ModelConfig, number: int) -> None:
        self.model = model
        self.config = config
        self.number = number

    def own_input(self) -> Value:
        """What the layer's attention reads: the stream, normalised where norms come first."""
        if self.config.norm_placement == "pre" and self.config.norm != "none":
            return self.model.find(f"layers.{self.number}.norm1.output")
        return stream_into(self.model, self.config, self.number)

    def own(self, name: str) -> Value:
        """A tensor of this layer's attention in the model."""
        return self.model.find(f"layers.{self.number}.attention.{name}")

    def attend(self, place: Scope, x: Value) -> Attended:
        """softmax(q·k / √D + mask) · v, [B,T,C] → [B,H,T,D]."""
        query = self.ready(place, "q", self.heads(place, "q", x, "query"))
        key = self.ready(place, "k", self.heads(place, "k", x, "key"))
        values = self.heads(place, "v", x, "key")
        dot = scores = place.record("dot", contract(MATCH, query, key))
        if self.config.scale_scores:
            scores = place.record("scores", scores / self.model.find("sqrt_head_size"))
        if self.config.causal:
            scores = place.record("masked_scores", scores + self.model.find("causal_mask"))
        weights = softmax(place, "weights", scores, "key")
        return Attended(query, key, values, dot, weights, place.record("output", contract(READ, weights, values)))

    def heads(self, place: Scope, letter: str, x: Value, sequence_axis: str) -> Value:
        """x · W in heads, without the bias."""
        projected = place.record(letter, x @ self.own(f"W{letter}"))
        return place.record(f"{letter}_heads", split_heads(projected, self.config.heads, sequence_axis))

    def ready(self, place: Scope, letter: str, x: Value) -> Value:
        """Queries or keys as the model matches them: turned, and normalised, where it does so."""
        turned = self.turned(place, letter, x) if self.config.positions == "rope" else x
        if not self.config.qk_norm:
            return turned
        return rms_norm(place.at(f"{letter}_norm"), None, self.model.find("norm_epsilon"), turned)

    def turned(self, place: Scope, letter: str, x: Value) -> Value:
        """a' = a·cos − b·sin, b' = a·sin + b·cos for every pair, by the model's own angles, [B,H,T,D]."""
        angles = self.model.find("rope.cosines"), self.model.find("rope.sines")
        return place.record(
            f"{letter}_rotated", x.builder.apply("rotate", x, *angles, pairing=self.config.rope_pairing)
        )

    def written(self, place: Scope, name: str, output: Value) -> Value:
        """The heads side by side, times Wo, without the bias, [B,H,T,D] → [B,T,C]."""
        merged = place.record(f"{name}_merged", merge_heads(output))
        return place.record(name, merged @ self.own("Wo"))


def weights_held(place: Scope, layer: Attention, other: Value, factor: Value) -> None:
    """weights · V with the model's own weights and values, for V, V′, V + V′ and factor · V."""
    weights, values, output = (layer.own(name) for name in ("weights", "v_heads", "head_output"))
    others = layer.heads(place, "v", other, "key")
    of_other = place.record("of_other", contract(READ, weights, others))
    of_sum = place.record("of_sum", contract(READ, weights, place.record("v_sum", values + others)))
    compare(place, "sum_difference", of_sum, place.record("sum_of_outputs", output + of_other))
    of_scaled = place.record("of_scaled", contract(READ, weights, place.record("v_scaled", values * factor)))
    compare(place, "scaled_difference", of_scaled, place.record("scaled_output", output * factor))


def weights_follow(place: Scope, attended: Mapping[str, Attended], scaled: Attended, factor: Value) -> None:
    """attention(x + x′) against attention(x) + attention(x′), attention(factor·x) against factor·attention(x)."""
    once, other, both = (attended[name].output for name in ("once", "other", "both"))
    compare(place, "sum_difference", both, place.record("sum_of_outputs", once + other))
    compare(place, "scaled_difference", scaled.output, place.record("scaled_output", once * factor))


def products(place: Scope, once: Attended, visible: Value, factor: Value) -> None:
    """(s·q)·k = s (q·k), (s·q)·(s·k) = s² (q·k), and, read with these as weights, s³ (q·k)·v."""
    match, raw = place.at("match"), place.at("raw")
    query, key, values = (
        match.record(f"{letter}_scaled", value * factor)
        for letter, value in zip("qkv", (once.query, once.key, once.values), strict=True)
    )
    square = match.record("square", factor * factor)
    of_query, of_both = (
        match.record(name, contract(MATCH, query, other)) for name, other in (("of_query", once.key), ("of_both", key))
    )
    times = match.record("times", once.dot * factor)
    compare(match, "query_difference", of_query, times)
    compare(match, "both_difference", of_both, times)
    compare(match, "square_difference", of_both, match.record("times_square", once.dot * square))

    output = raw.record("output", contract(READ, raw.record("pattern", once.dot * visible), once.values))
    of_all = raw.record("of_all", contract(READ, raw.record("pattern_scaled", of_both * visible), values))
    cube = raw.record("cube", square * factor)
    compare(raw, "difference", of_all, raw.record("times", output * factor))
    compare(raw, "cube_difference", of_all, raw.record("times_cube", output * cube))


def two_layers(place: Scope, first: Attention, second: Attention, inputs: Mapping[str, Value],
               attended: Mapping[str, Attended]) -> None:
    """attention(attention(·)) of x, x′ and x + x′ with Wo after each, and no norm, residual or MLP.

    Once with weights that follow their input, once with those of x held for all three.
    """
    following, held = place.at("two"), place.at("two_held")
    between = {name: first.written(following.at(name), "between", each.output) for name, each in attended.items()}
    again = {name: second.attend(following.at(name), tokens) for name, tokens in between.items()}
    results = {name: second.written(following.at(name), "result", each.output) for name, each in again.items()}
    linear = {}
    for name, tokens in inputs.items():
        here = held.at(name)
        for inside, layer, weights in ((here.at("first"), first, attended["once"].weights),
                                       (here, second, again["once"].weights)):
            read = inside.record("read", contract(READ, weights, layer.heads(inside, "v", tokens, "key")))
            tokens = layer.written(inside, "result", read)
        linear[name] = tokens
    for where, outcome in ((following, results), (held, linear)):
        total = where.record("sum_of_outputs", outcome["once"] + outcome["other"])
        compare(where, "sum_difference", outcome["both"], total)
