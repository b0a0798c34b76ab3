"""Lesson 29's cards: a text in tokens, the windows that are cut from it, and a batch of inputs and targets."""

from __future__ import annotations

from contextlib import suppress

import streamlit as st

from engine import InputError
from ui import dataset
from ui.controls import CONTROLS
from ui.dataset import Cut
from ui.markup import Markup, card_head, fill, join, scrolling, tag
from ui.state import State, current
from ui.staves import token_chip
from ui.text import explain_error, joined

AREA_HEIGHT = 92
# windows that are drawn below the text
DRAWN = 12
SETTINGS = ("block", "block_stride", "batch_size", "shuffle")


def show(state: State) -> None:
    """Draw the cards; of a text that cannot be read or is too short, only as far as it goes."""
    with st.container(key="card_data_text"):
        st.html(_head(state, "text"))
        refused = "" if state.hides("controls") else _area(state)
        try:
            now = dataset.cut(state)
        except InputError as error:
            # of two texts that cannot be read the one in the field counts
            _refuse(refused or explain_error(state.choices.language, error))
            return
        if refused:
            _refuse(joined(state.choices.language, [refused, state.say("data_text_before")]))
        st.html(tag("div", _text(state, now), css="card-content"))
    with st.container(key="card_data_windows"):
        st.html(_head(state, "windows"))
        if not state.hides("controls"):
            _settings(state, now)
        if not now.starts:
            _refuse(state.say("data_too_short", count=len(now.ids), needed=now.block + 1))
            return
        number = dataset.looked_at(state, now)
        st.html(tag("div", _windows(state, now, number), _status(state, now), css="card-content"))
    with st.container(key="card_data_batch"):
        st.html(_head(state, "batch"))
        _batch(state, now, number)


def _head(state: State, name: str) -> Markup:
    return card_head(state.say(f"data_{name}"), state.say(f"data_{name}_note"))


def _refuse(said: str) -> None:
    st.html(tag("p", said, css="card-refusal", role="alert"))


# ---- the text

def _area(state: State) -> str:
    """The field of the text; emptied, it has the preset's own again. Returns what is wrong with its length, if any."""
    key, most = f"dataset_{state.choices.language}_{state.choices.preset}", int(CONTROLS["dataset"].high)
    count = len(st.session_state.get(key, ""))
    # one that is too long stays in the field, to be shortened
    if count <= most:
        st.session_state[key] = dataset.text(state)
    st.text_area(
        state.say("data_field", most=most), key=key, height=AREA_HEIGHT,
        on_change=lambda: _set("dataset", st.session_state[key]),
    )
    return state.say("data_too_long", count=count, most=most) if count > most else ""


def _text(state: State, now: Cut) -> Markup:
    """Every token of the text over its id."""
    pieces = [
        tag("span", token_chip(state.model, token), tag("small", str(token)), css="data-token") for token in now.ids
    ]
    told = state.say("data_counts", characters=len(dataset.text(state)), tokens=len(now.ids))
    return join(tag("div", *pieces, css="data-text", role="group", aria_label=state.say("data_text")),
                tag("p", told, css="card-status"))


# ---- the windows

def _settings(state: State, now: Cut) -> None:
    """T, stride, B and the seed of the order as number fields."""
    values = dict(zip(SETTINGS, (now.block, now.stride, now.size, now.seed), strict=True))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        for name, value in values.items():
            key = f"data_{name}_{state.choices.language}"
            st.session_state[key] = value
            most = dataset.longest(state) if name == "block" else int(CONTROLS[name].high)
            # Streamlit would refuse a number out of range in English
            st.number_input(
                state.say(f"data_{name}"), key=key, width=190, step=1, help=state.say(f"data_{name}_help"),
                on_change=_take, args=(name, key, 0 if name == "shuffle" else 1, most),
            )


def _take(name: str, key: str, least: int, most: int) -> None:
    """Take the number that was typed, or the nearest that can be."""
    _set(name, min(max(st.session_state[key], least), most))
    _set("batch", 0)


