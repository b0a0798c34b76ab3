"""Traces as files: every number exact, against other people's numbers, in formats that others can read."""

from __future__ import annotations

import csv
import io
import json
from math import inf
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from engine import Carried, Edit, Mean, Model, Trace, presets, programs, run
from formats.traces import to_csv, to_json, to_npz

Arrays = dict[str, NDArray[Any]]


def refuse(constant: str) -> float:
    raise AssertionError(f"{constant} is no JSON")


def strict(text: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(text, parse_constant=refuse)
    return loaded


def lines(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


@pytest.fixture(scope="module")
def edited(cats: Model) -> Trace:
    edits = (
        Edit("layers.0.attention.Wq", (0, slice(None)), 1 / 3),
        Edit("layers.1.attention.masked_scores", (0, 0, 2, 1), -inf),
    )
    return run(cats, "Cats sit on", edits=edits, program=programs.lessons)


def test_the_archive_holds_the_golden_numbers(cats_trace: Trace, golden: Arrays) -> None:
    with np.load(io.BytesIO(to_npz(cats_trace)), allow_pickle=False) as archive:
        assert list(archive) == list(cats_trace)
        for name, array in golden.items():
            np.testing.assert_allclose(archive[name], array, rtol=0, atol=1e-12, err_msg=name)


def test_the_archive_is_exact(edited: Trace) -> None:
    with np.load(io.BytesIO(to_npz(edited)), allow_pickle=False) as archive:
        for name, tensor in edited.items():
            assert archive[name].tobytes() == tensor.data.tobytes(), name


def test_json_holds_the_golden_numbers(cats_trace: Trace, golden: Arrays) -> None:
    written = strict(to_json(cats_trace))
    assert written["input_ids"] == [[12, 45, 78]]
    assert list(written["tensors"]) == list(cats_trace)
    for name, array in golden.items():
        tensor = written["tensors"][name]
        assert tensor["shape"] == list(array.shape)
        numbers = np.array(tensor["data"], dtype=np.float64)  # null becomes NaN
        np.testing.assert_allclose(np.nan_to_num(numbers, nan=-inf), array, rtol=0, atol=1e-12, err_msg=name)


def test_json_writes_null_for_minus_infinity_and_nothing_else(cats_trace: Trace) -> None:
    tensors = strict(to_json(cats_trace))["tensors"]
    assert tensors["causal_mask"]["data"] == [[0.0, None, None], [0.0, 0.0, None], [0.0, 0.0, 0.0]]
    for name, tensor in cats_trace.items():
        nulls = np.isnan(np.array(tensors[name]["data"], dtype=np.float64))
        np.testing.assert_array_equal(nulls, np.isneginf(tensor.data), err_msg=name)


def test_json_is_exact_and_says_what_each_tensor_is(edited: Trace) -> None:
    written = strict(to_json(edited))
    for name, tensor in edited.items():
        entry = written["tensors"][name]
        assert (entry["axes"], entry["op"]) == (list(tensor.axes), tensor.op)
        numbers = np.nan_to_num(np.array(entry["data"], dtype=tensor.data.dtype), nan=-inf, neginf=-inf)
        np.testing.assert_array_equal(numbers, tensor.data, err_msg=name)


def test_json_lists_the_edits(edited: Trace) -> None:
    assert strict(to_json(edited))["edits"] == [
        {"name": "layers.0.attention.Wq", "index": [0, [None, None, None]], "value": 1 / 3},
        {"name": "layers.1.attention.masked_scores", "index": [0, 0, 2, 1], "value": None},
    ]


def test_json_says_where_a_value_comes_from() -> None:
    name = "layers.0.output"
    trace = run(presets.load("cats"), [12, 45], edits=[Edit(name, (0, 1), Mean()), Edit(name, (0, 0), Carried((90,)))])
    assert [edit["value"] for edit in strict(to_json(trace))["edits"]] == [
        {"mean_over": "positions"}, {"run_on": [90]},
    ]


def test_a_large_vocabulary_is_left_to_the_archive() -> None:
    trace = run(presets.load("today"), "今天天气真")
    written = strict(to_json(trace))["tensors"]
    assert list(written) == list(trace)
    assert {name for name, tensor in written.items() if "data" not in tensor} == {
        "embedding.weight", "lm_head.weight", "logits", "probabilities", "probabilities.shifted", "probabilities.exp",
    }
    with np.load(io.BytesIO(to_npz(trace)), allow_pickle=False) as stored:
        assert stored["probabilities"][0, 4, [5120, 6144, 7168]] == pytest.approx([0.85, 0.10, 0.02], abs=1e-12)


def test_json_stays_strict_when_numbers_run_over(cats: Model) -> None:
    trace = run(cats, "Cats sit on", edits=[Edit("layers.0.norm1.weight", (0,), 1e308)])
    assert any(np.isnan(tensor.data).any() for tensor in trace.values())
    strict(to_json(trace))


def test_csv_of_the_scores(cats_trace: Trace, golden: Arrays) -> None:
    name = "layers.0.attention.masked_scores"
    words = ["0:Cats", "1:sit", "2:on"]
    table = lines(to_csv(cats_trace[name], [["b0"], ["h0", "h1"], words, words]))
    assert list(table[0]) == [
        "batch", "batch_label", "head", "head_label", "query", "query_label", "key", "key_label", "value",
    ]
    assert len(table) == 1 * 2 * 3 * 3
    for line in table:
        index = tuple(int(line[axis]) for axis in ("batch", "head", "query", "key"))
        assert line["query_label"] == words[index[2]]
        assert line["key_label"] == words[index[3]]
        assert float(line["value"]) == cats_trace[name].data[index]
        assert float(line["value"]) == pytest.approx(golden[name][index], rel=0, abs=1e-12)


def test_csv_tells_axes_of_one_name_apart(cats_trace: Trace) -> None:
    name = "layers.0.attention.Wq"
    assert cats_trace[name].axes == ("feature", "feature")
    table = lines(to_csv(cats_trace[name], [["a", "b", "c", "d"], ["w", "x", "y", "z"]]))
    assert list(table[0]) == ["feature_1", "feature_1_label", "feature_2", "feature_2_label", "value"]
    for line in table:
        place = int(line["feature_1"]), int(line["feature_2"])
        assert (line["feature_1_label"], line["feature_2_label"]) == ("abcd"[place[0]], "wxyz"[place[1]])
        assert float(line["value"]) == cats_trace[name].data[place]


def test_csv_has_no_column_twice(edited: Trace) -> None:
    for tensor in edited.values():
        labels = [[str(place) for place in range(size)] for size in tensor.shape]
        header = to_csv(tensor, labels).splitlines()[0].split(",")
        assert len(header) == len({*header}) == 2 * len(tensor.axes) + 1
        numbered = [column for column in header if column.endswith(("_1", "_2"))]
        assert len(numbered) == (2 if len({*tensor.axes}) < len(tensor.axes) else 0)


def test_csv_values_are_exact(edited: Trace) -> None:
    for name, tensor in edited.items():
        labels = [[str(place) for place in range(size)] for size in tensor.shape]
        values = np.array([float(line["value"]) for line in lines(to_csv(tensor, labels))])
        np.testing.assert_array_equal(values, tensor.data.ravel(), err_msg=name)


def test_csv_of_a_scalar(cats_trace: Trace) -> None:
    assert to_csv(cats_trace["norm_epsilon"], []) == "value\n1e-06\n"


def test_csv_quotes_labels(cats_trace: Trace) -> None:
    table = lines(to_csv(cats_trace["input_ids"], [["b0"], ["0:a,b", '1:"', "2:\n"]]))
    assert [line["position_label"] for line in table] == ["0:a,b", '1:"', "2:\n"]
    assert [line["value"] for line in table] == ["12", "45", "78"]
