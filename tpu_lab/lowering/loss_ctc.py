"""Connectionist temporal classification (Graves et al., 2006): the forward-backward recursion in log space.

Labels are extended by blanks before, between and after them: [blank, l0, blank, l1, ..., blank], 2 L + 1 states. The recursion is
one `scan` over time for the whole batch; lengths only mask.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from .precision import widened
from .promotion import cast
from .registry import lowering

Lengths = Sequence[int] | Array


@dataclass(frozen=True)
class _Lattice:
    """log_probs [T, N, C]; states [N, S] are the extended labels; skips [N, S] says where a state may be reached from two before."""

    log_probs: Array
    states: Array
    skips: Array
    input_lengths: Array
    target_lengths: Array

    @property
    def emissions(self) -> Array:
        """The log-probability of each state's label, [T, N, S]."""
        index = jnp.broadcast_to(self.states[None], (self.log_probs.shape[0], *self.states.shape))
        return jnp.take_along_axis(self.log_probs, index, axis=2, mode="clip")

    @property
    def inside(self) -> Array:
        """Which states belong to a sequence's own labels, [N, S]."""
        return jnp.arange(self.states.shape[1], dtype=jnp.int32) <= 2 * self.target_lengths[:, None]


def _length_array(lengths: Lengths) -> Array:
    return lengths.astype(jnp.int32) if isinstance(lengths, Array) else jnp.asarray(np.asarray(lengths, np.int32))


def _padded_targets(targets: Array, target_lengths: Lengths) -> Array:
    """Targets [N, L], from that or from all labels one after another (then the lengths have to be known)."""
    if targets.ndim == 2:
        longest = targets.shape[1] if isinstance(target_lengths, Array) else max(target_lengths, default=0)
        return targets[:, :longest].astype(jnp.int32)
    if isinstance(target_lengths, Array):
        raise NotImplementedError("ctc_loss of concatenated targets needs target_lengths as integers; pass a list, or targets of two dimensions")
    lengths = np.asarray(target_lengths, np.int64)
    start = np.cumsum(lengths) - lengths
    position = start[:, None] + np.arange(int(lengths.max(initial=0)))
    return jnp.take(targets, jnp.asarray(position, jnp.int32), mode="clip").astype(jnp.int32)


def _lattice(log_probs: Array, targets: Array, input_lengths: Lengths, target_lengths: Lengths, blank: int) -> _Lattice:
    labels = _padded_targets(targets, target_lengths)
    batch, longest = labels.shape
    blanks = jnp.full((batch, longest + 1), blank, jnp.int32)
    pairs = jnp.stack([blanks[:, :-1], labels], axis=2).reshape(batch, 2 * longest)
    states = jnp.concatenate([pairs, blanks[:, :1]], axis=1)
    before = jnp.pad(states, ((0, 0), (2, 0)), constant_values=blank)[:, : states.shape[1]]
    skips = (states != blank) & (states != before) & (jnp.arange(states.shape[1], dtype=jnp.int32) >= 2)
    return _Lattice(widened(log_probs), states, skips, _length_array(input_lengths), _length_array(target_lengths))


def _shift(x: Array, by: int) -> Array:
    """x [N, S] moved along its states (to the right if `by` > 0), -inf moving in."""
    edge = jnp.full((x.shape[0], min(abs(by), x.shape[1])), -jnp.inf, x.dtype)
    return jnp.concatenate([edge, x[:, :-by]], axis=1) if by > 0 else jnp.concatenate([x[:, -by:], edge], axis=1)


def _log_sum(*terms: Array) -> Array:
    """log of the sum of exponentials; -inf if all are."""
    top = functools.reduce(jnp.maximum, terms)
    safe = jnp.where(jnp.isneginf(top), 0.0, top)
    return jnp.log(sum(jnp.exp(t - safe) for t in terms)) + safe


def _alphas(lattice: _Lattice) -> Array:
    """Log-probability of all beginnings that end in a state at a time, [T, N, S]."""
    emissions = lattice.emissions
    state = jnp.arange(lattice.states.shape[1], dtype=jnp.int32)
    starts = (state < 2) & lattice.inside
    first = jnp.where(starts, emissions[0], -jnp.inf)

    def step(alpha: Array, emission: Array) -> tuple[Array, Array]:
        skipped = jnp.where(lattice.skips, _shift(alpha, 2), -jnp.inf)
        after = _log_sum(alpha, _shift(alpha, 1), skipped) + emission
        after = jnp.where(lattice.inside, after, -jnp.inf)
        return after, after

    _, rest = lax.scan(step, first, emissions[1:])
    return jnp.concatenate([first[None], rest])


