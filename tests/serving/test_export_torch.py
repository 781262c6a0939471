"""A program of torch.export answers as the model does, for any batch and length, without this package."""

import subprocess
import sys

import pytest
import torch

from sentence_state.data.files import FolderError
from sentence_state.models import JointModel, SequenceTagger, TextClassifier
from sentence_state.runtime import RuntimeModel
from sentence_state.serving.export.program import ProgramSession, export_program, export_torch, wrap

from ..command_line import environment
from ..models.synthetic import corpus
from .exported import EXAMPLES, TEXTS, assert_same_answers, make

needs_scan = pytest.mark.skipif(not hasattr(torch.compiler, "is_exporting"), reason="torch 2.6 has no scan to export")


@needs_scan
@pytest.mark.parametrize(
    ("cls", "options"),
    [
        (JointModel, {"characters": "CNN", "case_size": 2}),
        (SequenceTagger, {"transitions": "static"}),
        (TextClassifier, {"encoder": "Transformer (N=6)"}),
    ],
    ids=["joint", "tagger", "classifier"],
)
def test_answers_are_the_models_own(cls, options):
    model = make(cls, **options)
    found = wrap(model, ProgramSession(export_program(model, EXAMPLES).module()))
    for batch_size in (1, 3):
        assert_same_answers(model.predict(TEXTS), found.predict(TEXTS, batch_size), 2e-6)


@needs_scan
@pytest.mark.parametrize("options", [{"boundaries": False}, {"sentence_nodes": 0}])
def test_models_that_leave_something_out_answer_texts_of_one_word_too(options, tmp_path):
    model = make(TextClassifier, **options)
    export_torch(model, tmp_path / "torch", EXAMPLES[:5])
    found = wrap(model, ProgramSession(torch.export.load(tmp_path / "torch" / "model.pt2").module()))
    assert_same_answers(model.predict(["Mary", "New York"]), found.predict(["Mary", "New York"], 1), 2e-6)


@needs_scan
def test_it_runs_where_this_package_is_not_installed(tmp_path):
    model = make(SequenceTagger)
    export_torch(model, tmp_path / "torch", corpus(3))
    code = (
        "import sys; sys.modules['sentence_state'] = None\n"
        "import torch; program = torch.export.load('model.pt2').module()\n"
        "print(program(word_ids=torch.tensor([[2, 5, 6, 3]]), lengths=torch.tensor([4]))[0].tolist())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path / "torch", env=environment(), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().endswith(", -1]]")
    with pytest.raises(FolderError, match="--format onnx is needed"):
        RuntimeModel.from_pretrained(tmp_path / "torch")


@pytest.mark.parametrize("options", [{"encoder": "BiLSTM"}, {"characters": "BiLSTM"}])
def test_what_would_be_unrolled_is_refused(options, tmp_path):
    with pytest.raises(FolderError, match="use --format onnx"):
        export_torch(make(SequenceTagger, **options), tmp_path / "torch", corpus(3))
