"""Reductions over the scores of all tokens, row by row where that keeps a row in the CPU's cache."""

import torch


def argmax(scores: torch.Tensor) -> torch.Tensor:
    """The best token of each row `(rows, vocabulary)`."""
    if scores.is_cpu:
        return torch.from_numpy(scores.numpy().argmax(-1))  # several times as fast as torch's
    return scores.argmax(-1)


def log_sum_exp(scores: torch.Tensor) -> torch.Tensor:
    """Logarithm of the sum of exponentials of each row `(rows, vocabulary)`."""
    if not scores.is_cpu:
        return scores.logsumexp(-1)
    scratch = torch.empty_like(scores[0]) if len(scores) else None
    sums = [_log_sum_exp(row, scratch) for row in scores]
    return torch.stack(sums) if sums else scores.new_empty(0)


def _log_sum_exp(row: torch.Tensor, scratch: torch.Tensor | None) -> torch.Tensor:
    peak = row.max()
    return torch.sub(row, peak, out=scratch).exp_().sum().log_() + peak
