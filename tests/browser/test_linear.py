"""The labs on linearity: verdicts that follow the numbers, switches that bend the layers, the factor of x."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.conftest import Visit
from tests.browser.support import LANGUAGES, Reader, label

RELU, Z3 = "linear.layers.relu[]", "linear.layers.z3[0]"
LAB = "layers.0.attention_linear."


def wait_for_verdicts(reader: Reader, *keys: str, language: str = "en") -> None:
    """Wait until the board's verdicts are these, from the top down."""
    wanted = [label(f"verdict_{key}", language) for key in keys]
    reader.page.wait_for_function(
        "(wanted) => JSON.stringify([...document.querySelectorAll('.gb-verdict')].map((each) => each.textContent))"
        " === JSON.stringify(wanted)", arg=wanted,
    )


def solid_lines(reader: Reader) -> list[str]:
    """The paths of the chart's curves of three layers."""
    lines: Locator = reader.page.locator(".js-plotly-plot .scatterlayer .js-line")
    return [str(path) for path in lines.evaluate_all("(lines) => lines.map((line) => line.getAttribute('d'))")[3:]]


@pytest.mark.parametrize("language", LANGUAGES)
def test_verdicts_follow_the_reader_s_numbers(visit: Visit, language: str) -> None:
    reader = visit()
    reader.open("linear", lang=language)
    fails = ["linear_fails"] * 3
    wait_for_verdicts(reader, "linear_passes", "linear_fails", *fails, "linear_collapses", language=language)
    assert [reader.text(f"linear.relu.{name}[0]") for name in ("of_sum", "sum_of_outputs", "sum_difference")] == [
        "0.0000", "2.0000", "−2.0000",
    ]
    expect(reader.page.locator('.gb-verdict[data-zero="true"]')).to_have_count(2)
    for place in range(3):
        reader.edit(f"linear.bias[{place}]", 0.0)
    wait_for_verdicts(reader, "linear_passes", "linear_passes", *fails, "linear_collapses", language=language)
    # the scale of the second test passes ReLU until k is negative
    assert reader.number("linear.relu.scaled_difference[0]") == 0
    slider = reader.page.locator(".gb-control input[type=range]").first
    slider.focus()
    reader.press("Home")
    reader.wait_for_number("linear.scaled[0]", -8.0)
    assert reader.number("linear.relu.scaled_difference[0]") == 8.0


def test_switches_put_activations_between_the_layers(reader: Reader) -> None:
    reader.open("linear")
    relu, gelu = (reader.page.get_by_role("switch").nth(number) for number in range(2))
    assert not relu.is_checked()
    assert not gelu.is_checked()
    reader.page.locator(".js-plotly-plot .scatterlayer").wait_for()
    before, straight = reader.number(Z3), solid_lines(reader)
    for switch, name in ((relu, "relu"), (gelu, "gelu")):
        switch.focus()
        reader.press("Space")
        reader.wait_for_change(Z3, before)
        reader.wait_for_edits({f"linear.layers.{name}[]": 1.0})
        assert switch.is_checked()
        expect(reader.page.locator(".gb-verdict").last).to_have_text(
            label("verdict_linear_does_not_collapse", "en"), use_inner_text=True
        )
        assert reader.number("linear.layers.difference[0]") == reader.number(Z3) - before
        reader.page.wait_for_function(
            "(old) => [...document.querySelectorAll('.js-plotly-plot .scatterlayer .js-line')].slice(3)"
            ".some((line, place) => line.getAttribute('d') !== old[place])", arg=straight,
        )
        reader.press("Space")
        reader.wait_for_number(Z3, before)
        reader.wait_for_address(lacks="edits=")
        assert not switch.is_checked()
        expect(reader.page.locator(".gb-verdict").last).to_have_text(
            label("verdict_linear_collapses", "en"), use_inner_text=True
        )


def test_a_switch_that_is_on_comes_with_the_link(visit: Visit) -> None:
    one, other = visit(), visit()
    one.open("linear")
    one.page.get_by_role("switch").first.focus()
    one.press("Space")
    one.wait_for_edits({RELU: 1.0})
    other.page.goto(one.page.url)
    other.wait_until_drawn(Z3)
    assert other.page.get_by_role("switch").first.is_checked()
    assert other.number(Z3) == one.number(Z3)


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_factor_of_x(visit: Visit, language: str) -> None:
    reader = visit()
    reader.open("attention_linear", lang=language)
    held, two_held = "attention_held_same", "attention_two_held_same"
    wait_for_verdicts(
        reader, held, *(f"attention_{name}_other" for name in ("scale", "sum", "products", "raw", "two")), two_held,
        language=language,
    )
    dot, both = f"{LAB}once.dot[0,0,2,1]", f"{LAB}match.of_both[0,0,2,1]"
    assert reader.number(both) == pytest.approx(4 * reader.number(dot), rel=1e-12)
    slider = reader.page.locator(".gb-control input[type=range]").first
    slider.focus()
    reader.press(*["ArrowLeft"] * 4)
    reader.wait_for_number(both, reader.number(dot), tolerance=1e-12)
    wait_for_verdicts(
        reader, held, "attention_scale_same", "attention_sum_other", "attention_products_same", "attention_raw_same",
        "attention_two_other", two_held, language=language,
    )
    # every slider of the board stands for the same factor
    values = reader.page.locator(".gb-control input[type=range]").evaluate_all("(all) => all.map((each) => each.value)")
    assert values == ["1"] * 3
    reader.wait_for_edits({"attention_linear.factor[]": 1.0})
    expect(reader.in_strip(".gb-prediction s"), "an experiment beside the model").to_have_count(0)


def test_other_layers_and_heads(reader: Reader) -> None:
    reader.open("attention_linear", layer="2", head="1")
    assert reader.number("layers.1.attention_linear.once.weights[0,1,2,0]") == pytest.approx(
        reader.number("layers.1.attention.weights[0,1,2,0]"), rel=1e-12
    )
