"""Programs compiled by libtpu for TPUs that are not there."""

import json
import os
import subprocess

import pjrt_builds
import pytest

AOT = pjrt_builds.built("tt_aot")
pytestmark = [
    pytest.mark.skipif(pjrt_builds.LIBTPU is None, reason="libtpu is not installed"),
    pytest.mark.skipif(AOT is None, reason="tt_aot is not built (TORCHTPU_TEST_BUILD)"),
]

MATMUL = """
func.func @main(%arg0: tensor<256x128xbf16>, %arg1: tensor<128x512xbf16>) -> tensor<256x512xbf16> {
  %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0]
    : (tensor<256x128xbf16>, tensor<128x512xbf16>) -> tensor<256x512xbf16>
  %1 = stablehlo.tanh %0 : tensor<256x512xbf16>
  return %1 : tensor<256x512xbf16>
}
"""
IN_PLACE = """
func.func @main(%arg0: tensor<1024xf32> {tf.aliasing_output = 0 : i32}, %arg1: tensor<f32>)
    -> tensor<1024xf32> {
  %0 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<f32>) -> tensor<1024xf32>
  %1 = stablehlo.add %arg0, %0 : tensor<1024xf32>
  return %1 : tensor<1024xf32>
}
"""
TOO_BIG = """
func.func @main() -> tensor<f32> {
  %0 = stablehlo.iota dim = 0 : tensor<65536x1048576xf32>
  %1 = "stablehlo.sort"(%0) <{dimension = 1 : i64}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %3 = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %3 : tensor<i1>
  }) : (tensor<65536x1048576xf32>) -> tensor<65536x1048576xf32>
  %2 = stablehlo.slice %1 [0:1, 0:1] : (tensor<65536x1048576xf32>) -> tensor<1x1xf32>
  %4 = stablehlo.reshape %2 : (tensor<1x1xf32>) -> tensor<f32>
  return %4 : tensor<f32>
}
"""
UNBOUNDED = "func.func @main(%a: tensor<?xf32>) -> tensor<?xf32> { return %a : tensor<?xf32> }"
ALL_REDUCE = """
func.func @main(%arg0: tensor<1024xf32>) -> tensor<1024xf32> {
  %0 = "stablehlo.all_reduce"(%arg0) <{replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<1024xf32>) -> tensor<1024xf32>
  return %0 : tensor<1024xf32>
}
"""


def compile_for(topology, program, *arguments):
    run = subprocess.run(
        [AOT, "--topology", topology, *arguments, "-"],
        input=program,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, "TPU_LIBRARY_PATH": str(pjrt_builds.LIBTPU)},
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


@pytest.mark.parametrize(
    ("topology", "kind"),
    [
        ("v4:1x1x1", "TPU v4"),
        ("v5e:1x1", "TPU v5 lite"),
        ("v5p:1x1x1", "TPU v5"),
        ("v6e:1x1", "TPU v6 lite"),
        ("tpu7x:1x1x1", "TPU7x"),
    ],
)
def test_generations(topology, kind):
    report = compile_for(topology, MATMUL, "--level", "9")
    assert report["accepted"], report
    assert report["kind"] == kind
    assert report["memory"]["argument"] == 2 * (256 * 128 + 128 * 512)
    assert report["memory"]["output"] == 2 * 256 * 512
    assert report["memory"]["code"] > 0
    assert report["flops"] >= 2 * 256 * 128 * 512
    assert report["estimated_cycles"] > 0
    assert len(report["fingerprint"]) == 64


def test_donation_saves_memory():
    report = compile_for("v5e:1x1", IN_PLACE)
    assert report["memory"]["alias"] == 4096


def test_collective_on_four_chips():
    report = compile_for("v5e:2x2", ALL_REDUCE, "--replicas", "4")
    assert report["accepted"], report
    assert report["devices"] == 4


def test_too_big_is_an_error():
    report = compile_for("v5e:1x1", TOO_BIG, "--level", "9")
    assert not report["accepted"]
    assert report["error"]["code"] == "OUT_OF_MEMORY", report


def test_abort_is_an_error():
    report = compile_for("v5e:1x1", UNBOUNDED)
    assert not report["accepted"]
    assert report["error"]["code"] == "ABORTED"
    assert "Check failed" in report["error"]["message"]


def test_bad_text_and_bad_topology():
    report = compile_for("v5e:1x1", "func.func @main() { nonsense }")
    assert not report["accepted"]
    assert ":1:" in report["error"]["message"]
    report = compile_for("v99:1x1", MATMUL)
    assert report["error"]["code"] == "INVALID_ARGUMENT"
    assert "v99" in report["error"]["message"]


def test_unknown_option():
    report = compile_for("v5e:1x1", MATMUL, "--option", "xla_no_such_flag=1")
    assert "xla_no_such_flag" in report["error"]["message"]


def test_deadline():
    report = compile_for("v5e:1x1", MATMUL, "--timeout", "0.01")
    assert report["error"]["code"] == "DEADLINE"
