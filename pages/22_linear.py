"""Lesson 22: linear or not; two tests on one's own numbers, and three layers that are worth one."""

from ui import lesson, linear_charts
from ui.layout import Grid, Rows, Section, Slider, Switch, Verdict, grid, op, section

LAYERS = "linear.layers."
SUM = (("f(a)", "of_a"), ("f(b)", "of_b"), ("f(a) + f(b)", "sum_of_outputs"), ("f(a + b)", "of_sum"),
       ("row_difference", "sum_difference"))
SCALE = (("f(a)", "of_a"), ("k · f(a)", "scaled_output"), ("f(k · a)", "of_scaled"),
         ("row_difference", "scaled_difference"))
BOTH = (("row_difference", "sum_difference"), ("row_difference", "scaled_difference"))


def own(name: str) -> Grid:
    """A tensor of the tests."""
    return grid(f"linear.{name}", title=f"title_linear_{name}")


def layers(name: str, title: str | None = None) -> Grid:
    """A tensor of the three layers."""
    return grid(f"{LAYERS}{name}", title=f"title_linear_{title or name}")


def table(function: str, test: str, lines: tuple[tuple[str, str], ...]) -> Rows:
    """Lines of one function's tests."""
    return Rows(f"title_linear_test_{test}",
                tuple((label, grid(f"linear.{function}.{name}")) for label, name in lines))


def tested(function: str, *given: str) -> Section:
    """One function with its matrix and bias, if it has them, and both tests of it."""
    return section(
        f"section_linear_{function}", *map(own, given), table(function, "sum", SUM), table(function, "scale", SCALE),
        Verdict(table(function, "sum", BOTH), "verdict_linear_passes", "verdict_linear_fails"),
        note=f"note_linear_{function}",
    )


lesson.show(
    "linear",
    section(
        "section_linear_own_numbers", own("a"), own("b"), Slider(grid("linear.k"), "slider_linear_k", -4, 4, 0.5),
        own("sum"), own("scaled"), note="note_linear_own_numbers",
    ),
    tested("matrix", "W"),
    tested("affine", "W", "bias"),
    tested("relu"),
    tested("gelu"),
    tested("softmax"),
    section(
        "section_linear_three_layers", layers("x", "input"), op("@"), layers("W1"), op("+"), layers("b1"), op("="),
        layers("z1", "out1"), op("sign_between_layers"), layers("after1.gelu_output", "into2"), op("@"),
        layers("W2"), op("+"), layers("b2"), op("="), layers("z2", "out2"), op("sign_between_layers"),
        layers("after2.gelu_output", "into3"), op("@"), layers("W3"), op("+"), layers("b3"), op("="),
        layers("z3", "out3"), note="note_linear_three_layers",
    ),
    section(
        "section_linear_one_layer", layers("W1"), op("@"), layers("W2"), op("="), layers("W12"), op("@"),
        layers("W3"), op("="), layers("W_total"), note="note_linear_one_layer",
    ),
    section(
        None, layers("b1"), op("@"), layers("W2"), op("+"), layers("b2"), op("="), layers("b12"), op("@"),
        layers("W3"), op("+"), layers("b3"), op("="), layers("constant"),
    ),
    section(
        "section_linear_stack", Switch(grid(f"{LAYERS}relu"), "switch_linear_relu", on=1.0),
        Switch(grid(f"{LAYERS}gelu"), "switch_linear_gelu", on=1.0),
        Rows("title_linear_stack", (
            ("row_linear_three_layers", grid(f"{LAYERS}z3")), ("row_linear_one_layer", grid(f"{LAYERS}merged")),
            ("row_difference", grid(f"{LAYERS}difference")),
        )),
        Verdict(grid(f"{LAYERS}difference"), "verdict_linear_collapses", "verdict_linear_does_not_collapse"),
        note="note_linear_stack",
    ),
    chart=linear_charts.line,
)
