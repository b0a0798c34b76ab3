"""Lesson 5: Q, K, V and heads; three projections of one input, split into heads."""

from ui import lesson
from ui.layout import ATTENTION_INPUT, Heads, grid, op, optional, section

lesson.show(
    "qkv",
    section(
        "section_q", grid(ATTENTION_INPUT), op("@"), grid("layers.{layer}.attention.Wq"),
        optional(op("+"), grid("layers.{layer}.attention.bq")), op("="), grid("layers.{layer}.attention.q"),
        op("sign_split"), grid("layers.{layer}.attention.q_heads", head="each"), note="note_attention_input",
    ),
    section(
        "section_k", grid(ATTENTION_INPUT), op("@"), grid("layers.{layer}.attention.Wk"),
        optional(op("+"), grid("layers.{layer}.attention.bk")), op("="), grid("layers.{layer}.attention.k"),
        op("sign_split"), grid("layers.{layer}.attention.k_heads", head="each"),
    ),
    section(
        "section_v", grid(ATTENTION_INPUT), op("@"), grid("layers.{layer}.attention.Wv"),
        optional(op("+"), grid("layers.{layer}.attention.bv")), op("="), grid("layers.{layer}.attention.v"),
        op("sign_split"), grid("layers.{layer}.attention.v_heads", head="each"),
    ),
    section("section_heads", Heads(768, 12), note="note_heads"),
)
