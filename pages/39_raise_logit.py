"""Lesson 39: what would raise this logit; its slope along every parameter, and the smallest edit that wins."""

from ui import lesson, raise_cards, token_choice
from ui.layout import Grid, Item, Rows, Switch, grid, op, optional, section

LAYER = "layers.{layer}"
AGAINST = grid("raise_logit.against", title="title_raise_against")


def pair(name: str) -> Item:
    """A parameter and, beside it, the goal's slope along each of its cells; where the model has it."""
    return optional(grid(name), op("∂", binds=True), slope(name))


def slope(name: str) -> Grid:
    """The gradient of a tensor."""
    return grid(f"gradient.{name}")


lesson.show(
    "raise_logit",
    section(
        "section_raise_goal",
        Rows("title_raise_logits", (
            ("{token}", grid("raise_logit.token_logit")), ("{rival}", grid("raise_logit.rival_logit")),
        ), columns=("logit",)),
        AGAINST, op("→"), grid("raise_logit.goal", title="title_raise_goal"),
        Switch(AGAINST, "switch_raise_against", on=1.0), note="note_raise_goal",
    ),
    section("section_raise_head", pair("final_norm.weight"), pair("final_norm.bias"), pair("lm_head.weight"),
            note="note_raise_head"),
    section("section_raise_mlp", *(pair(f"{LAYER}.mlp.{name}") for name in ("W_up", "b_up", "W_down", "b_down")),
            note="note_raise_mlp"),
    section(
        "section_raise_attention",
        *(pair(f"{LAYER}.attention.{name}") for name in ("Wq", "bq", "Wk", "bk", "Wv", "bv", "Wo", "bo")),
        note="note_raise_attention",
    ),
    section("section_raise_norms", *(pair(f"{LAYER}.{norm}.{name}") for norm in ("norm1", "norm2")
                                     for name in ("weight", "bias"))),
    section("section_raise_embedding", pair("embedding.weight"), pair("position_embedding.weight"),
            note="note_raise_embedding"),
    panel=token_choice.panel, report=raise_cards.report,
)
