"""Lesson 36: patching; an activation of one sentence's run put into another's, place by place."""

from ui import lesson, patch_cards
from ui.layout import STREAM, Rows, grid, op, section

LAYER = "layers.{layer}"
DIFFERENCE = Rows("title_patch_difference", (
    ("logit", (grid("patch.token_logit"), grid("patch.rival_logit"), grid("patch.difference"))),
), columns=("{token}", "{rival}", "{token} − {rival}"))

lesson.show(
    "patch",
    section(
        "section_patch_stream", grid(STREAM), grid("layers.{each}.output"), note="note_patch_stream",
    ),
    section(
        "section_patch_added", grid(f"{LAYER}.attention.head_output"), grid(f"{LAYER}.attention.output"),
        grid(f"{LAYER}.mlp.output"), note="note_patch_added",
    ),
    section(
        "section_patch_prediction", grid("logits", position="last"), op("→"), DIFFERENCE, note="note_patch_prediction",
    ),
    panel=patch_cards.panel, report=patch_cards.report,
)
