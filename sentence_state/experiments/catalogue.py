"""The names that `sentence-state reproduce` knows, in the order of the paper."""

from __future__ import annotations

from collections.abc import Callable

from .classification import table_4, table_5
from .development import figure_2, table_2, table_3
from .experiment import Experiment, Plan
from .labelling import figure_3, table_6, table_7

# experiments that train models
EXPERIMENTS: dict[str, Callable[[Plan], Experiment]] = {
    "table2": table_2,
    "figure2": figure_2,
    "table3": table_3,
    "table4": table_4,
    "table5": table_5,
    "figure3": figure_3,
    "table6": table_6,
    "table7": table_7,
}
