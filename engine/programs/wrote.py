"""Who wrote this logit: its split over everything that was added to the stream, and a head's over its sources."""

from __future__ import annotations

from engine.blocks import contract, merge_heads, split_heads
from engine.config import ModelConfig
from engine.plan import Scope, Value
from engine.programs.parts import project, stream_into
from engine.programs.question import Question

TOKEN, RIVAL, GAP = SIDES = ("token", "rival", "gap")
SCALES = {"rmsnorm": "final_norm.rms", "layernorm": "final_norm.std"}


def splits(config: ModelConfig) -> bool:
    """Whether the last stream is a plain sum of what was written into it."""
    return config.residual and (config.norm_placement == "pre" or config.norm == "none")


def program(scope: Scope, config: ModelConfig, question: Question) -> None:
    """logit[b,t] = Σ parts[b,t]: embedding, positions, heads, MLPs, biases; for two tokens, and for their difference.

    A part x [B,T,C] is worth x · direction ÷ scale. The direction [C] is the token's row of the head times
    the final norm's weight; the scale [B,T], what this norm divides by, is held as it is. LayerNorm also
    takes the mean away, which comes to a direction without its mean. What edits put into the stream is
    a part of its own. A soft cap comes after the sum. Source: Elhage et al. 2021, "A mathematical
    framework for transformer circuits", on residual streams as sums.
    """
    if not splits(config) or "layers.0.attention.dropped" in scope.builder.names:
        return
    for layer in range(config.layers):
        set_by_hand(scope, config, layer)
    if config.norm != "none":
        set_in_norm(scope, config)
    for side, token in ((TOKEN, question.token), (RIVAL, question.rival)):
        Split(scope, config, side, token).write()
    for name in [name for name in scope.builder.names if f".wrote.{TOKEN}." in f".{name}"]:
        ours, theirs = (scope.find(name.replace(f"wrote.{TOKEN}", f"wrote.{side}")) for side in (TOKEN, RIVAL))
        scope.record(name.replace(f"wrote.{TOKEN}", f"wrote.{GAP}"), ours - theirs)


def set_by_hand(scope: Scope, config: ModelConfig, layer: int) -> None:
    """What edits put into the stream in a layer [B,T,C]: each sum, and each branch, minus what it is computed from."""
    name, x = f"layers.{layer}", stream_into(scope, config, layer)
    attended, r, processed = (scope.find(f"{name}.{part}") for part in ("attention.output", "residual1", "mlp.output"))
    from_heads = project(scope, config, scope.find(f"{name}.attention.merged"), f"{name}.attention.Wo",
                         f"{name}.attention.bo")
    from_hidden = project(scope, config, scope.find(f"{name}.mlp.activation"), f"{name}.mlp.W_down",
                          f"{name}.mlp.b_down")
    changes = [attended - from_heads, r - (x + attended), processed - from_hidden,
               scope.find(f"{name}.output") - (r + processed)]
    if layer == 0 and config.positions == "learned":
        changes.append(x - (scope.find("embedding.output") + scope.find("position_embedding.output")))
    scope.at(f"{name}.wrote").record("by_hand", scope.builder.apply("total", *changes))


def set_in_norm(scope: Scope, config: ModelConfig) -> None:
    """What edits put into the final norm [B,T,C]: its output minus what the stream and the scale give."""
    stream, scale = scope.find(f"layers.{config.layers - 1}.output"), scope.find(SCALES[config.norm])
    apply, weight = scope.builder.apply, scope.find("final_norm.weight")
    if config.norm == "layernorm":
        centered = stream - apply("mean", stream, axis="feature")
        normed = apply("scale_shift", centered / scale, weight, scope.find("final_norm.bias"))
    else:
        normed = stream / scale * weight
    scope.at("wrote").record("norm_by_hand", scope.find("final_norm.output") - normed)


