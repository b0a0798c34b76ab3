"""A random model against PyTorch's arrays: two rows, repeated tokens, asymmetric matrices, both pairings."""

from __future__ import annotations

import numpy as np
import pytest

from engine import gradient, run
from tests.conftest import Reference
from tests.engine.support import steps

PAIRINGS = ("interleaved", "half")


@pytest.mark.parametrize("pairing", PAIRINGS)
def test_every_tensor(reference: Reference, pairing: str) -> None:
    trace = run(reference.model(pairing), reference.ids)
    expected = reference.under(f"{pairing}/tensors")
    assert len(expected) == 63
    for name, array in expected.items():
        np.testing.assert_allclose(trace[name].data, array, rtol=1e-12, atol=1e-12, err_msg=name)


@pytest.mark.parametrize(("pairing", "letter"), [("interleaved", "A"), ("half", "A"), ("interleaved", "B")])
def test_gradients(reference: Reference, pairing: str, letter: str) -> None:
    gradients = gradient(run(reference.model(pairing), reference.ids), *reference.target(letter))
    expected = reference.under(f"{pairing}/gradients/{letter}")
    for name, array in expected.items():
        np.testing.assert_allclose(gradients[name].data, array, rtol=0, atol=1e-10, err_msg=name)
    assert {name for name in gradients if name in reference.under("parameters")} == {
        name for name in expected if name in reference.under("parameters")
    }


def test_float32_from_end_to_end(reference: Reference) -> None:
    trace = run(reference.model(dtype=np.float32), reference.ids)
    gradients = gradient(trace, *reference.target("A"))
    for tensor in (*steps(trace), *steps(gradients)):
        assert tensor.data.dtype == (np.int64 if tensor.op == "ids" else np.float32), tensor

    expected = reference.arrays["float32/logits"]
    assert expected.dtype == np.float32
    np.testing.assert_allclose(trace["logits"].data, expected, rtol=1e-5, atol=1e-5)
    for name, array in reference.under("interleaved/gradients/A").items():
        np.testing.assert_allclose(gradients[name].data, array, rtol=1e-3, atol=1e-5, err_msg=name)
