"""The device changes nothing for the user's own code: no option of jax or torch, no import before it is needed."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import torch

import tpu_lab  # noqa: F401  registers the device

from .processes import run


def test_jax_stays_as_it_was() -> None:
    x = torch.ones(3, dtype=torch.float64, device="tpu")
    (x.long() * 2**40).sum().item()
    torch.compile(lambda t: t * 2, backend="tpu")(x)
    assert jnp.arange(3).dtype == jnp.int32 and jnp.asarray([1.5]).dtype == jnp.float32
    assert jax.jit(lambda v: v * 2)(1.5).dtype == jnp.float32
    assert not jax.config.jax_enable_x64 and jax.config.jax_default_matmul_precision is None


def test_torch_stays_as_it_was() -> None:
    code = """
        import os
        import torch
        options = lambda: (torch.get_default_dtype(), torch.get_default_device(), torch.is_grad_enabled(), torch.get_num_threads(),
            torch.__future__.get_swap_module_params_on_conversion(), torch.__future__.get_overwrite_module_params_on_conversion(),
            torch.are_deterministic_algorithms_enabled(), torch.get_float32_matmul_precision(), torch.is_inference_mode_enabled(),
            torch.backends.cpu.get_cpu_capability(), torch.get_rng_state().sum().item())
        torch.manual_seed(0)
        before = options()
        import tpu_lab
        x = torch.nn.Linear(3, 3).to("tpu")(torch.ones(2, 3, device="tpu"))
        x.sum().backward(); torch.rand(3, device="tpu"); x.cpu()
        torch.manual_seed(0)
        assert options() == before, (before, options())
        print("same")
    """
    assert run(code, TORCH_DEVICE_BACKEND_AUTOLOAD="0") == "same"


def test_inductor_on_the_cpu_is_not_ours() -> None:
    from torch._dynamo.device_interface import get_interface_for_device

    assert get_interface_for_device("cpu").__name__ == "CpuInterface"
    compiled = torch.compile(lambda t: t.sin() + 1, backend="aot_eager")
    torch.testing.assert_close(compiled(torch.ones(3)), torch.ones(3).sin() + 1)


def test_jax_is_imported_at_the_first_use_only() -> None:
    code = """
        import sys
        import torch, tpu_lab
        torch.manual_seed(1); torch.tpu.memory_allocated(); torch.tpu.get_rng_state(); torch.tpu.synchronize(); torch.tpu.is_available()
        torch.accelerator.memory_stats(); torch.accelerator.synchronize(); torch.Generator(device="tpu").manual_seed(3); torch.tpu.empty_cache()
        torch.tpu.get_device_properties(); torch.tpu.Event(); torch.nn.Linear(2, 2).half(); torch.device("tpu"); torch.tpu.eager_mode
        torch.tpu.set_memory_limit(10**9); torch.tpu.memory_summary(); torch.tpu.is_initialized(); torch.accelerator.current_accelerator()
        print([m for m in ("jax", "jaxlib", "torch._dynamo") if m in sys.modules])
        torch.ones(1, device="tpu")
        print("jax" in sys.modules)
    """
    assert run(code).splitlines() == ["[]", "True"]
