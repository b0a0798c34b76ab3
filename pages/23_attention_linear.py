"""Lesson 23: how linear attention is; with its weights held it is, with its weights following it is not."""

from ui import lesson
from ui.layout import Grid, Rows, Slider, Verdict, grid, op, section

OWN, LAB = "layers.{layer}.attention.", "layers.{layer}.attention_linear."
FACTOR = Slider(grid("attention_linear.factor"), "slider_attention_factor", -2, 6, 0.25)


def read(tensor: str) -> Grid:
    """What the last query, in the chosen head, has of a tensor."""
    return grid(tensor, query="last")


def reads(title: str, *lines: tuple[str, str]) -> Rows:
    """Lines of the last query; a line's tensor is this lesson's unless its name is whole."""
    return Rows(f"title_attention_{title}", tuple(
        (label, read(name if name.startswith(OWN) else f"{LAB}{name}")) for label, name in lines
    ))


def verdict(tensor: str, about: str) -> Verdict:
    """What the last query's difference says."""
    return Verdict(read(f"{LAB}{tensor}"), f"verdict_attention_{about}_same", f"verdict_attention_{about}_other")


def stacked(place: str) -> tuple[Rows, Verdict]:
    """Two layers of attention on x, x′ and x + x′, and whether they add up, at the last position."""
    lines = (("g(x)", "once.result"), ("g(x′)", "other.result"), ("g(x) + g(x′)", "sum_of_outputs"),
             ("g(x + x′)", "both.result"), ("row_difference", "sum_difference"))
    *_, (_, difference) = table = tuple(
        (label, grid(f"{LAB}{place}.{name}", position="last")) for label, name in lines
    )
    return Rows(f"title_attention_{place}", table), Verdict(
        difference, f"verdict_attention_{place}_same", f"verdict_attention_{place}_other"
    )


lesson.show(
    "attention_linear",
    section(
        "section_attention_inputs", grid(f"{LAB}x", title="title_attention_x"),
        grid(f"{LAB}other_x", title="title_attention_other_x"), FACTOR, note="note_attention_inputs",
    ),
    section(
        "section_attention_held", grid(f"{OWN}weights"), op("@"), grid(f"{OWN}v_heads"), op("="),
        grid(f"{OWN}head_output"), note="note_attention_held",
    ),
    section(
        None,
        reads("held_sum", ("weights @ V", f"{OWN}head_output"), ("weights @ V′", "held.of_other"),
              ("row_added", "held.sum_of_outputs"), ("weights @ (V + V′)", "held.of_sum"),
              ("row_difference", "held.sum_difference")),
        reads("held_scale", ("weights @ V", f"{OWN}head_output"), ("s × (weights @ V)", "held.scaled_output"),
              ("weights @ (s × V)", "held.of_scaled"), ("row_difference", "held.scaled_difference")),
        Verdict(reads("held_sum", ("row_difference", "held.sum_difference"),
                      ("row_difference", "held.scaled_difference")),
                "verdict_attention_held_same", "verdict_attention_held_other"),
    ),
    section(
        "section_attention_scale", FACTOR,
        reads("weights", ("row_weights_once", "once.weights"), ("row_weights_scaled", "scaled.weights")),
        reads("scale", ("attention(x)", "once.output"), ("s × attention(x)", "follow.scaled_output"),
              ("attention(s × x)", "scaled.output"), ("row_difference", "follow.scaled_difference")),
        verdict("follow.scaled_difference", "scale"), note="note_attention_scale",
    ),
    section(
        "section_attention_sum",
        reads("sum", ("attention(x)", "once.output"), ("attention(x′)", "other.output"),
              ("row_added", "follow.sum_of_outputs"), ("attention(x + x′)", "both.output"),
              ("row_difference", "follow.sum_difference")),
        verdict("follow.sum_difference", "sum"),
    ),
    section(
        "section_attention_products", FACTOR,
        reads("only_q", ("q · k", "once.dot"), ("s × (q · k)", "match.times"), ("s q · k", "match.of_query"),
              ("row_difference", "match.query_difference")),
        reads("q_and_k", ("s q · s k", "match.of_both"), ("s × (q · k)", "match.times"),
              ("row_off_s", "match.both_difference"), ("s² × (q · k)", "match.times_square"),
              ("row_off_s2", "match.square_difference")),
        verdict("match.both_difference", "products"), note="note_attention_products",
    ),
    section(
        "section_attention_raw",
        reads("raw", ("(q · k) V", "raw.output"), ("(s q · s k) s V", "raw.of_all"), ("s × (q · k) V", "raw.times"),
              ("row_off_s", "raw.difference"), ("s³ × (q · k) V", "raw.times_cube"),
              ("row_off_s3", "raw.cube_difference")),
        verdict("raw.difference", "raw"), note="note_attention_raw",
    ),
    section("section_attention_two", *stacked("two"), note="note_attention_two"),
    section(None, *stacked("two_held")),
)
