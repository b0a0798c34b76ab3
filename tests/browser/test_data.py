"""Lesson 29 in a browser: another cut, and a row of the batch on the board."""

from __future__ import annotations

from tests.browser.support import Reader, label


def test_another_cut_and_a_row_on_the_board(reader: Reader) -> None:
    reader.open("data")
    assert reader.number("targets[0,2]") == 90
    stride = reader.page.get_by_role("spinbutton", name=label("data_block_stride", "en"))
    stride.fill("4")
    stride.press("Enter")
    reader.wait_for_text(".st-key-card_data_batch", r"row 1, from 4")
    reader.wait_for_address(has="block_stride=4")
    reader.page.get_by_role("button", name=label("data_to_board", "en").format(row=1), exact=True).click()
    reader.wait_for_number("targets[0,2]", 91)
    assert reader.text("targets[0,2]") == "chairs"
    reader.wait_for_address(has="target=91")
