"""Models, baselines and plans that readers share; nothing here is ever changed."""

from __future__ import annotations

from functools import lru_cache

from engine import Model, Trace, presets, programs, run

MOST_TOKENS = 32


@lru_cache(maxsize=64)
def model(preset: str, seed: int, pairing: str) -> Model:
    """A preset with the reader's choices of seed and RoPE pairing."""
    return presets.load(preset, seed).with_config(rope_pairing=pairing)


@lru_cache(maxsize=64)
def baseline(preset: str, seed: int, pairing: str, ids: tuple[int, ...]) -> Trace:
    """The unedited trace of a sentence, with what the lessons add."""
    trace = run(model(preset, seed, pairing), [list(ids)], program=programs.lessons)
    for tensor in trace.values():
        # looking at an array freezes it; readers share these
        assert not tensor.data.flags.writeable
    return trace


def article() -> Trace:
    """The unedited *Cats sit on* trace that the prose quotes."""
    cats = presets.load("cats")
    assert cats.tokenizer is not None
    return baseline("cats", 1, "interleaved", tuple(cats.tokenizer.encode(presets.SENTENCES["cats"])))


def sizes(trace: Trace) -> dict[str, int]:
    """The letters of the article: B, T, C, H, D, F, V, N."""
    config = trace.model.config
    batch, length = trace.ids.shape
    return {
        "B": batch, "T": length, "C": config.hidden_size, "H": config.heads, "D": config.head_size,
        "F": config.mlp_size, "V": config.vocab_size, "N": config.layers,
    }