def _betas(lattice: _Lattice) -> Array:
    """Log-probability of all endings that begin in a state at a time, [T, N, S]."""
    emissions = lattice.emissions
    state = jnp.arange(lattice.states.shape[1], dtype=jnp.int32)
    last = 2 * lattice.target_lengths[:, None]
    ends = (state == last) | (state == last - 1)
    skips = jnp.pad(lattice.skips, ((0, 0), (0, 2)))[:, 2:]

    def step(beta: Array, at: tuple[Array, Array]) -> tuple[Array, Array]:
        time, emission = at
        skipped = jnp.where(skips, _shift(beta, -2), -jnp.inf)
        before = _log_sum(beta, _shift(beta, -1), skipped)
        is_last = (time == lattice.input_lengths - 1)[:, None]
        before = jnp.where(is_last, jnp.where(ends, 0.0, -jnp.inf), before) + emission
        before = jnp.where(lattice.inside & (time < lattice.input_lengths)[:, None], before, -jnp.inf)
        return before, before

    times = jnp.arange(emissions.shape[0], dtype=jnp.int32)
    nothing = jnp.full(emissions.shape[1:], -jnp.inf, emissions.dtype)
    _, betas = lax.scan(step, nothing, (times, emissions), reverse=True)
    return betas


@lowering("_ctc_loss", "_ctc_loss.Tensor")
def ctc_loss(
    log_probs: Array, targets: Array, input_lengths: Lengths, target_lengths: Lengths, blank: int, zero_infinity: bool
) -> tuple[Array, Array]:
    """log_probs [T, N, C], targets [N, L] or [sum of lengths]: the negative log likelihoods [N] and log alphas [N, T, 2 L + 1]."""
    lattice = _lattice(log_probs, targets, input_lengths, target_lengths, blank)
    alphas = _alphas(lattice)
    rows = jnp.arange(alphas.shape[1], dtype=jnp.int32)
    final = alphas[jnp.maximum(lattice.input_lengths - 1, 0), rows]
    last = 2 * lattice.target_lengths[:, None]
    in_blank = jnp.take_along_axis(final, last, axis=1, mode="clip")[:, 0]
    in_label = jnp.where(last[:, 0] > 0, jnp.take_along_axis(final, jnp.maximum(last - 1, 0), axis=1, mode="clip")[:, 0], -jnp.inf)
    loss = -_log_sum(in_blank, in_label)
    empty = jnp.where(lattice.target_lengths == 0, 0.0, jnp.inf)
    loss = jnp.where(lattice.input_lengths == 0, empty, loss)
    return cast(loss, log_probs.dtype), cast(alphas.swapaxes(0, 1), log_probs.dtype)


@lowering("_ctc_loss_backward", "_ctc_loss_backward.Tensor")
def ctc_loss_backward(
    grad: Array,
    log_probs: Array,
    targets: Array,
    input_lengths: Lengths,
    target_lengths: Lengths,
    neg_log_likelihood: Array,
    log_alpha: Array,
    blank: int,
    zero_infinity: bool,
) -> Array:
    """The gradient of log_probs: exp(log_probs) less the posterior of each class at each time (eq. 16 of the paper)."""
    lattice = _lattice(log_probs, targets, input_lengths, target_lengths, blank)
    alphas = widened(log_alpha).swapaxes(0, 1)
    loss = widened(neg_log_likelihood)[:, None]
    posterior = jnp.exp(alphas + _betas(lattice) + loss - lattice.emissions)
    posterior = jnp.where(lattice.inside & ~jnp.isneginf(lattice.emissions), posterior, 0.0)
    times = jnp.arange(alphas.shape[0], dtype=jnp.int32)[:, None, None]
    rows = jnp.arange(alphas.shape[1], dtype=jnp.int32)[None, :, None]
    by_class = jnp.zeros(lattice.log_probs.shape, posterior.dtype).at[times, rows, lattice.states[None]].add(posterior, mode="drop")
    result = (jnp.exp(lattice.log_probs) - by_class) * widened(grad)[:, None]
    unused = times >= lattice.input_lengths[None, :, None]
    if zero_infinity:
        unused = unused | jnp.isinf(loss)[None]
    return cast(jnp.where(unused, 0.0, result), log_probs.dtype)
