"""`torch.tpu` and `torch.accelerator`: what they answer, and that what they return works."""

from __future__ import annotations

import time

import pytest
import torch

import tpu_lab  # noqa: F401  registers the device

tpu = torch.tpu  # type: ignore[attr-defined]


def test_which_devices_there_are() -> None:
    assert tpu.is_available() and tpu.device_count() == 1 and tpu.current_device() == 0 and tpu.is_bf16_supported()
    assert torch.accelerator.is_available() and torch.accelerator.device_count() == 1 and torch.accelerator.current_device_index() == 0
    current = torch.accelerator.current_accelerator()
    assert current is not None and current.type == "tpu"
    for device in (None, 0, "tpu", "tpu:0", torch.device("tpu")):
        tpu.set_device(device)
        tpu.synchronize(device)
        assert "XLA:CPU" in tpu.get_device_name(device) and tpu.get_device_capability(device) == (0, 0)
    torch.accelerator.set_device_index(0)
    for bad in (1, "tpu:1", "cpu"):
        with pytest.raises(ValueError, match="tpu:0"):
            tpu.set_device(bad)
    with tpu.device(0), tpu.device_of(torch.ones(1, device="tpu")), torch.accelerator.device_index(0):
        assert torch.ones(1, device="tpu").get_device() == 0
    properties = tpu.get_device_properties()
    assert properties.total_memory == tpu.get_memory_limit() and properties.multi_processor_count == 1 and "XLA:CPU" in properties.name
    assert torch.float64 in torch.accelerator.get_device_capability()["supported_dtypes"]


def test_streams_and_events() -> None:
    stream, start, end = tpu.Stream(), tpu.Event(enable_timing=True), tpu.Event(enable_timing=True)
    with tpu.stream(stream):
        start.record()
        time.sleep(0.02)
        (torch.ones(10, device="tpu") + 1).sum()
        end.record(stream)
    stream.synchronize()
    end.synchronize()
    assert 20 <= start.elapsed_time(end) < 5000 and end.query() and stream.query()
    assert stream == tpu.current_stream() == tpu.default_stream() == torch.accelerator.current_stream() and len({stream, tpu.Stream()}) == 1
    stream.wait_stream(tpu.current_stream())
    stream.wait_event(stream.record_event())
    torch.ones(2, device="tpu").record_stream(stream)
    with pytest.raises(ValueError, match="enable_timing=True"):
        tpu.Event().elapsed_time(end)
    with pytest.raises(RuntimeError, match="must be recorded"):
        tpu.Event(enable_timing=True).elapsed_time(end)
    with pytest.raises(NotImplementedError, match="interprocess"):
        tpu.Event(interprocess=True)


def test_sugar() -> None:
    x = torch.ones(2).tpu()  # type: ignore[attr-defined]
    module = torch.nn.Linear(2, 2).tpu()  # type: ignore[operator]
    assert x.is_tpu and not torch.ones(2).is_tpu and module.weight.is_tpu and module(x).is_tpu  # type: ignore[attr-defined]
    packed = torch.nn.utils.rnn.pack_sequence([torch.ones(2)]).to("tpu")
    assert packed.data.device.type == "tpu"


def test_switches_take_only_what_they_know() -> None:
    for name, good, bad, error in (
        ("cpu_fallback", "error", "never", ValueError),
        ("allow_excess_precision", True, 1, TypeError),
        ("eager_mode", tpu.EagerMode.DEFER_NEVER_AND_LAUNCH_BLOCKING, "strict", TypeError),
    ):
        before = getattr(tpu, name)
        setattr(tpu, name, good)
        try:
            assert getattr(tpu, name) is good or getattr(tpu, name) == good
            assert (torch.ones(2, device="tpu") * 3).tolist() == [3, 3]
            with pytest.raises(error, match="accepted are"):
                setattr(tpu, name, bad)
        finally:
            setattr(tpu, name, before)
    with tpu.precision(tpu.Precision.HIGHEST):
        assert torch.ones(2, 2, device="tpu").mm(torch.ones(2, 2, device="tpu")).sum().item() == 8
    with pytest.raises(TypeError, match=r"Precision\.HIGH"), tpu.precision("high"):
        pass
    with pytest.raises(AttributeError, match=r"it has DeviceProperties, EagerMode"):
        _ = tpu.no_such_name


def test_compiler_options_hold_inside_their_block() -> None:
    from tpu_lab.device import policies

    with (
        tpu.compiler.custom_compiler_options({"xla_optimization_level": "O1"}),
        tpu.compiler.custom_compiler_options({"xla_cpu_enable_fast_math": "false"}),
    ):
        assert policies.for_xla() == {"xla_backend_optimization_level": 1, "xla_cpu_enable_fast_math": False}
        assert torch.ones(3, device="tpu").sinh().sum().item() > 3.5
    assert policies.for_xla() == {}
    with pytest.raises(TypeError, match="dict of str to str"), tpu.compiler.custom_compiler_options({"x": 1}):
        pass


def test_a_blocking_mode_checks_indices_at_once() -> None:
    with tpu.set_eager_mode(tpu.EagerMode.DEFER_NEVER_AND_LAUNCH_BLOCKING), pytest.raises(IndexError):
        torch.ones(3, device="tpu")[torch.tensor([7], device="tpu")]


def test_counters_of_the_program_cache() -> None:
    before = tpu._get_cache_stats()
    for _ in range(3):
        torch.ones(3, 1, 9, 1, device="tpu").cosh()
    after = tpu._get_cache_stats()
    assert after["num_cache_reqs"] - before["num_cache_reqs"] >= 6 and 0 < after["num_compilations"] - before["num_compilations"] <= 2
    assert tpu._get_cache_misses() == after["num_compilations"] and tpu._get_cache_hits() == after["num_cache_hits"] > 0
    assert "live" in tpu._hbm_usage_summary()
    tpu._clear_cache()
    assert tpu._get_cache_stats()["num_programs"] == 0 and torch.ones(3, 1, 9, 1, device="tpu").cosh().sum().item() > 27
