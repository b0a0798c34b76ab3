"""Windows, targets and batches, against the loops that training codes write for them."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import data, presets, run

SIZES = st.integers(1, 9)


@given(count=st.integers(0, 60), block=SIZES, stride=SIZES)
def test_windows_are_all_that_have_a_token_behind_them(count: int, block: int, stride: int) -> None:
    by_hand, start = [], 0
    while start + block <= count - 1:
        by_hand.append(start)
        start += stride
    assert list(data.windows(count, block, stride)) == by_hand
    assert len(by_hand) == max(0, -((block - count) // stride))


@pytest.mark.parametrize(("block", "stride"), [(0, 1), (1, 0), (-3, 2)])
def test_settings_that_make_no_windows(block: int, stride: int) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        data.windows(9, block, stride)


@given(ids=st.lists(st.integers(0, 99), min_size=2, max_size=40), block=SIZES, stride=SIZES)
def test_pairs(ids: list[int], block: int, stride: int) -> None:
    """x = data[i:i+T], y = data[i+1:i+1+T], as nanoGPT writes it."""
    starts = list(data.windows(len(ids), block, stride))
    inputs, targets = data.pairs(ids, starts, block)
    assert inputs.shape == targets.shape == (len(starts), block)
    assert inputs.tolist() == [ids[i:i + block] for i in starts]
    assert targets.tolist() == [ids[i + 1:i + 1 + block] for i in starts]
    assert np.array_equal(inputs[:, 1:], targets[:, :-1])


@given(count=st.integers(2, 60), block=SIZES)
def test_end_to_end_every_token_is_a_target_once(count: int, block: int) -> None:
    starts = data.windows(count, block, block)
    _, targets = data.pairs(range(count), starts, block)
    reached = starts[-1] + block if starts else 0
    assert sorted(targets.ravel().tolist()) == list(range(1, reached + 1))


def test_with_stride_1_a_token_is_a_target_as_often_as_there_is_room() -> None:
    """n = 12, T = 3: nine windows; tokens 1 and 11 once, 2 and 10 twice, all between three times."""
    starts = data.windows(12, 3, 1)
    assert len(starts) == 9
    _, targets = data.pairs(range(12), starts, 3)
    counted = Counter(targets.ravel().tolist())
    assert [counted[token] for token in range(12)] == [0, 1, 2, 3, 3, 3, 3, 3, 3, 3, 2, 1]


@given(count=st.integers(0, 40), seed=st.integers(0, 999), size=st.integers(1, 6))
def test_batches_hold_every_window_once(count: int, seed: int, size: int) -> None:
    starts = range(0, 3 * count, 3)
    order = data.shuffled(starts, seed)
    assert sorted(order) == list(starts)
    assert order == data.shuffled(starts, seed)
    made = data.batches(order, size)
    assert [start for batch in made for start in batch] == list(order)
    assert all(len(batch) == size for batch in made[:-1])
    if made:
        assert 1 <= len(made[-1]) <= size


def test_seed_0_leaves_the_order_and_others_do_not() -> None:
    starts = range(20)
    assert data.shuffled(starts, 0) == tuple(starts)
    assert len({data.shuffled(starts, seed) for seed in range(5)}) == 5


@pytest.mark.parametrize("preset", presets.NAMES)
def test_a_preset_s_text_begins_with_its_sentence_and_what_should_follow(preset: str) -> None:
    model = presets.load(preset)
    assert model.tokenizer is not None
    sentence, text = (model.tokenizer.encode(given[preset]) for given in (presets.SENTENCES, presets.TEXTS))
    assert text[:len(sentence) + 1] == [*sentence, presets.TARGETS[preset]]
    assert len(text) > 2 * len(sentence)


@pytest.mark.parametrize("preset", presets.NAMES)
def test_a_batch_is_what_the_model_reads(preset: str) -> None:
    """The rows of one pass over a batch are the passes over its rows."""
    model = presets.load(preset)
    assert model.tokenizer is not None
    ids = model.tokenizer.encode(presets.TEXTS[preset])
    starts = data.batches(data.windows(len(ids), 4, 3), 3)[0]
    inputs, targets = data.pairs(ids, starts, 4)
    together = run(model, inputs, targets=targets)
    alone = [run(model, [row], targets=[wanted]) for row, wanted in zip(inputs, targets, strict=True)]
    np.testing.assert_allclose(
        together["loss.per_sequence"].data, [float(trace["loss"].data) for trace in alone], rtol=1e-12
    )
    assert float(together["loss"].data) == pytest.approx(np.mean([float(trace["loss"].data) for trace in alone]))
