"""sentence_state.runtime: without torch, the same answers; folders that are damaged or hostile are refused."""

import hashlib
import json
import shutil
import subprocess
import sys

import onnx
import pytest

from sentence_state.data.files import FolderError
from sentence_state.models import JointModel
from sentence_state.runtime import EXPORT, MODEL, RuntimeModel
from sentence_state.serving.export.folder import export_onnx

from .command_line import environment
from .models.synthetic import corpus
from .serving.exported import TEXTS, assert_same_answers, make


@pytest.fixture(scope="module")
def model():
    return make(JointModel, characters="CNN", case_size=2)


@pytest.fixture(scope="module")
def saved(model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("exported") / "onnx"
    export_onnx(model, folder, corpus(4))
    return folder


@pytest.fixture
def folder(saved, tmp_path):
    return shutil.copytree(saved, tmp_path / "copy")


def test_it_predicts_where_torch_cannot_be_imported(folder, model):
    code = (
        "import json, sys\n"
        "for name in ('torch', 'safetensors', 'onnx', 'rich', 'tyro'): sys.modules[name] = None\n"
        "from sentence_state.runtime import RuntimeModel\n"
        f"print(json.dumps(RuntimeModel.from_pretrained({str(folder)!r}).predict({TEXTS!r})))"
    )
    done = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert_same_answers(model.predict(TEXTS), json.loads(done.stdout), 2e-6)


def test_texts_are_checked_as_the_model_checks_them(folder):
    found = RuntimeModel.from_pretrained(folder, threads=1)
    assert found.predict([]) == []
    with pytest.raises(ValueError, match="expected a list of texts, got one string"):
        found.predict("Paris")
    with pytest.raises(ValueError, match="text 1 has no words"):
        found.predict(["Paris", " "])
    with pytest.raises(ValueError, match="batch_size must be at least 1"):
        found.predict(["Paris"], batch_size=0)


def refused(folder, match):
    with pytest.raises(FolderError, match=match):
        RuntimeModel.from_pretrained(folder)


def test_a_truncated_graph_is_refused(folder):
    content = (folder / MODEL).read_bytes()
    (folder / MODEL).write_bytes(content[: len(content) // 2])
    refused(folder, "damaged or exchanged")


def test_the_graph_of_another_model_is_refused(folder, tmp_path):
    export_onnx(make(JointModel), tmp_path / "other", corpus(4))
    shutil.copy(tmp_path / "other" / MODEL, folder)
    refused(folder, "damaged or exchanged")
    shutil.copy(tmp_path / "other" / EXPORT, folder)
    refused(folder, r"belongs to another config\.json or to other vocabularies")


@pytest.mark.parametrize("name", ["words.json", "tags.json", "labels.json", "characters.json"])
def test_a_changed_vocabulary_is_refused(folder, name):
    content = json.loads((folder / name).read_text())
    content["words"].reverse()
    (folder / name).write_text(json.dumps(content))
    refused(folder, "belongs to another")


@pytest.mark.parametrize("name", [MODEL, EXPORT, "config.json", "words.json"])
def test_a_missing_file_is_named(folder, name):
    (folder / name).unlink()
    refused(folder, "no exported model|no such file")


@pytest.mark.parametrize("content", [b"", b"\x00" * 1000, b"[]", b'{"sha256": 3}', b"\xff\xfe"])
def test_nonsense_in_export_json_is_refused(folder, content):
    (folder / EXPORT).write_bytes(content)
    refused(folder, "not readable as JSON|describes no exported model")


def forge(folder, content: bytes) -> None:
    """A graph with a checksum that fits: what somebody would do on purpose."""
    (folder / MODEL).write_bytes(content)
    export = json.loads((folder / EXPORT).read_text())
    (folder / EXPORT).write_text(json.dumps({**export, "sha256": hashlib.sha256(content).hexdigest()}))


@pytest.mark.parametrize("content", [b"", b"GIF89a", b"\x80\x04\x95pickle", b"\x08\x08\x12\x00" * 50])
def test_what_is_no_graph_is_refused_even_with_a_fitting_checksum(folder, content):
    forge(folder, content)
    refused(folder, "damaged, or no ONNX model|does not fit")


def test_a_graph_that_reads_other_files_is_refused(folder):
    graph = onnx.load(folder / MODEL)
    tensor = graph.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="/etc/passwd")
    forge(folder, graph.SerializeToString())
    refused(folder, "refers to other files")


def test_a_graph_with_other_inputs_or_outputs_is_refused(folder, tmp_path):
    export_onnx(make(JointModel), tmp_path / "other", corpus(4))
    forge(folder, (tmp_path / "other" / MODEL).read_bytes())
    refused(folder, r"does not fit config\.json")


def test_a_run_folder_is_no_exported_model(tmp_path):
    make(JointModel).save_pretrained(tmp_path)
    refused(tmp_path, "no exported model: sentence-state export .* --format onnx makes one")
    refused(tmp_path / "nothing", "no such folder")


def test_a_newer_format_is_refused(folder):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "format_version": 99}))
    refused(folder, "written by a newer version")
