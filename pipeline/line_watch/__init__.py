"""Whether what arrives on a line is what was declared, and whether it is fit to be recognised."""

from pipeline.line_watch.watch import LineWatch

__all__ = ["LineWatch"]
