"""A number that is refused: under the name that the board has for it, and with its limits written out."""

from __future__ import annotations

import pytest

from engine import EditError
from engine.bounds import Bounds
from tests.ui.support import framed, items, reader
from ui.text import LANGUAGES, catalogue, explain_error


def refusal(language: str, tensor: str, bounds: Bounds, value: float) -> str:
    with pytest.raises(EditError) as caught:
        bounds.check(tensor, value)
    return explain_error(language, caught.value)


@pytest.mark.parametrize(("tensor", "bounds", "value", "said"), [
    ("optimizer.adamw.step", Bounds(1, 1e6, whole=True), 0.0, "“t” must be between 1 and 1000000, not 0."),
    ("optimizer.adamw.step", Bounds(1, 1e6, whole=True), 2e6, "“t” must be between 1 and 1000000, not 2000000."),
    ("optimizer.adamw.step", Bounds(1, 1e6, whole=True), 1.5, "“t” takes whole numbers only, not 1.5."),
    ("optimizer.epsilon", Bounds(0, 1, above=True), 0.0, "“ε” must be above 0 and at most 1, not 0."),
    ("raise_logit.against", Bounds(0, 1), -0.5, "“against” must be between 0 and 1, not −0.5."),
    ("loss.vocabulary_size", Bounds(1, 999_999, whole=True), 1e6,
     "“vocabulary size V” must be between 1 and 999999, not 1000000."),
    ("choosing.order", Bounds(0, 15, whole=True), 16.0, "choosing.order must be between 0 and 15, not 16."),
])
def test_a_refusal_has_the_board_s_words(tensor: str, bounds: Bounds, value: float, said: str) -> None:
    assert refusal("en", tensor, bounds, value) == said


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("lesson", ["optimizer", "choosing", "dropout", "why_sqrt"])
def test_what_has_a_slider_is_called_as_there(lesson: str, language: str) -> None:
    state = reader(lesson, language=language, preset="today" if lesson in ("choosing", "dropout") else "cats")
    frame = framed(lesson, state)
    sliders = [item for item in items(frame) if item["type"] == "slider"]
    assert sliders
    for slider in sliders:
        tensor = frame.data["grids"][slider["grid"]]["tensor"]
        assert f"“{slider['label']}”" in refusal(language, tensor, Bounds(0, 1), -1.0)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(("lesson", "tensor"), [
    ("raise_logit", "raise_logit.against"), ("loss", "loss.vocabulary_size"),
])
def test_what_has_a_title_is_called_by_it(lesson: str, tensor: str, language: str) -> None:
    grids = framed(lesson, reader(lesson, language=language)).data["grids"].values()
    (grid,) = (grid for grid in grids if grid["tensor"] == tensor)
    assert f"“{grid['title']}”" in refusal(language, tensor, Bounds(0, 1), -1.0)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_vocabulary_s_field_asks_for_whole_numbers(language: str) -> None:
    """In its tables tokens are columns or rows; and what is said beside a number holds for any number there."""
    words = catalogue(language)
    assert "token" in words["row"].lower()
    assert "token" in words["show_row"]
    assert ("Whole numbers" if language == "en" else "整数") in words["row_range"]
    assert "ln V" in words["note_loss_uniform"]
    assert "{" not in words["note_loss_uniform"]
