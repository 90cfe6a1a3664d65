"""Published figures of the TPU generations, for `torchtpu aot` and `torchtpu scale`.

Sources: Google's Cloud TPU documentation, the pages "TPU v4", "TPU v5e", "TPU v5p", "TPU v6e" and
"TPU7x (Ironwood)" (peak, HBM, pod size, bidirectional ICI bandwidth and DCN bandwidth per chip).
For v4, whose page has no figure per link, the link rate is that of Jouppi et al., "TPU v4: An
Optically Reconfigurable Supercomputer for Machine Learning with Hardware Support for Embeddings",
ISCA 2023 (six links of 50 GB/s); the page's 1.1 PB/s of all-reduce bandwidth over 4,096 chips
(269 GB/s a chip) agrees. v4's and v5e's DCN rate is taken to be v5p's.
"""

from __future__ import annotations

from dataclasses import dataclass

GIB = 1 << 30


@dataclass(frozen=True)
class Chip:
    name: str
    peak_flops: float  # bf16, a second
    hbm_bytes: int
    hbm_bandwidth: float  # bytes a second
    axes: int  # of the torus
    link_bandwidth: float  # bytes a second, one link, one direction; an axis has two links a chip
    dcn_bandwidth: float  # bytes a second, a chip
    pod: int  # chips reached over links alone
    whole_axis: int  # an axis of this length or a multiple wraps around (a torus); shorter: a line
    # What turns libtpu's cycle estimates into seconds: the rate at which its estimate of a bf16
    # product of 8192 x 8192 matrices is the published peak (libtpu 0.0.52). No clock of the chip.
    cycles_per_second: float

    @property
    def ici_bandwidth(self) -> float:
        """All links of a chip, one direction."""
        return 2 * self.axes * self.link_bandwidth


CHIPS = {
    chip.name: chip
    for chip in (
        Chip("v4", 275e12, 32 * GIB, 1200e9, 3, 50e9, 6.25e9, 4096, 4, 1.17e9),
        Chip("v5e", 197e12, 16 * GIB, 819e9, 2, 50e9, 6.25e9, 256, 16, 1.71e9),
        Chip("v5p", 459e12, 95 * GIB, 2765e9, 3, 100e9, 6.25e9, 8960, 4, 1.94e9),
        Chip("v6e", 918e12, 32 * GIB, 1638e9, 2, 100e9, 12.5e9, 256, 16, 2.49e9),
        Chip("tpu7x", 2307e12, 192 * GIB, 7380e9, 3, 100e9, 12.5e9, 9216, 4, 2.73e9),
    )
}
