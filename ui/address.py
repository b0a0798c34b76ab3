"""The address bar: the whole state in, the whole state out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from urllib.parse import urlencode

import streamlit as st

from engine import GlassboxError, Trace, presets
from formats import edits as edit_links
from formats.edits import LinkError
from ui import controls, generation, hiding, runs
from ui.controls import CONTROLS
from ui.state import MODES, MOST_ROWS, CellAddress, Choices, Index, State
from ui.switches import format_switches, parse_switches, settled
from ui.text import LANGUAGES, explain_error, preferred_language, say

LONGEST_LINK = 8000


def start() -> State:
    """The state of this session; the first time, what the address says."""
    if "glassbox" not in st.session_state:
        st.session_state["glassbox"] = open_address(st.query_params.to_dict(), st.context.locale)
    state: State = st.session_state["glassbox"]
    return state


def open_address(query: Mapping[str, str], locale: str | None) -> State:
    """The state that an address describes; a broken one gives the default, and a message."""
    asked = query.get("lang", "")
    language = asked if asked in LANGUAGES else preferred_language(locale)
    try:
        if asked and asked not in LANGUAGES:
            raise LinkError(f"no language {asked}")
        return parse(query, language)
    except (GlassboxError, LinkError, ValueError, OverflowError) as error:
        reason = explain_error(language, error) if isinstance(error, GlassboxError) else ""
        message = ("error", say(language, "broken_link", reason=reason).strip())
        return State(Choices(language=language), message=message)


def parse(query: Mapping[str, str], language: str) -> State:
    """Read the parameters of an address. Raises `LinkError` or `GlassboxError` for a broken one."""
    if sum(map(len, query.values())) > LONGEST_LINK:
        raise LinkError("too long")
    default = Choices()
    preset = _one_of(query.get("preset", default.preset), presets.NAMES)
    choices = Choices(
        language=language, preset=preset, text=query.get("text", presets.SENTENCES[preset]),
        seed=_whole(query.get("seed", "1")),
        mode=_one_of(query.get("mode", MODES[0]), MODES),
        # beyond 1 it counts the steps that the browser shows
        presenting=_whole(query.get("present", "0")) > 0,
        hidden=hiding.parse(query.get("hide", "")),
    )
    own = presets.load(preset, choices.seed).config
    # links written before there was more than one switch name the pairing on its own
    pairing = f"rope_pairing-{query['pairing']}" if "pairing" in query else ""
    asked = parse_switches(f"{query.get('arch', '')}.{pairing}")
    state = State(replace(choices, switches=settled(asked, own)))
    config, tokenizer = state.model.config, state.model.tokenizer
    assert tokenizer is not None
    state.choose(
        text=tokenizer.decode(list(state.ids)),
        layer=_below(query.get("layer", "1"), config.layers + 1, first=1) - 1,
        head=_below(query.get("head", "0"), config.heads),
        rows=tuple(
            _below(row, config.vocab_size) for row in query.get("rows", "").split(".") if row
        )[:MOST_ROWS],
        controls=controls.settled({name: CONTROLS[name].read(query[name]) for name in CONTROLS if name in query}),
    )
    edits = edit_links.decode(query.get("edits", ""))
    if edits:
        state.commit(edits)
    if "cell" in query:
        cell = parse_cell(query["cell"], state)
        state.choose(selected=cell)
        state.trail = [cell]
    return state


def address(state: State, **changes: object) -> str:
    """The query string that brings this state back: only what differs from the default, and the language.

    `changes` are choices that the link makes differently.
    """
    choices, default = replace(state.choices, **changes), Choices()  # type: ignore[arg-type]
    pairs = {"lang": choices.language}
    if choices.preset != default.preset:
        pairs["preset"] = choices.preset
    if choices.text != presets.SENTENCES[choices.preset]:
        pairs["text"] = choices.text
    for key, value, usual in (
        ("seed", choices.seed, default.seed), ("arch", format_switches(choices.switches), ""),
        ("layer", choices.layer + 1, 1), ("head", choices.head, 0), ("mode", choices.mode, default.mode),
        ("rows", ".".join(map(str, choices.rows)), ""), ("present", int(choices.presenting), 0),
        ("hide", ".".join(choices.hidden), ""), ("edits", edit_links.encode(state.edits), ""),
    ):
        if value != usual:
            pairs[key] = str(value)
    pairs |= {name: str(value) for name, value in choices.controls}
    if choices.selected is not None:
        pairs["cell"] = format_cell(choices.selected)
    return "?" + urlencode(pairs)


def format_cell(cell: CellAddress) -> str:
    """`name~1.0.2`, the form of a cell in the address."""
    name, index = cell
    return f"{name}~{'.'.join(map(str, index))}"


def parse_cell(text: str, state: State) -> CellAddress:
    """The cell, of any lesson's trace, that an address names. Raises `LinkError` if there is none."""
    name, _, parts = text.partition("~")
    index = tuple(_whole(part) for part in parts.split(".") if part)
    longest = generation.longest(state.model, len(state.ids), state.steps)
    nodes = (
        plan.nodes[plan.names[name]] for plan in runs.plans(state.model, longest) if name in plan.names
    )
    if not any(_is_inside(index, node.shape) for node in nodes):
        raise LinkError(f"no cell {text}")
    return name, index


def is_cell(trace: Trace, name: str, index: Index) -> bool:
    """Whether the trace has that cell."""
    return name in trace and _is_inside(index, trace[name].shape)


def _is_inside(index: Index, shape: tuple[int, ...]) -> bool:
    return len(index) == len(shape) and all(0 <= part < size for part, size in zip(index, shape, strict=True))


def _one_of(value: str, allowed: tuple[str, ...]) -> str:
    if value not in allowed:
        raise LinkError(f"{value} is not one of {allowed}")
    return value


def _whole(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise LinkError(f"{text!r} is not a whole number")
    return int(text)


def _below(text: str, end: int, first: int = 0) -> int:
    number = _whole(text)
    if not first <= number < end:
        raise LinkError(f"{number} is outside {first}…{end - 1}")
    return number
