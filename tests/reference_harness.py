"""What test_reference_vs_jax.py stands on: JAX functions are lowered to StableHLO text, parsed by
our parser, run by the reference executor and compared with what XLA's CPU backend computes."""

import ctypes
import os
import pathlib

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import numpy as np
import pytest

jax = pytest.importorskip("jax")
ml_dtypes = pytest.importorskip("ml_dtypes")

from jax.extend import backend

jax.config.update("jax_enable_x64", True)
cpu = jax.devices("cpu")[0]

NUMPY = {
    "i1": np.bool_,
    "i4": ml_dtypes.int4,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "ui4": ml_dtypes.uint4,
    "ui8": np.uint8,
    "ui16": np.uint16,
    "ui32": np.uint32,
    "ui64": np.uint64,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E5M2": ml_dtypes.float8_e5m2,
    "bf16": ml_dtypes.bfloat16,
    "f16": np.float16,
    "f32": np.float32,
    "f64": np.float64,
    "complex<f32>": np.complex64,
    "complex<f64>": np.complex128,
}
SMALL = ["bf16", "f16"]
FLOATS = [*SMALL, "f32", "f64"]
F8 = ["f8E4M3FN", "f8E5M2"]
SIGNED = ["i8", "i16", "i32", "i64"]
UNSIGNED = ["ui8", "ui16", "ui32", "ui64"]
INTS = SIGNED + UNSIGNED
COMPLEX = ["complex<f32>", "complex<f64>"]


QUICK = {"i1", "i4", "i32", "ui8", "bf16", "f32", "complex<f32>"}


def sweep(dtypes):
    """All types, those that add little marked slow."""
    return [d if d in QUICK else pytest.param(d, marks=pytest.mark.slow) for d in dtypes]


def library():
    """The tests' shared library, from the build that TORCHTPU_TEST_BUILD names or a usual one."""
    root = pathlib.Path(__file__).parent.parent
    places = [os.environ.get("TORCHTPU_TEST_BUILD"), root / "build-tests", root / "build"]
    for place in places:
        path = pathlib.Path(place or ".") / "libttrun.so"
        if place and path.exists():
            return ctypes.CDLL(str(path))
    return None


lib = library()
needs_library = pytest.mark.skipif(lib is None, reason="libttrun.so is not built (make test-c)")


def parse_types(text):
    types = []
    for item in filter(None, text.split(";")):
        body = item[len("tensor<") : -1]
        *dims, dtype = body.split("x") if not body.startswith("complex") else [body]
        if "complex" in body:
            head, _, tail = body.partition("complex")
            dims, dtype = head.split("x")[:-1], "complex" + tail
        types.append((tuple(int(d) for d in dims), NUMPY[dtype]))
    return types


class Program:
    """A parsed program. Arguments and results are NumPy arrays."""

    def __init__(self, text):
        data, self.handle, error = (
            text.encode(),
            ctypes.c_void_p(),
            ctypes.create_string_buffer(2000),
        )
        size = ctypes.c_size_t(len(data))
        if not lib.tt_run_parse(
            data, size, ctypes.byref(self.handle), error, ctypes.c_size_t(2000)
        ):
            raise RuntimeError(error.value.decode())
        signature = ctypes.create_string_buffer(1 << 16)
        assert lib.tt_run_signature(self.handle, signature, ctypes.c_size_t(1 << 16))
        ins, outs = signature.value.decode().split("|")
        self.inputs, self.outputs = parse_types(ins), parse_types(outs)

    def __call__(self, *devices):
        """One list of arrays a device; returns one list of arrays a device."""
        count = len(devices)
        results = [[np.zeros(s, d) for s, d in self.outputs] for _ in devices]
        keep = []
        for arrays in devices:
            row = []
            for array, (shape, dtype) in zip(arrays, self.inputs, strict=True):
                array = np.array(array, order="C")
                assert array.shape == shape and array.dtype == dtype, (array.shape, array.dtype)
                row.append(array)
            keep.append(row)
        error = ctypes.create_string_buffer(2000)
        ok = lib.tt_run_execute(
            self.handle,
            ctypes.c_uint32(count),
            pointers(keep),
            pointers(results),
            error,
            ctypes.c_size_t(2000),
        )
        if not ok:
            raise RuntimeError(error.value.decode())
        return results

    def __del__(self):
        if getattr(self, "handle", None):
            lib.tt_run_destroy(self.handle)


