"""The lens and the split of a logit as a reader works them: another token, another place, an edit of the stream."""

from __future__ import annotations

import pytest

from tests.browser.support import Reader

PARTS = ("wrote.{}.embedding[0,{}]", *(
    part.replace("LAYER", str(layer)) for layer in range(2) for part in (
        "layers.LAYER.wrote.{}.heads[0,0,{}]", "layers.LAYER.wrote.{}.heads[0,1,{}]", "layers.LAYER.wrote.{}.mlp[0,{}]",
    )
), "wrote.{}.by_hand[0,{}]")


def assert_adds_up(reader: Reader, position: int) -> None:
    for side in ("token", "rival", "gap"):
        total = sum(reader.number(part.format(side, position)) for part in PARTS)
        for whole in ("sum", "logit"):
            assert reader.number(f"wrote.{side}.{whole}[0,{position}]") == pytest.approx(total, abs=1e-12)


def test_the_parts_of_a_logit(reader: Reader) -> None:
    """The parts add up on screen, whatever is asked and edited; the address keeps the question, undo the edit."""
    reader.open("wrote")
    assert_adds_up(reader, 2)
    assert reader.number("wrote.token.sum[0,2]") == reader.number("logits[0,2,90]")
    assert reader.number("wrote.rival.sum[0,2]") == pytest.approx(reader.number("logits[0,2,91]"), abs=1e-12)
    reader.choose("Token that is asked about", "volcano · 92", "volcano")
    reader.choose("At which position", "1: sit")
    reader.wait_for_query({**reader.query, "token": "92", "position": "1"})
    reader.wait_until_drawn("wrote.token.sum[0,1]")
    assert_adds_up(reader, 1)
    assert reader.number("wrote.token.sum[0,1]") == 0
    # what is put into the values of a head is the head's; undo leaves the question alone
    reference = "layers.0.wrote.rival.sources[0,0,1,1]"
    before = reader.number(reference)
    reader.edit("layers.0.attention.weights[0,0,1,1]", 0.25)
    reader.wait_for_change(reference, before)
    reader.wait_until_answered()
    assert_adds_up(reader, 1)
    reader.in_strip(".gb-strip-history button").first.click()
    reader.wait_for_number(reference, before)
    assert reader.query["token"] == "92"


def test_ranks_from_stage_to_stage(reader: Reader) -> None:
    """Places gained are marked with a sign; an edit after a layer leaves the stages before it alone."""
    reader.open("lens", preset="scratch")
    rank, climb = ([f"layers.{layer}.lens.{name}[0,4]" for layer in range(2)] for name in ("rank", "climb"))
    start = reader.number("lens.embedding.rank[0,4]")
    assert [reader.number(cell) for cell in climb] == [start - reader.number(rank[0]), reader.number(rank[0]) - 1]
    assert [reader.text(cell)[0] for cell in climb] == ["▲", "▲"]
    assert reader.text("layers.1.lens.leading[0,4]") == "then"
    before = reader.numbers()
    reader.edit("layers.0.output[0,4,1]", 9.0)
    reader.wait_for_change(rank[0], before[rank[0]])
    reader.wait_until_answered()
    after = reader.numbers("lens.embedding")
    assert after == {name: number for name, number in before.items() if name.startswith("lens.embedding")}
    # the embedding and earlier positions stay, and the row says how far its token fell
    assert reader.number(climb[0]) == start - reader.number(rank[0])
    for position in range(4):
        assert reader.number(f"layers.1.lens.rank[0,{position}]") == before[f"layers.1.lens.rank[0,{position}]"]
