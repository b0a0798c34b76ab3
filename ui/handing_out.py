"""A link for a class: the reader's state with what a teacher hides, and its QR code."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import segno

from ui import hiding
from ui.address import address
from ui.state import State

QUIET_MODULES = 4


def data(state: State) -> dict[str, Any] | None:
    """What the panel shows, or None while it is closed."""
    handing = state.handing
    if handing is None:
        return None
    link = handing.page + address(state, hidden=handing.hidden, presenting=handing.presenting)
    return {
        "link": link, "code": code(link), "present": handing.presenting, "hidden": list(handing.hidden),
        "places": [
            {"title": state.say(f"place_{place}"), "names": [[name, state.say(f"hide_{name}")] for name in names]}
            for place, names in hiding.PLACES.items()
        ],
    }


@lru_cache(maxsize=32)
def code(link: str) -> dict[str, Any] | None:
    """The QR code of a link as an image with its size in modules; None for a link that none can hold.

    Dark on white whatever the theme, with the quiet zone of four modules that scanners need.
    """
    try:
        made = segno.make_qr(link)
    except segno.DataOverflowError:
        return None
    image = made.svg_data_uri(border=QUIET_MODULES, dark="black", light="white")
    return {"image": image, "modules": made.symbol_size(border=QUIET_MODULES)[0]}
