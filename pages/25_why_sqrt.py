"""Lesson 25: why divide by √D; random queries and keys of growing size, and what softmax makes of them."""

from engine.programs.why_sqrt import DIVISIONS, KEYS, SIZES
from ui import lesson, why_charts
from ui.layout import Grid, Rows, Slider, grid, op, section

SHOWN = (4, 64, 512)


def own(name: str, title: str | None = None, **fixed: int) -> Grid:
    """A tensor of the lab."""
    return grid(f"why_sqrt.{name}", title=title and f"title_sqrt_{title}", **fixed)


def first(name: str, title: str | None = None) -> Grid:
    """What the first query has of a tensor."""
    return own(name, title, sample_query=0)


def by_key(title: str, columns: tuple[tuple[str, str], ...]) -> Rows:
    """A line for each key, a column for each tensor, of which the first query's row is shown."""
    return Rows(f"title_sqrt_{title}", tuple(
        (f"k{key}", tuple(own(name, sample_query=0, sample_key=key) for _, name in columns)) for key in range(KEYS)
    ), axis="axis_sample_key", columns=tuple(label for label, _ in columns), looks=True)


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
    section(
        "section_sqrt_one", first("D4.q", "q"), op("@ kᵀ"), own("D4.k", "k"), op("="),
        by_key("one", (("q·k", "D4.dot"), ("q·k ÷ √D", "D4.by_root.scores"), ("softmax", "D4.by_root.weights"))),
        note="note_sqrt_one",
    ),
    section("section_sqrt_weights", SEED, note="note_sqrt_weights"),
    section(None, *(
        by_key(f"weights_{size}", tuple(
            (why_charts.SCORES[division], f"D{size}.{division}.weights") for division in DIVISIONS
        )) for size in SHOWN
    )),
    section("section_sqrt_measures", SEED, note="note_sqrt_measures"),
    section(None, measured("spread", "sqrt_head_size"), measured("entropy"), measured("slope")),
    chart=why_charts.score_measures,
)
