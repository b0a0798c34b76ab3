"""Text in HTML stays text."""

from __future__ import annotations

from ui.markup import Markup, fill, join, scrolling, tag

EVIL = '<b onclick="x">&amp;</b>\'"'
HARMLESS = "&lt;b onclick=&quot;x&quot;&gt;&amp;amp;&lt;/b&gt;&#x27;&quot;"


def test_text_is_escaped_and_markup_is_not() -> None:
    assert tag("p", EVIL) == f"<p>{HARMLESS}</p>"
    assert tag("p", tag("i", "a"), "<", Markup("<br>")) == "<p><i>a</i>&lt;<br></p>"
    assert join("<", tag("i", "")) == "&lt;<i></i>"


def test_attributes() -> None:
    written = tag("td", css="a b", colspan=3, aria_label=EVIL, title="")
    assert written == f'<td class="a b" colspan="3" aria-label="{HARMLESS}"></td>'


def test_what_scrolls_is_reached_by_keyboard_and_has_a_name() -> None:
    assert scrolling("a < b", tag("i", "x"), "own") == (
        '<div class="card-scroller own" tabindex="0" role="region" aria-label="a &lt; b"><i>x</i></div>'
    )


def test_places_of_a_sentence() -> None:
    assert fill("{a} < {b}", a=tag("b", "1"), b=EVIL) == f"<b>1</b> &lt; {HARMLESS}"
    assert fill("{a}", a="{b}") == "{b}"
