"""Edits as a short text for an address: exact values, checked when read back.

Layout before base64url: version, groups of edits to one tensor, CRC-16. A group is the tensor's
code, its layer where it has one, the number of edits together with the number of parts of their
indices, and for each edit its index and value. A decimal of few digits takes two to four bytes,
any other double nine, a mean one; cells of another run take the token ids of its sentence.
"""

from __future__ import annotations

import re
import struct
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as Base64Error
from binascii import crc_hqx
from collections.abc import Sequence
from decimal import Decimal
from itertools import groupby
from math import inf

from engine import Carried, Edit, Mean

VERSION = 1
MOST_EDITS = 300
MOST_TOKENS = 32
# no tensor has as many axes
PART_COUNTS = 8

# A tensor's code is its place in this list, so names are only ever added at the end.
LAYER_NAMES = (
    "norm1.weight", "norm1.mean_square", "norm1.rms", "norm1.normalized", "norm1.output",
    "attention.Wq", "attention.Wk", "attention.Wv", "attention.Wo",
    "attention.q", "attention.k", "attention.v", "attention.q_heads", "attention.k_heads",
    "attention.v_heads", "attention.q_rotated", "attention.k_rotated", "attention.dot",
    "attention.scores", "attention.masked_scores", "attention.weights.max",
    "attention.weights.shifted", "attention.weights.exp", "attention.weights.sum",
    "attention.weights", "attention.head_output", "attention.merged", "attention.output",
    "residual1", "norm2.weight", "norm2.mean_square", "norm2.rms", "norm2.normalized",
    "norm2.output", "mlp.W_up", "mlp.up", "mlp.activation", "mlp.W_down", "mlp.output", "output",
    "attention.row_sums",
    "norm1.bias", "norm1.mean", "norm1.centered", "norm1.variance", "norm1.std",
    "norm2.bias", "norm2.mean", "norm2.centered", "norm2.variance", "norm2.std",
    "attention.bq", "attention.bk", "attention.bv", "attention.bo", "mlp.b_up", "mlp.b_down",
    "attention.q_norm.output", "attention.k_norm.output", "residual2", "layernorm.bias",
)
MODEL_NAMES = (
    "embedding.weight", "embedding.output", "norm_epsilon", "rope.positions", "rope.frequencies",
    "rope.offset", "rope.shifted", "rope.angles", "rope.cosines", "rope.sines", "sqrt_head_size",
    "causal_mask", "final_norm.weight", "final_norm.mean_square", "final_norm.rms",
    "final_norm.normalized", "final_norm.output", "lm_head.weight", "logits", "probabilities.max",
    "probabilities.shifted", "probabilities.exp", "probabilities.sum", "probabilities",
    "softmax_demo.small", "softmax_demo.factor", "softmax_demo.large",
    "softmax_demo.small_weights", "softmax_demo.large_weights", "contributions", "scaled.factor",
    "scaled.stream", "scaled.norm.output", "scaled.with_norm.logits",
    "scaled.with_norm.probabilities", "scaled.without_norm.logits",
    "scaled.without_norm.probabilities",
    "scaled.norm.mean_square", "scaled.norm.rms", "scaled.norm.normalized",
    *(f"softmax_demo.{size}_weights.{step}" for size in ("small", "large")
      for step in ("max", "shifted", "exp", "sum")),
    *(f"scaled.{path}.probabilities.{step}" for path in ("with_norm", "without_norm")
      for step in ("max", "shifted", "exp", "sum")),
    "position_embedding.weight", "position_embedding.output", "embedding.sum", "final_norm.bias",
    "final_norm.mean", "final_norm.centered", "final_norm.variance", "final_norm.std", "logits.uncapped",
    *(f"choosing.{name}" for name in ("temperature", "top_k", "top_p", "seed")),
    "positions.rope.offset", "layernorm.stretch", "layernorm.shift", "layernorm.own.x", "gelu.own.x",
    "dropout.p", "dropout.seed", "linear.a", "linear.b", "linear.k", "linear.W", "linear.bias",
    "linear.layers.x", *(f"linear.layers.{name}" for name in ("W1", "W2", "W3", "relu", "gelu")),
    "attention_linear.factor", "why_residuals.gain", "why_residuals.input", "why_sqrt.seed",
    *(f"optimizer.{name}" for name in (
        "learning_rate", "momentum", "beta1", "beta2", "weight_decay", "clip", "epsilon", "adamw.step")),
    "raise_logit.against", "loss.vocabulary_size", "loss.per_position", "loss", "gradient.seed",
)
NAMED_IN_FULL = 255
_MODEL_CODES = {name: code for code, name in enumerate(MODEL_NAMES)}
_LAYER_CODES = {name: code + 128 for code, name in enumerate(LAYER_NAMES)}

