"""The data-flow pictures, drawn from the configuration: the whole model, one layer, every step of a block."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from engine import ModelConfig
from ui.layout import KEY, Block


def blocks(scope: str, config: ModelConfig, layer: int) -> list[Block]:
    """The boxes of the whole model (`model`), of one layer (`layer`), or of the model with one block step by step
    (`block`), from input to output; of the `loop` that continues a text; or of the whole `system` around the model.
    """
    if scope == "loop":
        return list(_loop(config))
    if scope == "system":
        return list(_system(config))
    if scope == "layer":
        return [Block("input", "flow_layer_input", "layers", "{input}"), *_Layer(config, layer).boxes("input")]
    start = list(_start(config))
    if scope == "block":
        return [*start, *_Steps(config, 0).boxes(start[-1].id), *_end(config, f"flow_final_{config.norm}")]
    layers: list[Block] = []
    for number in range(config.layers):
        layers += _summary(config, number, [*start, *layers][-1].id)
    return [*start, *layers, *_end(config)]


def _loop(config: ModelConfig) -> Iterator[Block]:
    """The system picture: what is appended comes back as a token."""
    yield Block("tokens", "loop_tokens", "tokens", "input_ids", branch="append")
    yield Block("forward", "loop_forward", "overview", f"layers.{config.layers - 1}.output")
    yield Block("logits", "loop_logits", "lm_head", "choosing.ranked")
    yield Block("choose", "loop_choose", "choosing", "choosing.probabilities")
    yield Block("append", "loop_append", "choosing", "generating.drawn", fixed=(("step", "next"),))


def _system(config: ModelConfig) -> Iterator[Block]:
    """The first article's first picture: training on the left of the model, inference on the right."""
    left, right, model = "system_training", "system_inference", "system_model"
    last, table = config.layers - 1, config.head_table
    target = (("vocabulary", "target"),)
    yield Block("data", "system_data", "data", "targets", side=left)
    yield Block("prompt", "system_prompt", "tokens", "system.prompt", side=right)
    yield Block("ids", "system_ids", "embedding", "input_ids", model, branch="repeat_forward")
    yield Block("forward", "system_forward", "overview", f"layers.{last}.output", model, branch="repeat_training")
    yield Block("logits", "system_logits", "lm_head", "choosing.ranked", model, names="choosing.order")
    yield Block("loss", "system_loss", "loss", "loss", side=left)
    yield Block("backward", "system_backward", "backward", "optimizer.gradient_length", side=left)
    yield Block("optimizer", "system_optimizer", "optimizer", f"optimizer.sgd.{table}.change", fixed=target, side=left)
    yield Block("update", "system_update", "optimizer", f"optimizer.sgd.{table}.updated", fixed=target, side=left)
    yield Block("repeat_training", "system_repeat_training", "training", side=left)
    yield Block("select", "system_select", "choosing", "choosing.probabilities", side=right,
                names="choosing.order")
    yield Block("next", "system_next", "choosing", "generating.drawn", fixed=(("step", "next"),), side=right)
    # without a causal mask earlier positions change with every token, and nothing can be kept
    keys = KEY.format(layer=last) if config.causal else None
    yield Block("decode", "system_cache" if config.causal else "system_decode", "generating", keys,
                fixed=(("head", 0),), side=right)
    yield Block("repeat_forward", "system_repeat_forward", "generating", side=right)
    yield Block("text", "system_text", "tokens", "system.text", side=right)


def _start(config: ModelConfig) -> Iterator[Block]:
    yield Block("ids", "flow_ids", "embedding", "input_ids")
    yield Block("embedding", "flow_embedding", "embedding", "embedding.output")
    if config.positions == "learned":
        yield Block("positions", "flow_positions", "positions", "embedding.sum", operator="+")


def _end(config: ModelConfig, norm_label: str = "flow_final_norm") -> Iterator[Block]:
    if config.norm != "none":
        lesson = "layernorm" if config.norm == "layernorm" else "final_norm"
        yield Block("final_norm", norm_label, lesson, "final_norm.output")
    label = "flow_tied_head" if config.tied_head else "flow_lm_head"
    capped = config.logit_soft_cap is not None
    yield Block("lm_head", label, "lm_head", "logits.uncapped" if capped else "logits")
    if capped:
        yield Block("soft_cap", "flow_soft_cap", "switchboard", "logits")
    yield Block("probabilities", "flow_probabilities", "lm_head", "probabilities")


