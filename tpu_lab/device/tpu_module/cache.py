"""What tools poll: figures of the program cache, under the private names TorchTPU has."""

from __future__ import annotations

from typing import Any


def _get_cache_stats() -> dict[str, Any]:
    """Requests, hits and compilations of the program cache so far."""
    from .. import registration

    registration.load()
    from .. import program_cache

    held, nbytes, evicted = program_cache.counts()
    runs, compilations = program_cache.runs(), program_cache.compilations
    return {
        "num_cache_reqs": runs,
        "num_cache_hits": max(runs - compilations, 0),
        "num_compilations": compilations,
        "peak_compilation_host_memory_bytes": 0,
        "num_programs": held,
        "program_bytes": nbytes,
        "num_evicted": evicted,
        "per_entry_stats": [],
    }


def _get_cache_requests() -> int:
    return int(_get_cache_stats()["num_cache_reqs"])


def _get_cache_hits() -> int:
    return int(_get_cache_stats()["num_cache_hits"])


def _get_cache_misses() -> int:
    return int(_get_cache_stats()["num_compilations"])


def _clear_cache() -> None:
    """Drops every compiled program."""
    from .. import registration

    if registration._loaded:
        from .. import program_cache

        program_cache.clear()


def _hbm_usage_summary() -> str:
    """Memory figures as text."""
    from .memory import memory_summary

    return memory_summary()