def _set(name: str, value: int | str) -> None:
    with suppress(ValueError):  # beyond what the field lets anybody type
        current().set_control(name, value)


def _windows(state: State, now: Cut, number: int) -> Markup:
    """The first windows below the text: what each reads, and the token behind it; those of the batch are marked."""
    drawn = now.starts[:DRAWN]
    columns = range(drawn[-1] + now.block + 1)
    heads = tag("tr", tag("th", state.say("data_start"), scope="col"),
                *(tag("th", str(place), scope="col") for place in columns))
    lines = [
        tag("tr", tag("th", str(start), scope="row"), *(
            _covered(state, now, start, place) for place in columns
        ), css="pairs-next" if start in now.batches[number] else "")
        for start in drawn
    ]
    table = tag("table", heads, *lines, css="pairs data-windows", aria_label=state.say("data_windows"))
    return scrolling(state.say("data_windows"), table)


def _covered(state: State, now: Cut, start: int, place: int) -> Markup:
    """A token of the text below which a window lies, or nothing."""
    if not start <= place <= start + now.block:
        return tag("td")
    is_behind = place == start + now.block
    return tag("td", token_chip(state.model, now.ids[place]), css="data-behind" if is_behind else "data-read")


def _status(state: State, now: Cut) -> Markup:
    """How many windows there are, and what is left over."""
    count = len(now.starts)
    said = [state.say("data_status", windows=count, batches=len(now.batches), block=now.block, needed=now.block + 1)]
    if count > DRAWN:
        said.append(state.say("data_drawn", drawn=DRAWN))
    if now.left_over:
        said.append(state.say("data_left_over", count=now.left_over))
    return tag("p", joined(state.choices.language, said), css="card-status", role="status")


# ---- a batch

def _batch(state: State, now: Cut, number: int) -> None:
    """Inputs and targets of one batch, the way to the next one, and each row's way to the board."""
    count, starts = len(now.batches), now.batches[number]
    inputs, targets = (array.tolist() for array in now.pairs(starts))
    if not state.hides("controls"):
        with st.container(horizontal=True, key="data_steps"):
            for name, goal in (("data_back", number - 1), ("data_next", number + 1)):
                st.button(state.say(name), key=f"{name}_{state.choices.language}", on_click=_set, args=("batch", goal),
                          disabled=not 0 <= goal < count)
    told = state.say("data_batch_status", number=number + 1, count=count, rows=len(starts), block=now.block)
    lines = [
        line for row, (start, *both) in enumerate(zip(starts, inputs, targets, strict=True))
        for line in _row(state, row, start, both)
    ]
    table = tag("table", *lines, css="pairs data-batch", aria_label=state.say("data_batch"))
    st.html(tag("div", tag("p", told, css="card-status", role="status"), scrolling(state.say("data_batch"), table),
                css="card-content"))
    if not state.hides("controls"):
        with st.container(horizontal=True, key="data_rows"):
            for row in range(len(starts)):
                st.button(
                    state.say("data_to_board", row=row), key=f"data_row_{row}_{state.choices.language}",
                    on_click=lambda read=tuple(inputs[row]), target=targets[row][-1]:
                        dataset.put_on_board(current(), read, target),
                )


def _row(state: State, row: int, start: int, both: list[list[int]]) -> list[Markup]:
    """What one row of the batch reads, and below each token the one that it should predict."""
    heads = [
        tag("th", fill(state.say("data_row"), row=str(row), start=str(start)), scope="row", rowspan="2"),
        Markup(),
    ]
    return [
        tag("tr", head, tag("th", state.say(f"data_{name}"), scope="row"), *(
            tag("td", token_chip(state.model, token), tag("small", str(token))) for token in tokens
        ), css=f"data-{name}")
        for head, name, tokens in zip(heads, ("inputs", "targets"), both, strict=True)
    ]
