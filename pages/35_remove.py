"""Lesson 35: leave out heads, positions, edges, hidden units or contributions, and see what it changes."""

from ui import lesson, removal_report
from ui.layout import Removed, grid, section

LAYER = "layers.{layer}"

lesson.show(
    "remove",
    section("section_removed", Removed(), note="note_removed"),
    section(
        "section_remove_weights", grid("layers.{each}.attention.weights", small=True, head="each"),
        note="note_remove_weights",
    ),
    section("section_remove_heads", grid(f"{LAYER}.attention.head_output"), note="note_remove_heads"),
    section("section_remove_units", grid(f"{LAYER}.mlp.activation"), note="note_remove_units"),
    section(
        "section_remove_contributions", grid(f"{LAYER}.attention.output"), grid(f"{LAYER}.mlp.output"),
        note="note_remove_contributions",
    ),
    summary=removal_report.report,
)
