"""Lessons as their pages describe them, readers in a given state, and the numbers on a board."""

from __future__ import annotations

import json
import re
import runpy
from base64 import b64decode
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from streamlit.testing.v1 import AppTest

from engine import Trace, presets
from ui import applicability, board, events, frame, lesson, live, navigation
from ui.address import address, open_address
from ui.frame import Frame
from ui.layout import Section
from ui.lesson import Chart
from ui.state import Choices, State

ROOT = Path(__file__).parent.parent.parent
Numbers = NDArray[np.float64]
Cell = tuple[str, tuple[int, ...]]

SENTENCES = {
    "cats": ("on", "Cats sit on", "Cats sit on Cats sit on on", " ".join(["Cats sit on on"] * 8)),
    "today": ("真", "今天天气真", "天天今真天 50256", "今天天气真好棒差" * 4),
    "copy_machine": ("q", "planetplan", "planetplan 7", "abcdefgh" * 4),
    "little_world": ("cats", "the cat with the dogs", "tom has a ball . tom likes the", " ".join(["la lo hey ho"] * 8)),
    "scratch": ("fox", "red fox red", "red fox and red fox red red", " ".join(["red fox and red"] * 8)),
}


# switches that between them lead through every operation and every wiring of the model
ARCHITECTURES: dict[str, dict[str, Any]] = {
    "own": {},
    "GPT-2": {"norm": "layernorm", "positions": "learned", "bias": True, "activation": "gelu_tanh", "tied_head": True},
    "post norm": {"norm_placement": "post", "activation": "gelu_erf", "qk_norm": True, "rope_direction": -1},
    "LayerNorm after": {"norm": "layernorm", "norm_placement": "post", "bias": True, "scale_scores": False},
    "no norm": {"norm": "none", "activation": "relu_squared", "causal": False, "logit_soft_cap": 15.0},
    "no residual": {"residual": False, "rope_pairing": "half", "logit_soft_cap": 1.0, "tied_head": True},
    "neither": {"residual": False, "norm_placement": "post", "positions": "none", "scale_scores": False,
                "causal": False, "qk_norm": True},
    "no norm after": {"norm": "none", "norm_placement": "post", "positions": "learned"},
}


@dataclass(frozen=True)
class Lesson:
    """What a page hands to `ui.lesson.show`."""

    name: str
    sections: tuple[Section, ...]
    chart: Chart | None


@lru_cache(maxsize=64)
def page(name: str) -> Lesson:
    """A lesson from its page's own script."""
    found: list[Lesson] = []

    def record(name: str, *sections: Section, chart: Chart | None = None, **_: Any) -> None:
        found.append(Lesson(name, sections, chart))

    (path,) = (ROOT / "pages").glob(f"[0-9][0-9]_{name}.py")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lesson, "show", record)
        runpy.run_path(str(path))
    return found[0]


def lessons() -> dict[str, Lesson]:
    """Every lesson by name, in reading order."""
    return {name: page(name) for name in navigation.LESSONS}


def reader(lesson: str = "overview", pairing: str | None = None, **choices: Any) -> State:
    """A reader on a lesson's page who sees this; the preset's own sentence unless `text` says otherwise."""
    preset = choices.get("preset", "cats")
    switches = {} if pairing in (None, "interleaved") else {"switches": (("rope_pairing", pairing),)}
    return State(Choices(**{"text": presets.SENTENCES[preset], **switches, **choices}), lesson=lesson)


def applies(lesson: str, preset: str) -> bool:
    """Whether the lesson's board can show the preset as it is."""
    return applicability.applies(lesson, presets.load(preset).config)


def taking_turns(number: int, every: int = 1) -> list[str]:
    """The presets for one of many cases; of the trained ones, whose boards are large, one by turns at `every` case."""
    small = [name for name in presets.NAMES if name not in presets.TRAINED]
    turn, is_idle = divmod(number, every)
    return small if is_idle else [*small, presets.TRAINED[turn % len(presets.TRAINED)]]


EVERY_LESSON = pytest.mark.parametrize("lesson", [name for name in navigation.LESSONS if applies(name, "cats")])
EVERY_PRESET = pytest.mark.parametrize("preset", presets.NAMES)
EVERY_BOARD = pytest.mark.parametrize(("lesson", "preset"), [
    (name, preset) for number, name in enumerate(navigation.LESSONS) for preset in taking_turns(number)
    if applies(name, preset)
])