def pointers(rows):
    tables = []
    for row in rows:
        table = (ctypes.c_void_p * (len(row) + 1))(*[a.ctypes.data for a in row])
        tables.append(table)
    outer = (ctypes.c_void_p * len(tables))(*[ctypes.addressof(t) for t in tables])
    outer.keep = (tables, rows)
    return outer


def wide(array):
    kind = np.asarray(array).dtype
    if kind.kind == "c":
        return np.asarray(array, np.complex128)
    return np.asarray(array, np.float64)


def check(ours, theirs, ulps, atol=0.0):
    """Equal where exact; else within `ulps` of the type's precision, at the largest magnitude that
    `atol` scales."""
    theirs = np.asarray(theirs)
    assert ours.shape == theirs.shape and ours.dtype == theirs.dtype, (ours.dtype, theirs.dtype)
    if ours.dtype.kind in "biu" or ours.dtype in (ml_dtypes.int4, ml_dtypes.uint4):
        np.testing.assert_array_equal(
            ours.astype(np.int64 if ours.dtype != np.uint64 else np.uint64),
            theirs.astype(np.int64 if ours.dtype != np.uint64 else np.uint64),
        )
        return
    real = ours.real.dtype
    info = ml_dtypes.finfo(real)
    # XLA's CPU backend flushes denormals.
    np.testing.assert_allclose(
        wide(ours), wide(theirs), rtol=ulps * float(info.eps), atol=max(atol, float(info.tiny))
    )


def lower(fn, args, platform="cpu"):
    return jax.jit(fn).trace(*args).lower(lowering_platforms=(platform,)).as_text()


def compare(fn, args, ulps=0, atol=0.0, platform="cpu"):
    args = [np.asarray(a) for a in args]
    program = Program(lower(fn, args, platform))
    used = args
    if len(program.inputs) != len(args):  # JAX drops unused arguments
        pytest.skip("an argument is unused")
    (ours,) = program(used)
    with jax.default_device(cpu):
        theirs = jax.tree.leaves(jax.jit(fn)(*args))
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        check(a, np.asarray(b), ulps, atol)


def compare_text(text, args, ulps=0, atol=0.0):
    """A program given as StableHLO text, compiled by XLA as it is."""
    args = [np.asarray(a) for a in args]
    (ours,) = Program(text)(args)
    client = backend.get_backend("cpu")
    executable = client.compile_and_load(text, [cpu], jax._src.compiler.get_compile_options(1, 1))
    buffers = [jax.device_put(a, cpu) for a in args]
    theirs = executable.execute(buffers)
    for a, b in zip(ours, theirs, strict=True):
        check(a, np.asarray(b), ulps, atol)


def rng(*key):
    return np.random.default_rng(list(str(key).encode()))


def values(dtype, shape, seed="", low=None, high=None):
    r, t = rng(dtype, shape, seed), NUMPY[dtype]
    if dtype == "i1":
        return r.integers(0, 2, shape).astype(np.bool_)
    if dtype in COMPLEX:
        return (r.normal(size=shape) + 1j * r.normal(size=shape)).astype(t)
    if dtype in INTS or dtype in ("i4", "ui4"):
        info = ml_dtypes.iinfo(t)
        low = int(info.min) if low is None else low
        high = int(info.max) if high is None else high
        kind = np.uint64 if dtype == "ui64" else np.int64
        return r.integers(low, high, shape, dtype=kind, endpoint=True).astype(t)
    if low is not None:
        return r.uniform(low, high, shape).astype(t)
    return (r.normal(size=shape) * 2).astype(t)
