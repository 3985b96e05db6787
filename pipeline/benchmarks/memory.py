"""How quickly this machine reads memory: the limit for whatever must read its weights once."""

import time

import torch

_BYTES = 256 * 1024**2
"""Larger than any cache."""
_ATTEMPTS = 7


def read_bytes_per_s(num_threads: int) -> float:
    """Best of several sums over a big array."""
    torch.set_num_threads(num_threads)
    big = torch.ones(_BYTES // torch.float32.itemsize)
    return _BYTES / min(_sum_s(big) for _ in range(_ATTEMPTS))


def _sum_s(big: torch.Tensor) -> float:
    began_s = time.perf_counter()
    float(big.sum())
    return time.perf_counter() - began_s
