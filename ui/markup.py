"""HTML that holds text as text: whatever is not markup already is escaped where it is put in."""

from __future__ import annotations

from html import escape


class Markup(str):
    """HTML that is safe to show."""

    __slots__ = ()


def tag(name: str, *content: str, css: str = "", **attributes: object) -> Markup:
    """An element with that content; `css` is its class, and `_` in an attribute's name stands for `-`."""
    given = {"class": css, **attributes}
    written = "".join(f' {key.replace("_", "-")}="{escape(str(value))}"' for key, value in given.items() if value)
    return Markup(f"<{name}{written}>{join(*content)}</{name}>")


def join(*content: str) -> Markup:
    """Pieces of text and of markup one after the other."""
    return Markup("".join(piece if isinstance(piece, Markup) else escape(piece) for piece in content))


def card_head(title: str, note: str) -> Markup:
    """The title of a card, and its sentence of guidance."""
    return join(tag("h3", title, css="card-title"), tag("p", note, css="card-note"))


def scrolling(name: str, content: Markup, css: str = "") -> Markup:
    """What may be wider than its card, in a window of its own: `name` says what it is to who cannot see it."""
    return tag("div", content, css=f"card-scroller {css}".strip(), tabindex="0", role="region", aria_label=name)


def fill(template: str, **places: str) -> Markup:
    """A sentence of the catalogue with text or markup in its `{places}`."""
    return Markup(escape(template, quote=False).format(**{name: join(piece) for name, piece in places.items()}))
