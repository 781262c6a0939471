"""The recurrence on a GPU: matrix products from cuBLAS, everything between them in one Triton kernel a step.

`ops/README.md` derives the backward pass and gives the memory plan.
"""

from .autograd import fused_recurrence

__all__ = ["fused_recurrence"]
