"""Lesson 25: why divide by √D; random queries and keys of growing size, and what softmax makes of them."""

from engine.programs.why_sqrt import DIVISIONS, SIZES
from ui import lesson, why_charts
from ui.layout import Grid, Rows, Slider, grid, op, section

SHOWN = (4, 64, 512)


def own(name: str, title: str | None = None, **fixed: int) -> Grid:
    """A tensor of the lab."""
    return grid(f"why_sqrt.{name}", title=title and f"title_sqrt_{title}", **fixed)


def first(name: str, title: str | None = None) -> Grid:
    """What the first query has of a tensor."""
    return own(name, title, sample_query=0)


def measured(name: str, *theory: str) -> Rows:
    """A line for each D, a column for each division; `theory` is a constant that stands beside them."""
    lines = tuple(
        (f"D = {size}", tuple(own(f"D{size}.{each}") for each in (*(f"{part}.{name}" for part in DIVISIONS), *theory)))
        for size in SIZES
    )
    columns = (*why_charts.SCORES.values(), *(f"column_sqrt_{each}" for each in theory))
    return Rows(f"title_sqrt_{name}", lines, axis="head_size", columns=columns, column_axis="division")


SEED = Slider(own("seed"), "slider_sqrt_seed", 0, 99, 1)

lesson.show(
    "why_sqrt",
    section("section_sqrt_one", first("D4.q", "q"), op("@"), own("D4.k", "k"), note="note_sqrt_one"),
    section(
        None,
        Rows("title_sqrt_one", (
            ("q·k", first("D4.dot")), ("q·k ÷ √D", first("D4.by_root.scores")),
            ("softmax", first("D4.by_root.weights")),
        )),
    ),
    section(
        "section_sqrt_weights", SEED,
        Rows("title_sqrt_weights", tuple(
            (f"D = {size}: {why_charts.SCORES[division]}", first(f"D{size}.{division}.weights"))
            for size in SHOWN for division in DIVISIONS
        ), axis="head_size"),
        note="note_sqrt_weights",
    ),
    section("section_sqrt_measures", SEED, note="note_sqrt_measures"),
    section(None, measured("spread", "sqrt_head_size"), measured("entropy"), measured("slope")),
    chart=why_charts.score_measures,
)