def opened(**query: str) -> AppTest:
    """The whole app, run without a browser, at its root with this query."""
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    for name, value in query.items():
        app.query_params[name] = value
    return app.run()


def on_page(app: AppTest, lesson: str) -> AppTest:
    """The app at a lesson's page, which must have come up."""
    (path,) = (ROOT / "pages").glob(f"[0-9][0-9]_{lesson}.py")
    app.switch_page(f"pages/{path.name}").run()
    assert not app.exception, [error.message for error in app.exception]
    return app


def words_of(app: AppTest) -> str:
    """What is read in the page's own HTML."""
    return re.sub(r"<[^>]+>|[ \n]+", " ", " ".join(element.proto.body for element in app.get("html")))


def reopened(state: State) -> State:
    """What another reader has who opens the state's link."""
    query = dict(part.split("=", 1) for part in address(state).removeprefix("?").split("&"))
    other = open_address(query, None)
    other.lesson = state.lesson
    return other


def state_of(app: AppTest) -> State:
    """The session's state."""
    state: State = app.session_state["glassbox"]
    return state


def send(state: State, kind: str, **event: Any) -> None:
    """What the board reports when the reader does something."""
    events.apply(state, {"type": kind, "seq": state.seq + 1, **event})


def edit(state: State, tensor: str, index: tuple[int, ...], value: Any, gesture: int | None = None) -> None:
    send(state, "edit", tensor=tensor, index=list(index), value=value, gesture=gesture)


def framed(name: str, state: State) -> Frame:
    """The frame of a lesson for this reader."""
    return frame.build(name, page(name).sections, board.view(state))


def alive(name: str, state: State) -> dict[str, Any]:
    """The live part of a lesson's board for this reader."""
    return live.build(state, framed(name, state), navigation.neighbours(name, state))


def items(frame: Frame) -> list[dict[str, Any]]:
    """Everything that the sections of a board hold."""
    return [item for section in frame.data["layout"] for item in section["items"]]


def grids_in(item: dict[str, Any]) -> set[str]:
    """The keys of the grids that an item of a board speaks of."""
    blocks = {block[name] for block in item.get("blocks", ()) for name in ("cells", "names") if block.get(name)}
    return blocks | {*item.get("also", ()), *item.get("grids", ())} | ({item["grid"]} if "grid" in item else set())


def strictly(data: dict[str, Any]) -> str:
    """JSON as browsers read it, without NaN and infinities."""
    return json.dumps(data, allow_nan=False)


def labels_of(state: State) -> list[str]:
    """What the tokens of the sentence are called."""
    tokenizer = state.model.tokenizer
    assert tokenizer is not None
    return [tokenizer.label(token) for token in state.ids]


def is_chinese(words: str) -> bool:
    return any("\u4e00" <= letter <= "\u9fff" for letter in words)


def decoded(text: str) -> Numbers:
    """Numbers as the browser reads them: little-endian doubles in base64."""
    return np.frombuffer(b64decode(text, validate=True), dtype="<f8")


def addresses(grid: dict[str, Any]) -> list[Cell]:
    """Where the cells of a grid come from, row by row, as the contract with the browser has it."""
    if "cells" in grid:
        return [(name, tuple(index)) for name, index in grid["cells"]]
    rows = [[row] for row in grid["row_index"]] if grid["row_index"] is not None else [[]]
    columns = [[column] for column in grid["column_index"]] if grid["column_index"] is not None else [[]]
    return [(grid["tensor"], (*grid["base"], *row, *column)) for row in rows for column in columns]


def numbers_at(trace: Trace, cells: list[Cell]) -> Numbers:
    """The numbers of a trace at those places."""
    found = np.empty(len(cells))
    for name in dict.fromkeys(name for name, _ in cells):
        here = [place for place, (other, _) in enumerate(cells) if other == name]
        shape = trace[name].shape
        flat = [int(np.ravel_multi_index(cells[place][1], shape)) if shape else 0 for place in here]
        found[here] = trace[name].take(np.array(flat))
    return found
