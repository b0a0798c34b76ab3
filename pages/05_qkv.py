"""Lesson 5: Q, K, V and heads; three projections of one input, split into heads."""

from ui import lesson
from ui.layout import Heads, grid, op, section

lesson.show(
    "qkv",
    section(
        "section_q", grid("layers.{layer}.norm1.output"), op("@"), grid("layers.{layer}.attention.Wq"),
        op("="), grid("layers.{layer}.attention.q"), op("sign_split"),
        grid("layers.{layer}.attention.q_heads", head="each"),
    ),
    section(
        "section_k", grid("layers.{layer}.norm1.output"), op("@"), grid("layers.{layer}.attention.Wk"),
        op("="), grid("layers.{layer}.attention.k"), op("sign_split"),
        grid("layers.{layer}.attention.k_heads", head="each"),
    ),
    section(
        "section_v", grid("layers.{layer}.norm1.output"), op("@"), grid("layers.{layer}.attention.Wv"),
        op("="), grid("layers.{layer}.attention.v"), op("sign_split"),
        grid("layers.{layer}.attention.v_heads", head="each"),
    ),
    section("section_heads", Heads(768, 12), note="note_heads"),
)
