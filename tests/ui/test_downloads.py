"""Downloads: the trace of the moment of the click, edits included, made outside of any session."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from contextlib import nullcontext
from math import inf
from threading import Thread
from typing import Any

import numpy as np
import pytest
from streamlit.runtime.scriptrunner import get_script_run_ctx

from tests.ui.support import edit, reader, send
from ui import downloads, naming
from ui.state import State, current
from ui.text import LANGUAGES, say

WQ, SCORES = "layers.0.attention.Wq", "layers.1.attention.masked_scores"


class Page:
    """Stands in for Streamlit: keeps what is drawn, and chooses a tensor as a reader would."""

    def __init__(self, chosen: str | None) -> None:
        self.chosen = chosen
        self.buttons: dict[str, dict[str, Any]] = {}
        self.words: list[str] = []

    def expander(self, label: str) -> Any:
        self.words.append(label)
        return nullcontext()

    def caption(self, words: str) -> None:
        self.words.append(words)

    def columns(self, widths: list[int], **_: Any) -> list[Page]:
        return [self] * len(widths)

    def selectbox(self, label: str, options: list[str], index: int, **_: Any) -> str:
        self.words.append(label)
        assert self.chosen is None or self.chosen in options
        return self.chosen or options[index]

    def download_button(self, label: str, **given: Any) -> None:
        self.words.append(label)
        self.buttons[given.pop("key")] = given


def drawn(state: State, monkeypatch: pytest.MonkeyPatch, chosen: str | None = None) -> Page:
    page = Page(chosen)
    monkeypatch.setattr(downloads, "st", page)
    downloads.show(state)
    return page


def made(page: Page, key: str) -> Any:
    """The file, made by a thread that knows no session, as Streamlit makes it."""
    found: list[Any] = []
    make: Callable[[], Any] = page.buttons[key]["data"]

    def work() -> None:
        try:
            assert get_script_run_ctx(suppress_warning=True) is None
            found.append(make())
        except BaseException as error:
            found.append(error)

    thread = Thread(target=work)
    thread.start()
    thread.join()
    (outcome,) = found
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome


@pytest.fixture(params=["cats", "scratch"])
def state(request: pytest.FixtureRequest) -> State:
    """A reader with a changed weight, a masked key and an override."""
    reading = reader(preset=request.param, layer=1)
    edit(reading, WQ, (0, 1), 1 / 3)
    edit(reading, SCORES, (0, 0, 2, 1), "-inf")
    edit(reading, "layers.0.mlp.output", (0, 0, 1), -2.5)
    return reading


def test_here_is_no_session() -> None:
    """So a download that asked for one would fail below."""
    with pytest.raises(KeyError):
        current()


def test_the_archive_is_the_trace_with_its_edits(state: State, monkeypatch: pytest.MonkeyPatch) -> None:
    button = "download_npz"
    page = drawn(state, monkeypatch)
    with np.load(io.BytesIO(made(page, button)), allow_pickle=False) as archive:
        assert list(archive) == list(state.trace)
        for name, tensor in state.trace.items():
            assert archive[name].dtype == tensor.data.dtype
            assert archive[name].tobytes() == tensor.data.tobytes(), name
        assert archive[WQ][0, 1] == 1 / 3
        assert archive[SCORES][0, 0, 2, 1] == -inf
    assert (page.buttons[button]["file_name"], page.buttons[button]["on_click"]) == ("trace.npz", "ignore")


def test_json_is_the_trace_with_its_edits(state: State, monkeypatch: pytest.MonkeyPatch) -> None:
    page = drawn(state, monkeypatch)
    written = json.loads(made(page, "download_json"))
    assert written["input_ids"] == [list(state.ids)]
    assert [(each["name"], tuple(each["index"]), each["value"]) for each in written["edits"]] == [
        (WQ, (0, 1), 1 / 3), (SCORES, (0, 0, 2, 1), None), ("layers.0.mlp.output", (0, 0, 1), -2.5),
    ]
    assert list(written["tensors"]) == list(state.trace)
    for name, tensor in state.trace.items():
        numbers = np.nan_to_num(np.array(written["tensors"][name]["data"], dtype=np.float64), nan=-inf, neginf=-inf)
        np.testing.assert_array_equal(numbers, tensor.data, err_msg=name)
    assert page.buttons["download_json"]["file_name"] == "trace.json"


@pytest.mark.parametrize("name", [None, WQ, SCORES, "logits", "norm_epsilon", "input_ids", "contributions"])
def test_csv_is_the_chosen_tensor_with_its_edits(
    name: str | None, state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = drawn(state, monkeypatch, name)
    tensor = state.trace[name or "logits"]
    table = list(csv.reader(io.StringIO(made(page, "download_csv"))))
    assert page.buttons["download_csv"]["file_name"] == f"{name or 'logits'}.csv"
    assert len(table) == 1 + tensor.data.size
    labels = naming.axis_labels(state.model, state.ids, tensor)
    for index, line in zip(np.ndindex(*tensor.shape), table[1:], strict=True):
        assert line[:-1:2] == [str(part) for part in index]
        assert line[1::2] == [labels[axis][part] for axis, part in enumerate(index)]
        assert float(line[-1]) == tensor.data[index]


def test_a_file_is_made_of_the_state_at_the_click(state: State, monkeypatch: pytest.MonkeyPatch) -> None:
    """An edit redraws the board alone, so the buttons are those of before it."""
    page = drawn(state, monkeypatch, WQ)
    edit(state, WQ, (1, 0), 7.25)
    assert "1,c1,0,c0,7.25" in made(page, "download_csv").splitlines()
    send(state, "reset")
    with np.load(io.BytesIO(made(page, "download_npz"))) as archive:
        np.testing.assert_array_equal(archive[WQ], state.baseline[WQ].data)
    assert json.loads(made(page, "download_json"))["edits"] == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_labels_are_in_the_readers_language(language: str, monkeypatch: pytest.MonkeyPatch) -> None:
    page = drawn(reader(language=language), monkeypatch)
    assert page.words == [say(language, key) for key in (
        "downloads", "downloads_note", "tensor", "download_csv", "download_npz", "download_json",
    )]
