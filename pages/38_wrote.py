"""Lesson 38: who wrote this logit; its exact split over all that was added to the stream."""

from ui import inside_charts, inside_rows, lesson, token_choice
from ui.inside_rows import sides
from ui.layout import Lines, Rows, grid, op, optional, section

HERE, ATTENTION = "layers.{layer}.wrote", "layers.{layer}.attention"
SCALE = grid("final_norm.rms | final_norm.std", title="title_wrote_scale", position="chosen")
COLUMNS = ("{token}", "{rival}", "{token} − {rival}")


def sums(title: str, *lines: tuple[str, str]) -> Rows:
    """What the parts come to beside what they should come to."""
    return Rows(title, tuple((label, sides(name)) for label, name in lines), columns=COLUMNS)


lesson.show(
    "wrote",
    section(
        "section_wrote_direction", grid("wrote.token.head_row", title="title_wrote_head_row"),
        optional(op("×"), grid("final_norm.weight")),
        optional(op("="), grid("wrote.token.weighted", title="title_wrote_weighted"), op("−"),
                 grid("wrote.token.weighted_mean", title="title_wrote_mean")),
        op("="), grid("wrote.token.direction", title="title_wrote_direction"), optional(op("÷"), SCALE),
        note="note_wrote_direction",
    ),
    section(
        "section_wrote_parts", Lines("title_wrote_parts", inside_rows.parts, columns=COLUMNS),
        op("Σ"), sums("title_wrote_sum", ("row_wrote_sum", "wrote.SIDE.sum"), ("row_wrote_logit", "wrote.SIDE.logit"),
                      ("row_wrote_rest", "wrote.SIDE.rest")),
        optional(grid("logits.uncapped", position="chosen"), op("sign_cap")), grid("logits", position="chosen"),
        note="note_wrote_parts",
    ),
    section(
        "section_wrote_sources", grid(f"{ATTENTION}.weights", columns="key", query="chosen"), op("×"),
        grid(f"{HERE}.token.offered", columns="key", title="title_wrote_offered"), optional(op("÷"), SCALE), op("="),
        grid(f"{HERE}.token.sources", columns="key", title="title_wrote_sources", position="chosen"),
        note="note_wrote_sources",
    ),
    section(
        "section_wrote_sources_both", Rows("title_wrote_sources_both", tuple(
            (label, grid(f"{HERE}.{side}.sources", position="chosen"))
            for label, side in zip(COLUMNS, inside_rows.SIDES, strict=True)
        )),
        op("Σ"), sums("title_wrote_head", ("row_wrote_sum", f"{HERE}.SIDE.sources_sum"),
                      ("written_by_hand", f"{HERE}.SIDE.sources_by_hand"), ("row_wrote_head", f"{HERE}.SIDE.heads"),
                      ("row_wrote_head_rest", f"{HERE}.SIDE.sources_rest")),
    ),
    section(
        "section_wrote_everywhere",
        grid("layers.{each}.wrote.token.heads", rows="head", columns="position", title="title_wrote_heads"),
        note="note_wrote_everywhere",
    ),
    chart=inside_charts.parts, panel=token_choice.panel,
)
