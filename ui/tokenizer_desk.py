"""A reader's own tokenizer: how its files come in, and what became of them."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from formats.tokenizer_files import LARGEST_BYTES, FileError, ReaderTokenizer, load
from ui.text import ASSETS, say

KEY = "tokenizer_files"
LONGEST_NAME = 60

_picker = st.components.v2.component(
    "glassbox_files", isolate_styles=False,
    js=(ASSETS / "components" / "file_picker.js").read_text(encoding="utf-8"),
)


@dataclass
class Desk:
    """The tokenizer in use, why the last files were refused, and how many times files have come."""

    tokenizer: ReaderTokenizer | None = None
    refusal: FileError | None = None
    deliveries: int = 0

    def receive(self, files: Sequence[Mapping[str, Any]], text: str) -> None:
        """Take files over; those that are no tokenizer leave the one in use where it is."""
        self.deliveries += 1
        try:
            contents = [(str(file["name"])[:LONGEST_NAME], b64decode(file["content"])) for file in files]
            self.tokenizer, self.refusal = load(contents, text), None
        except FileError as error:
            self.refusal = error

    def clear(self) -> None:
        """Give the tokenizer back."""
        self.tokenizer = self.refusal = None


def ask(language: str, deliveries: int, receive: Callable[[Sequence[Mapping[str, Any]]], None]) -> None:
    """The button for files; `receive` gets name and base64 content of each."""
    def take() -> None:
        files = st.session_state[KEY].get("files")
        if files:
            receive(files)

    most = LARGEST_BYTES // 2**20
    labels = {
        "choose": say(language, "files_choose"), "hint": say(language, "files_hint", most=most),
        "reading": say(language, "files_reading"), "unreadable": say(language, "files_unreadable"),
        "too_large": say(language, "file_too_large", most=most),
    }
    data = {"labels": labels, "most": LARGEST_BYTES, "deliveries": deliveries}
    _picker(key=KEY, data=data, on_files_change=take)
