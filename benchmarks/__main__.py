"""python -m benchmarks encoders | gpu | inference | halting | serving | serving-memory | scale | streaming | embeddings
| plots"""

from __future__ import annotations

import tyro

from . import embeddings, encoders, gpu, halting, inference, plots, scale, serving, streaming

if __name__ == "__main__":
    tyro.extras.subcommand_cli_from_dict(
        {
            "encoders": encoders.main,
            "gpu": gpu.main,
            "inference": inference.main,
            "halting": halting.main,
            "serving": serving.main,
            "serving-memory": serving.memory,
            "scale": scale.main,
            "streaming": streaming.main,
            "embeddings": embeddings.main,
            "plots": plots.main,
        },
        prog="python -m benchmarks",
        sort_subcommands=False,
    )
