"""python -m benchmarks encoders | gpu | plots"""

from __future__ import annotations

import tyro

from . import encoders, gpu, plots

if __name__ == "__main__":
    tyro.extras.subcommand_cli_from_dict(
        {"encoders": encoders.main, "gpu": gpu.main, "plots": plots.main},
        prog="python -m benchmarks",
        sort_subcommands=False,
    )
