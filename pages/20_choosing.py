"""Lesson 20: choosing the next token; temperature, top-k, top-p, and a draw under a seed."""

from ui import lesson, rankings, token_charts
from ui.layout import Rows, grid, optional, section

lesson.show(
    "choosing",
    section(
        "section_settings", *rankings.SLIDERS, rankings.SETTINGS, note="note_settings",
    ),
    section(
        "section_ranking",
        rankings.ranking("title_ranking", (
            ("column_token", "order"), ("logit", "ranked"), ("÷ T", "tempered"), ("top-k", "kept_k"),
            ("softmax", "shares"), ("column_mass_before", "mass_before"), ("top-p", "kept_p"),
            ("column_probability", "probabilities"), ("column_running", "running_sum"), ("column_drawn", "counts"),
        )),
        optional(Rows("title_others", (
            ("row_others", tuple(grid(f"choosing.others.{name}") for name in (
                "shares", "kept_p", "probabilities", "counts",
            ))),
        ), axis="axis_rank", columns=("softmax", "top-p", "column_probability", "column_drawn"),
            looks=True)),
        note="note_ranking",
    ),
    section("section_draws", *rankings.draws(), note="note_draws"),
    chart=token_charts.draws,
)
