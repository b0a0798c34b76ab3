"""Lesson 37: the logit lens; final norm and head applied after every layer, at every position."""

from ui import inside_charts, lesson, token_choice
from ui.inside_rows import ByStage
from ui.layout import Lines, grid, op, optional, section


def by_stage(name: str) -> Lines:
    """A number of the lens, a line for each stage and a column for each position."""
    return Lines(f"title_lens_{name}", ByStage(name), axis="stage")


lesson.show(
    "lens",
    section("section_lens_leading", by_stage("leading"), by_stage("leading_probability"), note="note_lens_leading"),
    section(
        "section_lens_token", by_stage("rank"), by_stage("climb"), by_stage("token_probability"),
        note="note_lens_token",
    ),
    section(
        "section_lens_reading", grid("layers.{layer}.output", position="chosen"),
        optional(op("sign_final_norm"), grid("layers.{layer}.lens.norm.output | final_norm.output", position="chosen")),
        op("sign_head"),
        optional(grid("layers.{layer}.lens.logits.uncapped | logits.uncapped", position="chosen"), op("sign_cap")),
        grid("layers.{layer}.lens.logits | logits", position="chosen"), op("softmax"),
        grid("layers.{layer}.lens.probabilities | probabilities", position="chosen"), note="note_lens_reading",
    ),
    chart=inside_charts.by_stage, panel=token_choice.panel,
)
