"""Complex tensors: conjugate and negative views are lazy, and every copy between them says the truth."""

from __future__ import annotations

from typing import Any

import torch

from .against_cpu import assert_agree


def test_conjugate_views_are_lazy_and_compute() -> None:
    def compute(device: str) -> Any:
        a = torch.tensor([1 + 2j, 3 - 4j, 0j], device=device)
        b = a.conj()
        bits = [b.is_conj(), b.imag.is_neg(), b.clone().is_conj(), b.resolve_conj().is_conj(), a.real.is_neg(), b.data_ptr() == a.data_ptr()]
        return bits, [a * b, b + 1, b.imag, b.imag.clone(), b.imag * 2, b.contiguous(), a == b, b.sum(), a @ b, b.tolist(), b.T, b[1:], b.view(3, 1)]

    assert_agree(compute)


def test_writes_through_a_conjugate_view() -> None:
    def write(device: str) -> Any:
        a = torch.tensor([1 + 2j, 3 - 4j], device=device)
        b = a.conj()
        b.add_(1j)
        b.mul_(torch.tensor([2j, 1], device=device))
        b[0] = 5j
        b.conj_physical_()
        torch.add(b, 1, out=b)
        b.imag.mul_(3)
        return a, b, a.conj_physical()

    assert_agree(write)


def test_copies_between_conjugate_views() -> None:
    def copy(device: str) -> Any:
        a = torch.tensor([1 + 2j, 3 - 4j], device=device)
        targets = [torch.zeros(2, dtype=torch.complex64, device=device) for _ in range(4)]
        targets[0].copy_(a.conj())
        targets[1].conj().copy_(a)
        targets[2].conj().copy_(a.conj())
        real = torch.zeros(2, device=device)
        real.copy_(a.conj().imag)
        targets[3].conj().imag.copy_(real)
        targets[3].conj().imag.add_(1)
        wide = torch.zeros(2, dtype=torch.complex128, device=device)
        wide.copy_(a.conj())
        return targets, real, wide

    assert_agree(copy)


def test_conjugate_and_negative_views_across_devices() -> None:
    host = torch.tensor([1 + 2j, 3 - 4j])
    device = host.to("tpu")
    conjugate, negative = host.conj().resolve_conj(), host.conj().imag.resolve_neg()

    there, back = torch.zeros(2, dtype=torch.complex64, device="tpu"), torch.zeros(2, dtype=torch.complex64)
    assert torch.equal(there.copy_(host.conj()).cpu(), conjugate)
    assert torch.equal(back.copy_(device.conj()), conjugate)
    there.conj().copy_(host)
    back.conj().copy_(device)
    assert torch.equal(there.cpu(), conjugate) and torch.equal(back, conjugate)
    assert torch.equal(device.conj().cpu(), conjugate) and torch.equal(host.conj().to("tpu").cpu(), conjugate)
    assert torch.equal(torch.zeros(2).copy_(device.conj().imag), negative)
    assert torch.equal(torch.zeros(2, device="tpu").copy_(host.conj().imag).cpu(), negative)
    assert device.conj().tolist() == conjugate.tolist() and device.conj()[0].item() == conjugate[0].item()


def test_real_views_and_complex_views() -> None:
    def show(device: str) -> Any:
        a = torch.tensor([1 + 2j, 3 - 1j], device=device)
        pairs = torch.view_as_real(a)
        pairs.mul_(2)
        a.real.add_(1)
        a.imag[0] = 9
        made = torch.complex(torch.ones(2, device=device), torch.arange(2.0, device=device)), torch.polar(a.abs(), a.angle())
        return a, pairs, torch.view_as_complex(pairs), made, a.is_complex(), pairs._base is not None

    assert_agree(show)


def test_arithmetic_and_products() -> None:
    def compute(device: str) -> Any:
        a = torch.tensor([[1 + 2j, 3 - 4j], [0.5j, -2]], device=device)
        return [a.abs(), a.angle(), a.exp(), a.reciprocal(), a.pow(2), a @ a.conj().T, a.mH @ a, a.adjoint(), a.mean(), a.prod(), a.sgn()]

    assert_agree(compute, rtol=1e-5, atol=1e-6)


def test_gradients_of_complex_functions() -> None:
    def differentiate(device: str) -> Any:
        x = torch.tensor([1 + 1j, 2.0], device=device, requires_grad=True)
        (x.abs() ** 2 + (x * x.conj()).real + x.angle()).sum().backward()
        return x.grad

    assert_agree(differentiate, rtol=1e-5, atol=1e-6)


def test_a_program_for_plain_tensors_is_not_taken_for_their_conjugates() -> None:
    """The kernels that see a pending conjugation or sign, each called on a plain tensor of the same geometry before."""

    def compute(device: str) -> Any:
        a = torch.tensor([[1 + 2j, 3 - 4j], [5j, 1]], device=device)
        found = []
        for b in (a, a.conj(), a, a.conj()):
            v = b.reshape(-1)
            found += [b.clone(), b @ a, a @ b, b @ b, torch.addmm(a, b, a), torch.addmm(b, a, a), torch.dot(v, a.reshape(-1)), b.repeat_interleave(2)]
            found += [torch.bmm(b[None], a[None]), torch.baddbmm(a[None], a[None], b[None]), torch.empty_like(a).copy_(b), torch.vdot(v, v)]
        for c in (a.imag, a.conj().imag, a.imag, a.conj().imag):
            found += [c.clone(), c.repeat_interleave(2), torch.zeros(2, 2, device=device).copy_(c), c.neg()]
        return found

    assert_agree(compute)
