"""Lesson 34: every head of every layer at a glance, and what the prediction is without each."""

from engine.programs.heads import BY_QUERY
from ui import head_effects, lesson
from ui.layout import Lines, Ranking, grid, section

# lessons that go on with one head
WAYS = ("scores", "remove")

lesson.show(
    "heads",
    section(
        "section_heads_weights", grid("layers.{each}.attention.weights", small=True, ways=WAYS, head="each"),
        note="note_heads_weights",
    ),
    section("section_heads_ranking", Ranking(WAYS), note="note_heads_ranking"),
    section(
        "section_heads_summary",
        Lines("title_heads_summary", head_effects.summary, axis="axis_head",
              columns=tuple(f"heads_{name}" for name in BY_QUERY), column_axis="measure", looks=True),
        note="note_heads_summary",
    ),
    section(
        "section_heads_keys", grid("heads.{layer}.received", "head", "key", "title_heads_received"),
        note="note_heads_keys",
    ),
    section(
        "section_heads_queries",
        *(grid(f"heads.{{layer}}.{name}", "head", "query", f"title_heads_{name}") for name in BY_QUERY),
        note="note_heads_queries",
    ),
    panel=head_effects.panel,
)
