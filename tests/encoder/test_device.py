"""The choice of a device and a precision holds within a call, and everything that is loaded there follows it."""

import pytest
import torch

from sentloom.encoder import Encoder
from sentloom.encoder.device import chosen, device_for, fast_precision, precision_for, running_on
from sentloom.errors import InputError


def test_the_choice_ends_with_the_call():
    with running_on("cpu", "bf16"):
        with running_on(None, "fp32"):
            assert chosen() == ("cpu", "fp32")
        assert chosen() == ("cpu", "bf16")
    assert chosen() == (None, None)


def test_what_is_loaded_follows_the_choice_unless_it_has_its_own(model_folders):
    with running_on("cpu", "bf16"):
        assert Encoder.load(model_folders["bert"]).precision == "bf16"
        assert Encoder.load(model_folders["bert"], precision="fp32").precision == "fp32"
        assert device_for() == torch.device("cpu")
    assert precision_for() == "fp32"


@pytest.mark.parametrize(
    ("instructions", "expected"),
    [({"avx512_bf16": True}, "bf16"), ({"amx_bf16": True, "avx2": True}, "bf16"), ({"avx2": True}, "fp32")],
)
def test_bf16_is_fast_on_cpus_with_instructions_for_it(monkeypatch, instructions, expected):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: instructions)
    assert fast_precision(torch.device("cpu")) == expected
    assert fast_precision(torch.device("cuda")) == "fp32"


def test_a_choice_that_cannot_be_had_is_refused_before_anything_runs():
    with (
        pytest.raises(InputError, match=r"'tpu' is not a device of this machine\. Expected cpu"),
        running_on("tpu", None),
    ):
        raise AssertionError("not reached")
    with pytest.raises(InputError, match=r"precision: 'fp8' .*Expected one of fp32, bf16"), running_on(None, "fp8"):
        raise AssertionError("not reached")


@pytest.mark.skipif(torch.accelerator.is_available(), reason="this machine has a GPU")
def test_a_refused_device_is_not_among_the_expected_ones():
    with pytest.raises(InputError, match=r"'cuda' is not a device of this machine\. Expected cpu\."):
        device_for("cuda")


def test_loading_refuses_the_same(model_folders):
    for choice in ({"device": "tpu"}, {"precision": "fp8"}):
        with pytest.raises(InputError, match=next(iter(choice))):
            Encoder.load(model_folders["bert"], **choice)


@pytest.mark.parametrize("name", [7, "meta", torch.device("meta")])
def test_what_is_no_device_for_numbers_is_refused(name):
    with pytest.raises(InputError, match=f"'{name}' is not a device of this machine"):
        device_for(name)