def _summary(config: ModelConfig, layer: int, source: str) -> Iterator[Block]:
    """A layer in the picture of the whole: its branches and additions, and the norms that stand in the stream."""
    for block in _Layer(config, layer).boxes(source):
        if config.norm_placement == "pre" and block.id in ("norm1", "norm2"):
            continue
        inside = block.branch not in (None, source)
        branch = f"{block.branch}{layer}" if inside else block.branch
        yield replace(block, id=f"{block.id}{layer}", branch=branch)


def _addition(config: ModelConfig, block: Block) -> Block:
    """Where a branch joins the stream; without residuals the branch goes on alone."""
    if config.residual:
        return replace(block, operator="+")
    return replace(block, label="flow_alone", lesson="why_residuals", branch=None)


@dataclass(frozen=True)
class _Layer:
    """One layer, its attention and its MLP in a box each."""

    config: ModelConfig
    layer: int

    def boxes(self, source: str) -> Iterator[Block]:
        """The boxes in order; `source` is where the stream comes from."""
        if self.config.norm_placement == "post":
            yield from self.attention()
            yield self.addition("residual1", "flow_residual", "residual1", source)
            yield from self.norm("norm1", "norm1.output")
            yield from self.mlp()
            after = "residual1" if self.config.norm == "none" else "norm1"
            yield self.addition("residual2", "flow_output", "residual2", after)
            yield from self.norm("norm2", "output")
            return
        yield from self.norm("norm1", "norm1.output")
        yield from self.attention()
        yield self.addition("residual1", "flow_residual", "residual1", source)
        yield from self.norm("norm2", "norm2.output")
        yield from self.mlp()
        yield self.addition("output", "flow_output", "output", "residual1")

    def box(self, name: str, label: str, lesson: str, tensor: str | None) -> Block:
        """A box in the layer's frame; the tensor is named within the layer."""
        full = None if tensor is None else f"layers.{self.layer}.{tensor}"
        return Block(name, label, lesson, full, f"layer {self.layer + 1}")

    def addition(self, name: str, label: str, tensor: str, source: str) -> Block:
        """Where a branch joins the stream that left at `source`."""
        return _addition(self.config, replace(self.box(name, label, "residual", tensor), branch=source))

    def norm(self, name: str, tensor: str) -> Iterator[Block]:
        """The norm, where the model has one."""
        if self.config.norm != "none":
            yield self.box(name, self.norm_label(name), self.config.norm, tensor)

    def norm_label(self, name: str) -> str:
        """What the box of a norm says."""
        return f"flow_{name}"

    def attention(self) -> Iterator[Block]:
        """The first half."""
        yield self.box("attention", "flow_attention", "qkv", "attention.output")

    def mlp(self) -> Iterator[Block]:
        """The second half."""
        yield self.box("mlp", "flow_mlp", "mlp", "mlp.output")


class _Steps(_Layer):
    """One layer with every step in a box of its own."""

    def norm_label(self, name: str) -> str:
        return f"flow_{self.config.norm}"

    def attention(self) -> Iterator[Block]:
        config = self.config
        yield self.box("qkv", "flow_qkv", "qkv", "attention.q")
        if config.positions == "rope":
            yield self.box("turn", "flow_turn", "rope", "attention.q_rotated")
        if config.qk_norm:
            yield self.box("qk_norm", "flow_qk_norm", "switchboard", "attention.q_norm.output")
        scores = "scaled" if config.scale_scores else "unscaled"
        mask = "masked" if config.causal else "open"
        yield self.box("weights", f"flow_weights_{scores}_{mask}", "scores", "attention.weights")
        yield self.box("context", "flow_context", "values", "attention.head_output")
        yield self.box("projection", "flow_projection", "values", "attention.output")
        yield from self.dropout("dropout1")

    def mlp(self) -> Iterator[Block]:
        activation = self.config.activation
        yield self.box("up", "flow_up", "mlp", "mlp.up")
        yield self.box("activation", f"flow_{activation}", "mlp" if activation == "relu" else "gelu", "mlp.activation")
        yield self.box("down", "flow_down", "mlp", "mlp.output")
        yield from self.dropout("dropout2")

    def dropout(self, name: str) -> Iterator[Block]:
        """Dropout, which acts in training only and has no numbers here."""
        if self.config.dropout:
            yield self.box(name, "flow_dropout", "dropout", None)