# a number that comes back from its digits as it was
_PLAIN_NUMBER = re.compile(r"0|[1-9][0-9]{0,8}")

_DOUBLE, _MINUS_INFINITY, _MEAN, _CARRIED = 255, 254, 253, 252
_LARGEST_EXPONENT = 63
_DECIMAL_DIGITS = 12
_MOST_BITS = 70


class LinkError(ValueError):
    """A text that no `encode` wrote, or that was damaged on the way."""


def encode(edits: Sequence[Edit]) -> str:
    """Return the edits as base64url text; `decode` gives equal edits back, values to the last bit."""
    if not edits:
        return ""
    body = bytearray([VERSION])
    for (name, parts), group in groupby(edits, key=lambda edit: (edit.name, len(edit.index))):
        members = list(group)
        body += _name(name) + _unsigned(len(members) * PART_COUNTS + parts)
        for edit in members:
            body += b"".join(_part(part) for part in edit.index) + _value(edit.value)
    return _text(bytes(body) + _checksum(bytes(body)))


def decode(text: str) -> tuple[Edit, ...]:
    """Return the edits of an encoded text. Raises `LinkError` for a text that is damaged or foreign."""
    if not text:
        return ()
    try:
        raw = urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
    except (Base64Error, ValueError) as error:
        raise LinkError("not base64url") from error
    # the decoder passes over foreign characters and spare bits
    if _text(raw) != text:
        raise LinkError("not base64url")
    if len(raw) < 4 or raw[-2:] != _checksum(raw[:-2]):
        raise LinkError("the checksum does not fit")
    if raw[0] != VERSION:
        raise LinkError(f"version {raw[0]} is not known")
    reader = _Reader(raw[1:-2])
    edits: list[Edit] = []
    try:
        while reader.left:
            name = reader.name()
            count, parts = divmod(reader.unsigned(), PART_COUNTS)
            for _ in range(count):
                index = tuple(reader.part() for _ in range(parts))
                edits.append(Edit(name, index, reader.value()))
                if len(edits) > MOST_EDITS:
                    raise LinkError(f"more than {MOST_EDITS} edits")
    except (IndexError, struct.error, UnicodeDecodeError, ValueError, OverflowError) as error:
        raise LinkError(str(error)) from error
    return tuple(edits)


def _text(raw: bytes) -> str:
    return urlsafe_b64encode(raw).decode().rstrip("=")


def _checksum(body: bytes) -> bytes:
    # inverted: a plain CRC still fits when zeros are added behind it
    return struct.pack(">H", crc_hqx(body, 0) ^ 0xFFFF)


def _name(name: str) -> bytes:
    if name in _MODEL_CODES:
        return bytes([_MODEL_CODES[name]])
    layers, layer, inner = [*name.split(".", 2), "", ""][:3]
    if layers == "layers" and _PLAIN_NUMBER.fullmatch(layer) and inner in _LAYER_CODES:
        return bytes([_LAYER_CODES[inner]]) + _unsigned(int(layer))
    text = name.encode()
    return bytes([NAMED_IN_FULL]) + _unsigned(len(text)) + text


