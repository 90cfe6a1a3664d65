"""A written model of what collectives cost on 8 to 8,192 chips, and what that makes of a training
step. docs/scale.md has the formulas, what is assumed and what is left out; nothing is measured.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from torchtpu.chips import Chip

HOP_SECONDS = 1e-6  # one link, assumed
DCN_SECONDS = 20e-6  # one message between slices, assumed


@dataclass(frozen=True)
class Axis:
    """One axis of a slice: a ring where it wraps around, else a line."""

    size: int
    wraps: bool

    def bandwidth(self, chip: Chip) -> float:
        """Bytes a second at which a chip takes part in a collective along the axis.

        A ring uses both directions at once; at a line's end everything comes over one link.
        """
        if self.size == 1:
            return 0.0
        return chip.link_bandwidth * (2 if self.wraps else 1)

    @property
    def hops(self) -> int:
        return self.size // 2 if self.wraps else self.size - 1


@dataclass(frozen=True)
class Mesh:
    """`slices` equal slices; chips of one reach each other over links, slices over the network."""

    chip: Chip
    axes: tuple[Axis, ...]
    slices: int

    @property
    def slice_chips(self) -> int:
        return math.prod(axis.size for axis in self.axes)

    @property
    def chips(self) -> int:
        return self.slice_chips * self.slices

    def __str__(self) -> str:
        shape = "x".join(str(axis.size) for axis in self.axes)
        return f"{self.slices} x {shape}" if self.slices > 1 else shape


def mesh(chip: Chip, chips: int) -> Mesh:
    """The most even slice of `chips` chips, a power of two; several where a pod is too small."""
    if chips < 1 or chips & (chips - 1):
        raise ValueError(f"the number of chips must be a power of two, not {chips}")
    largest = 1 << (chip.pod.bit_length() - 1)
    slices = max(1, chips // largest)
    doublings = (chips // slices).bit_length() - 1
    sizes = [1 << ((doublings + i) // chip.axes) for i in range(chip.axes)]
    axes = tuple(Axis(n, n > 1 and n % chip.whole_axis == 0) for n in sizes)
    return Mesh(chip, axes, slices)


def all_gather(where: Mesh, size: float) -> float:
    """Seconds until every chip has all `size` bytes, of which each held an equal part.

    Also the time of a reduce-scatter. Within a slice the data goes along all axes at once, split in
    proportion to their bandwidth; between slices each chip first fetches its own part of the other
    slices' data.
    """
    inside = size * (1 - 1 / where.slice_chips) if where.slice_chips > 1 else 0.0
    rate = sum(axis.bandwidth(where.chip) for axis in where.axes)
    seconds = inside / rate if inside else 0.0
    seconds += HOP_SECONDS * sum(axis.hops for axis in where.axes)
    if where.slices > 1:
        part = size / where.slice_chips
        seconds += part * (1 - 1 / where.slices) / where.chip.dcn_bandwidth
        seconds += DCN_SECONDS * math.log2(where.slices)
    return seconds


def all_reduce(where: Mesh, size: float) -> float:
    """A reduce-scatter and an all-gather."""
    return 2 * all_gather(where, size)


@dataclass(frozen=True)
class Job:
    """A training step: what the model and its numbers are."""

    parameters: float
    layers: int = 32
    tokens: int = 8192  # a chip and step
    efficiency: float = 0.5  # of the peak, of a chip alone
    weight_bytes: int = 2  # of a parameter as it is gathered
    gradient_bytes: int = 4
    state_bytes: int = 16  # of a parameter: weight, gradient and two moments in float32

    def compute(self, chip: Chip) -> float:
        """6 FLOPs a parameter and token, forward and backward."""
        return 6 * self.parameters * self.tokens / (chip.peak_flops * self.efficiency)


@dataclass(frozen=True)
class Step:
    """One row of the table. Seconds; `exposed` is communication that nothing hides."""

    mesh: Mesh
    compute: float
    communication: float
    exposed: float
    state_bytes: float  # a chip

    @property
    def seconds(self) -> float:
        return self.compute + self.exposed

    @property
    def efficiency(self) -> float:
        return self.compute / self.seconds

    @property
    def fits(self) -> bool:
        return self.state_bytes <= self.mesh.chip.hbm_bytes


def data_parallel(where: Mesh, job: Job) -> Step:
    """Gradients are reduced layer by layer while backward, two thirds of the step, goes on.

    The last layer's reduction has nothing left to hide behind.
    """
    compute = job.compute(where.chip)
    layer = all_reduce(where, job.parameters * job.gradient_bytes / job.layers)
    communication = layer * job.layers
    hidden = min(communication - layer, compute * 2 / 3)
    return Step(
        where, compute, communication, communication - hidden, job.parameters * job.state_bytes
    )


def fully_sharded(where: Mesh, job: Job) -> Step:
    """Each layer's weights are gathered ahead of its forward and its backward, its gradients
    scattered behind it; the first gathering and the last scattering are not hidden."""
    compute = job.compute(where.chip)
    gather = all_gather(where, job.parameters * job.weight_bytes / job.layers)
    scatter = all_gather(where, job.parameters * job.gradient_bytes / job.layers)
    communication = (2 * gather + scatter) * job.layers
    ends = gather + scatter
    hidden = min(communication - ends, compute)
    state = job.parameters * job.state_bytes / where.chips
    return Step(where, compute, communication, communication - hidden, state)
