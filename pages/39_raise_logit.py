"""Lesson 39: what would raise this logit; its slope along every parameter, and the smallest edit that wins."""

from ui import lesson, raise_cards, token_choice
from ui.layout import Item, Rows, Switch, grid, op, optional, section, with_gradient

LAYER = "layers.{layer}"
AGAINST = grid("raise_logit.against", title="title_raise_against")


def sloped(*names: str) -> tuple[Item, ...]:
    """Parameters, each with the goal's slope along its cells, where the model has them."""
    return tuple(optional(with_gradient(name)) for name in names)


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
    section(
        "section_raise_head", *sloped("final_norm.weight", "final_norm.bias"),
        optional(with_gradient("lm_head.weight"), tied_head=False), note="note_raise_head",
    ),
    section(
        "section_raise_mlp", *sloped(*(f"{LAYER}.mlp.{name}" for name in ("W_up", "b_up", "W_down", "b_down"))),
        note="note_raise_mlp",
    ),
    section(
        "section_raise_attention",
        *sloped(*(f"{LAYER}.attention.{kind}{letter}" for letter in "qkvo" for kind in "Wb")),
        note="note_raise_attention",
    ),
    section("section_raise_norms", *sloped(*(
        f"{LAYER}.{norm}.{name}" for norm in ("norm1", "norm2") for name in ("weight", "bias")
    ))),
    section(
        "section_raise_embedding", *sloped("embedding.weight", "position_embedding.weight"),
        note="note_raise_embedding",
    ),
    panel=token_choice.panel, report=raise_cards.report,
)
