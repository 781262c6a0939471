"""python -m benchmarks encoders [--device cpu|cuda] [--repeats N]"""

from __future__ import annotations

import tyro

from . import encoders

if __name__ == "__main__":
    tyro.extras.subcommand_cli_from_dict(
        {"encoders": encoders.main}, prog="python -m benchmarks", sort_subcommands=False
    )
