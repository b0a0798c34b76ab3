"""Lesson 21: generating text; the loop, and a key-value cache beside computing all anew."""

from ui import lesson, loop_cards, rankings
from ui.layout import KEY, MASKED_SCORES, QUERY, Flow, Rows, grid, op, section

ATTENTION = "layers.{layer}.attention."
NEXT_DRAW = Rows("title_next_draw", (
    ("", (grid("generating.u", step="next"), grid("generating.drawn", step="next"))),
), columns=("u", "column_token"), looks=True)

lesson.show(
    "generating",
    section("section_loop", Flow("loop"), note="note_loop"),
    section(
        "section_cache", grid(QUERY, muted=True), op("@ kᵀ"), grid(KEY, muted=True), op("→"),
        grid(MASKED_SCORES, muted=True), note="note_cache",
    ),
    section(
        "section_cache_values", grid(f"{ATTENTION}weights", muted=True), op("@"),
        grid(f"{ATTENTION}v_heads", muted=True), op("="), grid(f"{ATTENTION}head_output", muted=True),
        note="note_cache_values",
    ),
    section("section_settings", *rankings.SLIDERS, rankings.SETTINGS, note="note_loop_settings"),
    section(
        "section_next_draw",
        rankings.ranking("title_ranking", (
            ("column_token", "order"), ("logit", "ranked"), ("column_probability", "probabilities"),
            ("column_running", "running_sum"),
        )), op("→"), NEXT_DRAW, note="note_next_draw",
    ),
    panel=loop_cards.play, report=loop_cards.show,
)