class Split:
    """The parts of one token's logit, at all positions."""

    def __init__(self, scope: Scope, config: ModelConfig, side: str, token: int) -> None:
        self.scope, self.config, self.side, self.token = scope, config, side, token
        self.inside = scope.at(f"wrote.{side}")
        row = scope.builder.apply("take", scope.find("lm_head.weight"), axis="vocabulary", index=token)
        self.row = self.inside.record("head_row", row)
        self.direction = self.inside.record("direction", self._direction())
        self.scale = None if config.norm == "none" else scope.find(SCALES[config.norm])

    def _direction(self) -> Value:
        """What the sum of the stream is multiplied with before the norm divides it, [C]."""
        if self.config.norm == "none":
            return self.row.copy()
        weighted = self.row * self.scope.find("final_norm.weight")
        if self.config.norm == "rmsnorm":
            return weighted
        known = self.inside.record("weighted", weighted)
        return known - self.inside.record("weighted_mean", known.builder.apply("mean", known, axis="feature"))

    def write(self) -> None:
        """Record every part, their sum, the logit, and what is between the two."""
        inside, config = self.inside, self.config
        find, apply = self.scope.find, inside.builder.apply
        parts = [inside.record("embedding", self.worth(find("embedding.output")))]
        if config.positions == "learned":
            parts.append(inside.record("positions", self._spread(self.worth(find("position_embedding.output")))))
        for layer in range(config.layers):
            parts += self._layer(layer)
        if config.norm == "layernorm":
            parts.append(inside.record("norm_bias", self._spread(self._dot(find("final_norm.bias"), self.row))))
        logit = self._logit()
        by_hand = [self.worth(find(f"layers.{layer}.wrote.by_hand")) for layer in range(config.layers)]
        parts.append(inside.record("by_hand", apply("total", *by_hand, self._behind_the_stream(logit))))
        total = inside.record("sum", apply("total", *parts))
        inside.record("rest", apply("difference", total, logit))

    def worth(self, x: Value) -> Value:
        """x · direction ÷ scale, […,C] → […]."""
        return self._scaled(self._dot(x, self.direction))

    def _layer(self, layer: int) -> list[Value]:
        """The heads' sum, the MLP and the biases behind both, [B,T] each."""
        name, config = f"layers.{layer}", self.config
        here, find = self.scope.at(f"{name}.wrote.{self.side}"), self.scope.find
        heads = self._heads(here, f"{name}.attention")
        down = here.record("through_W_down", self._through(f"{name}.mlp.W_down", "hidden"))
        parts = [
            heads.builder.apply("sum", heads, axis="head"),
            here.record("mlp", self._scaled(self._dot(find(f"{name}.mlp.activation"), down))),
        ]
        if config.bias:
            parts += [
                here.record(bias, self._spread(self.worth(find(f"{name}.{module}.{bias}"))))
                for module, bias in (("attention", "bo"), ("mlp", "b_down"))
            ]
        return parts

    def _heads(self, here: Scope, attention: str) -> Value:
        """Each head's part [B,H,T], and the same once more over the positions that it reads, [B,H,T,keys]."""
        find, apply, H = self.scope.find, here.builder.apply, self.config.heads
        out = here.record("through_Wo", self._through(f"{attention}.Wo", "feature"))

        def by_head(features: Value, axis: str) -> Value:
            products = split_heads(features * out, H, axis)
            return apply("sum", products, axis="head_feature")
        merged, weights, values = (find(f"{attention}.{name}") for name in ("merged", "weights", "v_heads"))
        heads = here.record("heads", self._scaled(by_head(merged, "position")))
        offered = here.record("offered", by_head(merge_heads(values), "key"))
        read = apply("contract", weights, offered, equation="b h q k, b h k -> b h q k",
                     axes=("batch", "head", "position", "key"))
        sources = here.record("sources", self._scaled(read))
        total = here.record("sources_sum", apply("sum", sources, axis="key"))
        mixed = contract(
            "batch head query key, batch head key head_feature -> batch head query head_feature", weights, values
        )
        by_hand = here.record("sources_by_hand", self._scaled(by_head(merged - merge_heads(mixed), "position")))
        here.record("sources_rest", apply("difference", total + by_hand, heads))
        return heads

    def _through(self, matrix: str, axis: str) -> Value:
        """W · direction: what each row of a matrix that writes into the stream is worth."""
        weight = self.scope.find(matrix)
        return weight.builder.apply("contract", weight, self.direction, equation="in out, out -> in", axes=(axis,))

    def _logit(self) -> Value:
        """The logit on screen, before a soft cap, [B,T]."""
        logits = self.scope.find("logits" if self.config.logit_soft_cap is None else "logits.uncapped")
        return self.inside.record("logit", logits.builder.apply("take", logits, axis="vocabulary", index=self.token))

    def _behind_the_stream(self, logit: Value) -> Value:
        """What edits of the final norm and of the logit itself put in, [B,T]."""
        if self.config.norm == "none":
            read, norm = self.scope.find(f"layers.{self.config.layers - 1}.output"), None
        else:
            read, norm = self.scope.find("final_norm.output"), self.scope.find("wrote.norm_by_hand")
        # two ways of multiplying differ by rounding, an edit by more
        after = logit.builder.apply("difference", logit, self._dot(read, self.row))
        return after if norm is None else after + self._dot(norm, self.row)

    @staticmethod
    def _dot(x: Value, direction: Value) -> Value:
        """Σ over x's last axis, […,C] · [C] → […]."""
        kept = " ".join(x.axes[:-1])
        return contract(f"{kept} {x.axes[-1]}, {direction.axes[0]} -> {kept}", x, direction)

    def _scaled(self, product: Value) -> Value:
        return product if self.scale is None else product / self.scale

    def _spread(self, value: Value) -> Value:
        """A number that is the same at every place, or in every sentence, put down at each, [B,T]."""
        ids = self.scope.find("input_ids")
        for number, axis in enumerate(ids.axes):
            if axis not in value.axes:
                value = value.builder.apply("expand", value, number=number, axis=axis, size=ids.shape[number])
        return value
