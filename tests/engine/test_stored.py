"""Files in the safetensors format: what is read of them, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine import ConfigError
from engine.stored import read

FIRST, SECOND = np.arange(6.0).reshape(2, 3), np.array([1.5, -2.0], dtype="<f4")
HEADER: dict[str, Any] = {
    "__metadata__": {"who": "a test", "中": "文"},
    "first": {"dtype": "F64", "shape": [2, 3], "data_offsets": [0, 48]},
    "second": {"dtype": "F32", "shape": [2], "data_offsets": [48, 56]},
}


def stored(folder: Path, header: Any = HEADER, numbers: bytes = FIRST.tobytes() + SECOND.tobytes()) -> Path:
    """A file as the format's page describes it, with blanks behind the header as writers leave them."""
    text = json.dumps(header, ensure_ascii=False).encode() + b"  "
    file = folder / "some.safetensors"
    file.write_bytes(len(text).to_bytes(8, "little") + text + numbers)
    return file


def test_arrays_and_notes(tmp_path: Path) -> None:
    arrays, notes = read(stored(tmp_path))
    assert notes == {"who": "a test", "中": "文"}
    assert {name: array.dtype for name, array in arrays.items()} == {"first": np.float64, "second": np.float32}
    np.testing.assert_array_equal(arrays["first"], FIRST)
    np.testing.assert_array_equal(arrays["second"], SECOND)


def test_order_in_the_header_is_not_order_in_the_file(tmp_path: Path) -> None:
    turned = {name: HEADER[name] for name in ("second", "first")}
    arrays, notes = read(stored(tmp_path, turned))
    assert notes == {}
    np.testing.assert_array_equal(arrays["second"], SECOND)


def changed(name: str, **parts: Any) -> dict[str, Any]:
    return {**HEADER, name: {**HEADER[name], **parts}}


@pytest.mark.parametrize("header", [
    [], "text", {"first": 1}, {"first": {}}, changed("first", dtype="BF16"), changed("first", shape=[2, 4]),
    changed("first", shape=[-2, -3]), changed("first", shape="23"), changed("first", data_offsets=[0]),
    changed("first", data_offsets=[8, 48]), changed("second", data_offsets=[40, 48]),
    changed("second", data_offsets=[48, 64]), changed("second", data_offsets=["48", "56"]),
    {name: HEADER[name] for name in ("first",)}, {**HEADER, "__metadata__": 3},
])
def test_a_header_that_does_not_fit_is_refused(tmp_path: Path, header: Any) -> None:
    with pytest.raises(ConfigError, match=r"some\.safetensors") as refused:
        read(stored(tmp_path, header))
    assert refused.value.code == "stored_file"


@pytest.mark.parametrize("contents", [
    b"", b"\x01", b"\x02\0\0\0\0\0\0\0{", b"\xff" * 8, b"\x04\0\0\0\0\0\0\0text", b"\x04\0\0\0\0\0\0\0\xff\xff\xff\xff",
])
def test_a_file_that_is_cut_or_something_else_is_refused(tmp_path: Path, contents: bytes) -> None:
    file = tmp_path / "some.safetensors"
    file.write_bytes(contents)
    with pytest.raises(ConfigError):
        read(file)
    whole = stored(tmp_path).read_bytes()
    file.write_bytes(whole[:-1])
    with pytest.raises(ConfigError):
        read(file)
