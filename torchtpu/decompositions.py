"""Decompositions for ops without a lowering, found when such an op is first met: PyTorch's own,
behind those of :mod:`torchtpu.composed`.

The native fallback calls :func:`install` once an op. A decomposition is registered under a dispatch
key that nothing else uses; the fallback calls it there, and its inner ops run on the device.
"""

import torch

# Kernels that exist only to be called by the native fallback.
_KEY = "PrivateUse3"
_library = None
_table = None
_own: dict = {}

# Decompositions that read values back or loop in Python where the CPU's kernel is one call.
_ON_CPU = {
    "aten::_unique2",
    "aten::unique_dim",
    "aten::unique_consecutive",
}


def _load_table() -> dict:
    global _table
    if _table is None:
        import torch._decomp
        import torch._decomp.decompositions
        import torch._refs

        from torchtpu import (
            composed,
            composed_attention,  # noqa: F401
            composed_math,  # noqa: F401
            composed_quantized,  # noqa: F401
            composed_segments,  # noqa: F401
        )

        _own.update(composed.TABLE)
        _table = {**torch._decomp.decomposition_table, **_own}
    return _table


def _overload(name: str, overload: str):
    packet = getattr(torch.ops.aten, name, None)
    overload = overload or "default"
    return getattr(packet, overload, None) if packet is not None else None


def _find_functional(name: str, overload: str):
    """An in-place or out= overload by its functional form's decomposition."""
    table = _load_table()
    if name.endswith("_") and not name.endswith("__"):
        functional = _overload(name[:-1], overload)
        fn = table.get(functional)
        return fn and _into_self(fn)
    if overload == "out" or overload.endswith("_out"):
        for candidate in (overload.removesuffix("out").removesuffix("_"), "Tensor", ""):
            fn = table.get(_overload(name, candidate))
            if fn is not None:
                return _into_out(fn, _overload(name, overload))
    return None


def _into_self(fn):
    def run(self, *args, **kwargs):
        self.copy_(fn(self, *args, **kwargs))
        return self

    return run


def _into_out(fn, form):
    named = [argument.name for argument in form._schema.arguments if argument.is_out]

    def run(*args, **kwargs):
        outs = [kwargs.pop(name) for name in named if name in kwargs]
        results = fn(*args, **kwargs)
        if isinstance(results, torch.Tensor):
            results = (results,)
        if len(outs) != len(results):
            raise NotImplementedError("this out= form has no decomposition")
        for out, result in zip(outs, results):
            if out.shape != result.shape:
                out.resize_(result.shape)
            out.copy_(result)
        return outs[0] if len(outs) == 1 else tuple(outs)

    return run


def find(qualified: str):
    """The decomposition of "aten::name.overload", or None."""
    if not qualified.startswith("aten::"):
        return None
    name, _, overload = qualified.removeprefix("aten::").partition(".")
    if f"aten::{name}" in _ON_CPU:
        return None
    table, op = _load_table(), _overload(name, overload)
    if op in _own:
        return _own[op]
    if overload == "out" or overload.endswith("_out") or name.endswith("_"):
        fn = _find_functional(name, overload)
        if fn is not None:
            return fn
    return table.get(op)


def install(qualified: str) -> bool:
    """Registers the decomposition of one op for the native fallback; False where there is none."""
    global _library
    fn = find(qualified)
    if fn is None:
        return False
    if _library is None:
        _library = torch.library.Library("aten", "IMPL")
    _library.impl(qualified.removeprefix("aten::"), fn, _KEY)
    return True
