"""The recurrence on a GPU: large matrix products from cuBLAS, and Triton kernels for small ones and all between them.

`ops/README.md` derives the backward pass and gives the memory plan.
"""

from .autograd import fused_recurrence

__all__ = ["fused_recurrence"]
