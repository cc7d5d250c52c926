"""The private names of torch: each does what `tpu_lab.device._torch_internals` takes it for. A torch upgrade that breaks one fails here by name."""

from __future__ import annotations

import copy
import logging
import types
from pathlib import Path
from typing import Any

import pytest
import torch

import tpu_lab  # noqa: F401  (names the device)
from tpu_lab.device import _torch_internals as internals

aten = torch.ops.aten


def test_every_name_is_exercised_here() -> None:
    text = Path(__file__).read_text()
    foreign = {"Any", "Callable", "Sequence", "TypeVar", "AbstractContextManager", "annotations", "wrappers", "backend_registration"}
    names = {n for n, v in vars(internals).items() if not n.startswith("_") and n not in foreign and not isinstance(v, types.ModuleType)}
    assert {name for name in names if f"internals.{name}" not in text} == set()


def test_dispatch_keys() -> None:
    for name, keys in {"Meta": internals.META, "CPU": internals.CPU, "AutocastPrivateUse1": internals.AUTOCAST}.items():
        assert keys.has(getattr(internals.DispatchKey, name))
    assert isinstance(internals.CPU, internals.DispatchKeySet)


def test_hooks_guard_and_device_module_are_taken_by_enter_device() -> None:
    assert issubclass(type(internals.Hooks()), internals.Hooks) and hasattr(internals.Guard, "type_")
    assert torch.device("tpu:0").type == "tpu" and torch.tensor(1, device="tpu").device.index == 0  # what internals.enter_device did
    assert str(internals.DEVICE_TYPE) == "DeviceType.TPU"
    with pytest.raises(RuntimeError, match="already"):
        internals.register_module("tpu", torch.cuda)


def test_after_backward() -> None:
    seen: list[str] = []
    x = torch.ones(1, requires_grad=True)
    y = x * 2
    y.register_hook(lambda gradient: internals.after_backward(lambda: seen.append("end")))
    x.register_hook(lambda gradient: seen.append("x"))
    y.backward()
    assert seen == ["x", "end"]


def test_create_empty_tensor_says_no_bytes() -> None:
    made = internals.create_empty_tensor((2, 3), torch.float16)
    assert made.device == torch.device("tpu:0") and made.shape == (2, 3) and made.dtype == torch.float16
    assert torch.UntypedStorage.nbytes(made.untyped_storage()) == 0


def test_fake_tensors_have_no_values() -> None:
    with internals.fake_mode():
        x = torch.ones(3, device="tpu")
        assert internals.is_fake(x) and x.device == torch.device("tpu:0")
        for ask in (lambda: x.sum().item(), lambda: x.nonzero()):
            with pytest.raises(internals.needs_values()):
                ask()
    assert not internals.is_fake(torch.ones(3))


def test_generator_is_the_c_class() -> None:
    assert type(torch.default_generator) is internals.Generator


def test_views_of_conjugates_and_negatives() -> None:
    z = torch.tensor([1 + 2j])
    assert internals.conjugate_view(z).is_conj() and internals.conjugate_view(z).data_ptr() == z.data_ptr()
    assert internals.negative_view(torch.ones(1)).is_neg()


def test_resize_out_gives_the_size_and_warns() -> None:
    target = torch.ones(2)
    with pytest.warns(UserWarning, match="An output with one or more elements was resized"):
        internals.resize_out(target, (3,))
    assert target.shape == (3,)


def test_library_registers() -> None:
    assert internals.library("aten").ns == "aten"


def test_without_autocast() -> None:
    x = torch.ones(2, 2, device="tpu")
    with torch.autocast("tpu", dtype=torch.bfloat16):
        assert (x @ x).dtype == torch.bfloat16
        with internals.without_autocast():
            assert (x @ x).dtype == torch.float32


def test_call_composite() -> None:
    assert internals.call_composite(aten.zeros_like.default)(torch.ones(2)).tolist() == [0, 0]


def test_swap_contents() -> None:
    one, other = torch.zeros(1), torch.ones(2)
    assert internals.swap_contents(one, other) and one.tolist() == [1, 1] and other.tolist() == [0]
    held = torch.nn.Parameter(torch.ones(1, 1))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        torch.mm(held, held)  # autocast's cache refers to it weakly
        assert not internals.swap_contents(held, torch.zeros(1)) and held.item() == 1


def test_storage_key() -> None:
    x = torch.ones(4)
    assert internals.storage_key(x[1:].untyped_storage()) == internals.storage_key(x.untyped_storage())
    assert internals.storage_key(copy.copy(x).clone().untyped_storage()) != internals.storage_key(x.untyped_storage())


def test_meta_kernels_and_decompositions_load() -> None:
    internals.load_meta_kernels()
    table = internals.decompositions()
    assert table[aten.addcmul.default] is not None and all(isinstance(op, internals.OpOverload) for op in list(table)[:20])
    assert isinstance(torch.ops.higher_order.cond, internals.HigherOrderOperator)


def test_point_at_grows_a_storage() -> None:
    made = internals.create_empty_tensor((4,), torch.float32)
    internals.point_at(made, made.untyped_storage(), 1, (2, 2), (2, 1))
    assert made.shape == (2, 2) and made.storage_offset() == 1
    assert torch.UntypedStorage.nbytes(made.untyped_storage()) >= 20


def test_cpu_view_kernel() -> None:
    x = torch.arange(6)
    seen = internals.cpu_view_kernel("as_strided")(internals.CPU, x, (2,), (3,), 1)
    assert seen.tolist() == [1, 4] and internals.storage_key(seen.untyped_storage()) == internals.storage_key(x.untyped_storage())


