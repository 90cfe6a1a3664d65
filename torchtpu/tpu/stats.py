"""What the engine did: programs compiled, cache hits, ops that ran on the CPU instead."""

from torchtpu import _C

_POLICIES = ("warn", "error", "silent")


def fallback_stats(reset: bool = False) -> dict[str, int]:
    """{op: calls} of every op that ran on the CPU for want of a lowering."""
    counts = _C.fallback_counts()
    if reset:
        _C.fallback_reset()
    return counts


def set_fallback(policy: str) -> None:
    """One of "warn" (once an op, the default), "error", "silent"; see TORCHTPU_FALLBACK."""
    if policy not in _POLICIES:
        raise ValueError(f"fallback policy must be one of {_POLICIES}, not {policy!r}")
    _C.fallback_set_policy(_POLICIES.index(policy))


def cache_stats() -> dict[str, int]:
    return _C.stats()
