"""The link that a teacher hands out, and its QR code."""

from __future__ import annotations

from urllib.parse import parse_qsl, unquote, urlsplit
from xml.etree import ElementTree

import pytest

from engine import Edit
from tests.ui.support import alive, reader, send
from ui import handing_out, hiding
from ui.address import open_address

PAGE = "http://192.0.2.7:8501/scores"
WQ = "layers.0.attention.Wq"
# a byte-mode code of version 40 holds this many bytes at the lowest level of correction (ISO/IEC 18004, table 7)
MOST_BYTES = 2953


def test_nothing_is_sent_while_the_panel_is_closed() -> None:
    assert alive("scores", reader("scores"))["hand_out"] is None


def test_the_link_holds_the_state_and_what_it_hides() -> None:
    state = reader("scores", language="zh", layer=1, selected=(WQ, (0, 1)))
    state.commit((Edit(WQ, (0, 1), 0.5),))
    send(state, "hand_out", page=PAGE, hide=["editing", "lessons"], present=True)
    made = alive("scores", state)["hand_out"]
    assert made["link"].startswith(f"{PAGE}?lang=zh&")
    opened = open_address(dict(parse_qsl(urlsplit(made["link"]).query)), None)
    assert opened.message is None
    assert opened.edits == state.edits
    assert (opened.choices.layer, opened.choices.selected) == (1, (WQ, (0, 1)))
    assert (opened.choices.hidden, opened.choices.presenting) == (("lessons", "editing"), True)
    assert (state.choices.hidden, state.choices.presenting) == ((), False), "the teacher's own page stays as it is"


def test_the_link_follows_the_state() -> None:
    state = reader("scores")
    send(state, "hand_out", page=PAGE)
    before = alive("scores", state)["hand_out"]["link"]
    send(state, "text", value="sit on")
    after = alive("scores", state)["hand_out"]["link"]
    assert before == f"{PAGE}?lang=en"
    assert after == f"{PAGE}?lang=en&text=sit+on"
    send(state, "hand_out", page=None)
    assert alive("scores", state)["hand_out"] is None


def test_the_panel_opens_with_what_is_hidden_already() -> None:
    state = reader("scores", hidden=("prose",), presenting=True)
    send(state, "hand_out", page=PAGE)
    made = alive("scores", state)["hand_out"]
    assert (made["hidden"], made["present"]) == (["prose"], True)
    assert made["link"] == f"{PAGE}?lang=en&present=1&hide=prose"


def test_everything_can_be_ticked() -> None:
    state = reader("scores")
    send(state, "hand_out", page=PAGE)
    places = alive("scores", state)["hand_out"]["places"]
    assert [name for place in places for name, _ in place["names"]] == list(hiding.NAMES)


def test_what_cannot_be_hidden_is_refused() -> None:
    state = reader("scores")
    send(state, "hand_out", page=PAGE, hide=["everything"], present=False)
    assert state.handing is None
    assert state.message == ("error", state.say("error_event"))


@pytest.mark.parametrize("link", [PAGE, f"{PAGE}?lang=zh&text=%E4%BB%8A", "x" * MOST_BYTES])
def test_the_code_is_dark_on_white_with_a_quiet_zone(link: str) -> None:
    """Four light modules around the code, whatever the theme: scanners look for them."""
    made = handing_out.code(link)
    assert made is not None
    head, _, body = made["image"].partition(",")
    assert head.startswith("data:image/svg+xml")
    drawing = ElementTree.fromstring(unquote(body))
    size = str(made["modules"])
    assert (drawing.get("width"), drawing.get("height")) == (size, size)
    background, dark = drawing
    assert (background.get("fill"), dark.get("stroke")) == ("#fff", "#000")
    assert background.get("d") == f"M0 0h{size}v{size}h-{size}z"
    assert (dark.get("d") or "").startswith("M4 4.5h7"), "a finder pattern begins in row and column 4"
    # versions 1 to 40 have 17 + 4 · version modules a side
    assert (made["modules"] - 8 - 17) % 4 == 0


def test_a_link_that_no_code_can_hold() -> None:
    assert handing_out.code("x" * (MOST_BYTES + 1)) is None
    state = reader("scores")
    state.commit(tuple(Edit(WQ, (row, column), 0.1 + row / 7) for row in range(4) for column in range(4)))
    send(state, "hand_out", page=PAGE + "/" + "x" * 1950)
    assert alive("scores", state)["hand_out"]["code"] is not None
    state.commit(tuple(
        Edit(f"layers.{layer}.attention.W{letter}", (row, column), 1 / (3 + row + column))
        for layer in range(2) for letter in "qkvo" for row in range(4) for column in range(4)
    ))
    made = alive("scores", state)["hand_out"]
    assert made["code"] is None
    assert len(made["link"]) > MOST_BYTES
