"""sentence-state export: a run folder -> a model that runs elsewhere, compared with the one it came from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..data import DataError, Example, read_sample
from ..data.files import read_json
from ..encoders import SentenceStateLSTM
from ..models import Model
from ..training.run_folder import TRAINING
from .console import make_console
from .evaluate import read_as_trained
from .flags import Evaluate, Export, UsageError
from .load import load_model

COMPARED = 200  # sentences
SAMPLE = "sample/dev.txt"  # as `read_sample` calls it


def export(flags: Export) -> int:
    console = make_console()
    model = load_model(flags.run, "cpu", batch_size=32)
    check(flags, model)
    folder = flags.out or flags.run / (f"{flags.format}-{flags.quantize}" if flags.quantize else flags.format)
    examples, source = sentences(flags.run, model)
    try:
        if flags.format == "onnx":
            from ..serving.export.folder import export_onnx

            parity = export_onnx(model, folder, examples, flags.quantize)
        else:
            from ..serving.export.program import export_torch

            parity = export_torch(model, folder, examples)
    except ImportError as error:
        raise UsageError(str(error)) from None
    size = sum(path.stat().st_size for path in folder.iterdir()) / 2**20
    console.print(f"{flags.run} -> {folder}, {size:.1f} MB")
    console.print(
        f"compared on {parity.sentences} sentences of {source}: the same answer for {parity.same}, "
        f"probabilities differ by at most {parity.greatest_difference:.1e}"
    )
    if flags.format == "onnx":
        console.print("Next, with onnxruntime and numpy alone:", style="bold")
        console.print("  from sentence_state.runtime import RuntimeModel")
        console.print(f'  RuntimeModel.from_pretrained("{folder}").predict([{" ".join(examples[0].words)!r}])')
    else:
        console.print(f'Next: torch.export.load("{folder}/model.pt2").module()', style="bold")
    return 0


def check(flags: Export, model: Model) -> None:
    if flags.quantize is None:
        return
    if flags.format != "onnx":
        raise UsageError("--quantize int8 goes with --format onnx")
    if not isinstance(model.encoder, SentenceStateLSTM) or model.config.variant != "paper":
        what = model.config.encoder if model.config.encoder != "S-LSTM" else "the released variant"
        raise UsageError(f"--quantize int8 is for S-LSTM as in the paper, not for {what}: export it without")


def sentences(run: Path, model: Model) -> tuple[Sequence[Example], str]:
    """Up to 200 sentences that the run was developed on, where they still are; of the embedded sample otherwise."""
    missing = ""
    try:
        paths = read_json(run / TRAINING)["data"]["dev"]["files"]
        if paths == [SAMPLE]:
            return read_sample().dev[:COMPARED], "the embedded sample"
        missing = f" ({paths[0]}, on which it was developed, could not be read here)"
        examples = read_as_trained(Evaluate(run, Path(paths[0])), model).examples
        if examples:
            return examples[:COMPARED], str(paths[0])
    except (DataError, OSError, LookupError, TypeError, ValueError):
        pass  # a model that was saved without a run, or whose data have gone
    return read_sample().dev[:COMPARED], f"the embedded sample{missing}"