def test_is_python_number() -> None:
    for own in (torch.tensor(2), torch.tensor(2.5), torch.tensor(True), torch.tensor(2.5, dtype=torch.float64), torch.tensor(2, dtype=torch.uint8)):
        assert not internals.is_python_number(own)

    number: Any = torch.mul(torch.ones(1, requires_grad=True), 2.5).grad_fn
    assert internals.is_python_number(number._saved_other) and number._saved_other.item() == 2.5


def test_questions_to_the_dispatcher() -> None:
    assert internals.has_backend_kernel("aten::add.Tensor", "CPU") and not internals.has_backend_kernel("aten::zeros_like", "CPU")
    assert internals.is_dispatched("aten::add.Tensor") and not internals.is_dispatched("aten::add.int")


def test_torch_dispatch_mode_sees_operators() -> None:
    seen: list[str] = []

    class Look(internals.TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    with Look():
        assert (torch.ones(1, device="tpu") * 2).device.type == "tpu"
    assert seen == ["aten.ones.default", "aten.mul.Tensor"]


def test_pytree() -> None:
    assert internals.pytree.tree_map(lambda v: v + 1, {"a": [1, (2,)]}) == {"a": [2, (3,)]}
    assert internals.pytree.tree_leaves({"a": [1, (2,)]}) == [1, 2]


def test_default_device_modes() -> None:
    assert torch.ones in internals.factories() and torch.add not in internals.factories()
    with torch.device("meta"):
        assert isinstance(internals.function_modes()[0], internals.DeviceContext)
    assert not any(isinstance(mode, internals.DeviceContext) for mode in internals.function_modes())


def test_autograd_s_numbers() -> None:
    x = torch.ones(1, requires_grad=True)
    before = internals.sequence_number()
    y = x * 2
    assert internals.sequence_number() == before + 1
    assert internals.autograd_node() is None and internals.graph_task() == -1
    seen: list[tuple[str, int]] = []

    class Look(torch.autograd.Function):
        @staticmethod
        def forward(context: Any, value: torch.Tensor) -> torch.Tensor:
            return value.clone()

        @staticmethod
        def backward(context: Any, *grads: Any) -> Any:
            seen.append((internals.autograd_node().name(), internals.graph_task()))
            return grads[0]

    Look.apply(y).backward()  # type: ignore[no-untyped-call]
    assert seen[0][0] == "LookBackward" and seen[0][1] >= 0


def test_recompile_limit() -> None:
    assert internals.dynamo_is_loaded()
    assert internals.recompile_limit() == torch._dynamo.config.recompile_limit > 1
    internals.drop_dynamo_claims()


def test_tolerate_compile_errors() -> None:
    def fails(graph: Any, inputs: Any) -> Any:
        raise ValueError("no")

    compiled = torch.compile(lambda x: x + 1, backend=fails)
    with internals.tolerate_compile_errors():
        assert compiled(torch.ones(1)).item() == 2
    torch.compiler.reset()
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed):
        compiled(torch.ones(1))


@pytest.mark.parametrize(("kind", "state"), [(torch.optim.AdamW, {"step", "exp_avg", "exp_avg_sq"}), (torch.optim.Adagrad, {"step", "sum"})])
def test_an_optimizer_makes_its_state(kind: Any, state: set[str]) -> None:
    parameter = torch.nn.Parameter(torch.ones(3))
    parameter.grad = torch.ones(3)
    optimizer = kind([parameter], lr=0.1)
    internals.make_state(optimizer)
    assert set(optimizer.state[parameter]) == state and torch.equal(parameter, torch.ones(3))


def test_operator_names() -> None:
    names = internals.operator_names("aten")
    assert "aten::add.Tensor" in names and all(name.startswith("aten::") for name in names)


def test_dynamo_leaves_out_what_is_never_traced() -> None:
    seen: list[Any] = []

    def triple(value: torch.Tensor) -> torch.Tensor:
        return value * 3

    def backend(graph: Any, inputs: Any) -> Any:
        seen.append(graph)
        return graph

    assert torch.compile(triple, backend=backend)(torch.ones(1)).item() == 3 and len(seen) == 1
    torch.compiler.reset()
    hidden = internals.never_traced(lambda value: triple(value) + 1)
    assert torch.compile(hidden, backend=backend)(torch.ones(1)).item() == 4 and len(seen) == 1
    torch.compiler.reset()


def test_a_compile_has_an_id_and_a_backend_a_name() -> None:
    ids: list[str] = []

    def backend(graph: Any, inputs: Any) -> Any:
        ids.append(internals.compile_id())
        return graph

    torch.compile(lambda x: x + 1, backend=backend)(torch.ones(1))
    torch.compiler.reset()
    assert len(ids) == 1 and "/" in ids[0] and internals.compile_id() == "None"
    assert internals.compile_backend("eager").__name__ == "eager"
    assert isinstance(internals.inductor_wrapper()("default", None, None), internals.inductor_wrapper())


def test_records_of_the_structured_trace() -> None:
    told: list[Any] = []
    handler = logging.Handler()
    handler.emit = lambda record: told.append((record.metadata, record.payload))  # type: ignore[attr-defined,method-assign]
    log = logging.getLogger("torch.__trace")
    log.addHandler(handler)
    try:
        internals.trace_structured("artifact", metadata_fn=lambda: {"name": "n"}, payload_fn=lambda: "text", expect_trace_id=False)
    finally:
        log.removeHandler(handler)
    assert told[0][0]["artifact"] == {"name": "n"} and told[0][1] == "text"
