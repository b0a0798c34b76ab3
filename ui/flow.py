"""The data-flow pictures, drawn from the configuration: the whole model, and one layer."""

from __future__ import annotations

from engine import ModelConfig
from ui.layout import Block


def blocks(scope: str, config: ModelConfig, layer: int) -> list[Block]:
    """The boxes of the whole model (`model`) or of one layer (`layer`), from input to output."""
    if scope == "layer":
        return [Block("input", "flow_layer_input", "layers", "{input}"), *_inside(layer)]
    layers = [block for number in range(config.layers) for block in _summary(number)]
    return [
        Block("ids", "flow_ids", "embedding", "input_ids"),
        Block("embedding", "flow_embedding", "embedding", "embedding.output"),
        *layers,
        Block("final_norm", "flow_final_norm", "final_norm", "final_norm.output"),
        Block("lm_head", "flow_lm_head", "lm_head", "logits"),
        Block("probabilities", "flow_probabilities", "lm_head", "probabilities"),
    ]


def _summary(layer: int) -> list[Block]:
    """A layer in the picture of the whole: its two branches and its output."""
    group = f"layer {layer + 1}"
    source = "embedding" if layer == 0 else f"output{layer - 1}"
    name = f"layers.{layer}"
    return [
        Block(f"attention{layer}", "flow_attention", "qkv", f"{name}.attention.output", group),
        Block(f"residual{layer}", "flow_residual", "residual", f"{name}.residual1", group, source, "+"),
        Block(f"mlp{layer}", "flow_mlp", "mlp", f"{name}.mlp.output", group),
        Block(f"output{layer}", "flow_output", "residual", f"{name}.output", group, f"residual{layer}", "+"),
    ]


def _inside(layer: int) -> list[Block]:
    group, name = f"layer {layer + 1}", f"layers.{layer}"
    return [
        Block("norm1", "flow_norm1", "rmsnorm", f"{name}.norm1.output", group),
        Block("attention", "flow_attention", "qkv", f"{name}.attention.output", group),
        Block("residual1", "flow_residual", "residual", f"{name}.residual1", group, "input", "+"),
        Block("norm2", "flow_norm2", "rmsnorm", f"{name}.norm2.output", group),
        Block("mlp", "flow_mlp", "mlp", f"{name}.mlp.output", group),
        Block("output", "flow_output", "residual", f"{name}.output", group, "residual1", "+"),
    ]
