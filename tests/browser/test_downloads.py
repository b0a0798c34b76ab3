"""What can be taken away holds the numbers of the page, to the last digit, edits included."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest
from playwright.sync_api import Download

from tests.browser.support import ATTENTION, Reader, label

WQ01 = f"{ATTENTION}.Wq[0,1]"
SCORES = f"{ATTENTION}.masked_scores"


@pytest.fixture
def edited(reader: Reader) -> Reader:
    """A lesson with an edit that no short decimal can hold, and the downloads unfolded."""
    reader.open("scores")
    reader.edit(WQ01, 0.1 + 0.2)
    reader.page.locator("summary", has_text=label("downloads", "en")).click()
    return reader


def fetch(reader: Reader, key: str) -> tuple[Download, bytes]:
    with reader.page.expect_download() as waiting:
        reader.page.get_by_role("button", name=label(key, "en")).click()
    download = waiting.value
    return download, download.path().read_bytes()


def test_csv_of_a_tensor(edited: Reader) -> None:
    edited.choose(label("tensor", "en"), SCORES, typed=SCORES)
    edited.page.wait_for_function(
        "() => document.querySelector('.stApp').dataset.testScriptState === 'notRunning'"
    )
    download, content = fetch(edited, "download_csv")
    assert download.suggested_filename == f"{SCORES}.csv"
    rows = list(csv.DictReader(io.StringIO(content.decode())))
    assert len(rows) == 2 * 3 * 3
    assert rows[0].keys() >= {"batch", "head", "query", "query_label", "key", "key_label", "value"}
    shown = edited.numbers(SCORES)
    of_head = {
        f"{SCORES}[{row['batch']},{row['head']},{row['query']},{row['key']}]": float(row["value"])
        for row in rows if row["head"] == "0"
    }
    assert of_head == shown
    assert {row["query_label"] for row in rows} == {"0:Cats", "1:sit", "2:on"}

    # the file is made at the click: an edit after the choice is in it
    edited.edit(WQ01, -1.0)
    _, content = fetch(edited, "download_csv")
    values = [float(row["value"]) for row in csv.DictReader(io.StringIO(content.decode())) if row["head"] == "0"]
    assert values == list(edited.numbers(SCORES).values())


def test_whole_trace(edited: Reader) -> None:
    shown = edited.numbers()
    download, content = fetch(edited, "download_npz")
    assert download.suggested_filename.endswith(".npz")
    with np.load(io.BytesIO(content), allow_pickle=False) as stored:
        arrays = dict(stored)
    for reference, value in shown.items():
        name, _, index = reference.removesuffix("]").partition("[")
        cell = arrays[name][tuple(int(part) for part in index.split(",") if part)]
        assert float(cell) == value, reference
    assert arrays["logits"].shape == (1, 3, 256)
    assert arrays["logits"].dtype == np.float64

    _, content = fetch(edited, "download_json")
    stored_json = json.loads(content)
    assert stored_json["input_ids"] == [[12, 45, 78]]
    assert [edit["value"] for edit in stored_json["edits"]] == [0.1 + 0.2]
    assert set(stored_json["tensors"]) >= set(arrays)
    for name, array in arrays.items():
        data = np.array(stored_json["tensors"][name]["data"], dtype=np.float64)
        assert np.array_equal(np.nan_to_num(data, nan=-np.inf, neginf=-np.inf), array), name