def _part(part: int | slice) -> bytes:
    """0 stands for a whole axis, 1 for a slice with bounds, anything else for a whole number."""
    if isinstance(part, int):
        return _unsigned(_zigzag(part) + 2)
    bounds = (part.start, part.stop, part.step)
    if bounds == (None, None, None):
        return _unsigned(0)
    return _unsigned(1) + b"".join(_unsigned(0 if bound is None else _zigzag(bound) + 1) for bound in bounds)


def _value(value: float | Mean | Carried) -> bytes:
    if isinstance(value, Mean):
        return bytes([_MEAN])
    if isinstance(value, Carried):
        return bytes([_CARRIED]) + _unsigned(len(value.ids)) + b"".join(map(_unsigned, value.ids))
    if value == -inf:
        return bytes([_MINUS_INFINITY])
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(exponent, int)
    mantissa = int("".join(map(str, digits))) * (-1 if sign else 1)
    short = len(digits) <= _DECIMAL_DIGITS and -_LARGEST_EXPONENT <= exponent <= _LARGEST_EXPONENT
    if short and not (sign and mantissa == 0):
        return bytes([exponent + _LARGEST_EXPONENT]) + _unsigned(_zigzag(mantissa))
    return bytes([_DOUBLE]) + struct.pack(">d", value)


def _zigzag(number: int) -> int:
    return number * 2 if number >= 0 else -number * 2 - 1


def _unzigzag(number: int) -> int:
    return -(number + 1) // 2 if number % 2 else number // 2


def _unsigned(number: int) -> bytes:
    """Seven bits a byte, lowest first; the top bit says that more follow."""
    low, high = number & 127, number >> 7
    return bytes([low | 128]) + _unsigned(high) if high else bytes([low])


class _Reader:
    """Takes the pieces off a byte string in the order in which they were written."""

    def __init__(self, raw: bytes) -> None:
        self.raw = raw
        self.at = 0

    @property
    def left(self) -> bool:
        return self.at < len(self.raw)

    def byte(self) -> int:
        self.at += 1
        return self.raw[self.at - 1]

    def unsigned(self) -> int:
        number, shift = 0, 0
        while True:
            byte = self.byte()
            number |= (byte & 127) << shift
            if byte < 128:
                return number
            shift += 7
            if shift > _MOST_BITS:
                raise LinkError("a number is too long")

    def take(self, count: int) -> bytes:
        if self.at + count > len(self.raw):
            raise LinkError("the text ends too early")
        self.at += count
        return self.raw[self.at - count:self.at]

    def name(self) -> str:
        code = self.byte()
        if code == NAMED_IN_FULL:
            return self.take(self.unsigned()).decode()
        if code >= 128:
            return f"layers.{self.unsigned()}.{LAYER_NAMES[code - 128]}"
        return MODEL_NAMES[code]

    def part(self) -> int | slice:
        kind = self.unsigned()
        if kind == 0:
            return slice(None)
        if kind == 1:
            return slice(*(self.bound() for _ in range(3)))
        return _unzigzag(kind - 2)

    def bound(self) -> int | None:
        number = self.unsigned()
        return None if number == 0 else _unzigzag(number - 1)

    def value(self) -> float | Mean | Carried:
        tag = self.byte()
        if tag == _MEAN:
            return Mean()
        if tag == _CARRIED:
            count = self.unsigned()
            if count > MOST_TOKENS:
                raise LinkError(f"a sentence of more than {MOST_TOKENS} tokens")
            return Carried(tuple(self.unsigned() for _ in range(count)))
        if tag == _MINUS_INFINITY:
            return -inf
        if tag == _DOUBLE:
            return float(struct.unpack(">d", self.take(8))[0])
        mantissa, exponent = _unzigzag(self.unsigned()), tag - _LARGEST_EXPONENT
        # through the decimal text, so that 0.1 is the double nearest to 0.1
        return float(f"{mantissa}e{exponent}")
