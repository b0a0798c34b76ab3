"""Lesson 31: backward; every tensor with its gradient under it, in the order in which the gradient flows."""

from ui import lesson, stations
from ui.layout import MASKED_SCORES, STREAM, grid, op, optional, section, with_gradient

ATTENTION, MLP = "layers.{layer}.attention", "layers.{layer}.mlp"
QUERY, KEY, VALUE = (f"{ATTENTION}.{letter}" for letter in "qkv")

lesson.show(
    "backward",
    section(
        "section_backward_loss", with_gradient("loss"), op("→"), with_gradient("loss.per_position"),
        grid("loss.target_probability"), grid("targets"), note="note_backward_loss", station="head",
    ),
    section(
        "section_backward_logits", with_gradient("logits"), op("→"),
        with_gradient("final_norm.output | layers.{last}.output"), with_gradient("lm_head.weight"),
        note="note_backward_logits", station="head",
    ),
    section(
        "section_backward_final_norm",
        optional(
            with_gradient("final_norm.output"), op("→"), with_gradient("final_norm.normalized"), op("→"),
            with_gradient("layers.{last}.output"), with_gradient("final_norm.weight"),
        ),
        optional(with_gradient("final_norm.bias")), note="note_backward_final_norm", station="head",
    ),
    section(
        "section_backward_stream", with_gradient("layers.{layer}.output"), op("→"), with_gradient("{middle}"),
        with_gradient(f"{MLP}.output"), note="note_backward_stream", station="mlp",
    ),
    section(
        "section_backward_mlp", with_gradient(f"{MLP}.output"), op("→"), with_gradient(f"{MLP}.activation"), op("→"),
        with_gradient(f"{MLP}.up"), op("→"), with_gradient("{mlp_input}"), note="note_backward_mlp", station="mlp",
    ),
    section(
        "section_backward_mlp_weights", with_gradient(f"{MLP}.W_down"), optional(with_gradient(f"{MLP}.b_down")),
        with_gradient(f"{MLP}.W_up"), optional(with_gradient(f"{MLP}.b_up")),
        optional(with_gradient("layers.{layer}.norm2.weight")), optional(with_gradient("layers.{layer}.norm2.bias")),
        note="note_backward_weights", station="mlp_weights",
    ),
    section(
        "section_backward_attention", with_gradient(f"{ATTENTION}.output"), op("→"),
        with_gradient(f"{ATTENTION}.head_output"), op("→"), with_gradient(f"{ATTENTION}.weights"),
        with_gradient(f"{VALUE}_heads"), note="note_backward_attention", station="attention",
    ),
    section(
        "section_backward_scores", with_gradient(f"{ATTENTION}.weights"), op("→"), with_gradient(MASKED_SCORES),
        op("→"), with_gradient(f"{ATTENTION}.dot"), op("→"), with_gradient(f"{QUERY}_rotated | {QUERY}_heads"),
        with_gradient(f"{KEY}_rotated | {KEY}_heads"), note="note_backward_scores", station="attention",
    ),
    section(
        "section_backward_qkv", with_gradient(QUERY), with_gradient(KEY), with_gradient(VALUE), op("→"),
        with_gradient("{attention_input}"), op("→"), with_gradient("{input}"), note="note_backward_qkv",
        station="qkv",
    ),
    section(
        "section_backward_qkv_weights", *(with_gradient(f"{ATTENTION}.W{letter}") for letter in "oqkv"),
        *(optional(with_gradient(f"{ATTENTION}.b{letter}")) for letter in "oqkv"),
        optional(with_gradient("layers.{layer}.norm1.weight")), optional(with_gradient("layers.{layer}.norm1.bias")),
        station="qkv_weights",
    ),
    section(
        "section_backward_embedding", with_gradient(STREAM), op("→"), with_gradient("embedding.weight"),
        optional(with_gradient("position_embedding.weight")), note="note_backward_embedding", station="embedding",
    ),
    panel=stations.panel,
)
