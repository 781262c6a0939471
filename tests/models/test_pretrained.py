import errno
import json
import os
import pickle
import resource
import sys
from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import load_file, save_file

from sentence_state.data.description import FORMAT_VERSION
from sentence_state.models import FolderError, JointModel, Model, SequenceTagger, TextClassifier

from .synthetic import corpus, small

TEXTS = ["a good film about New York", "Mary"]
FILES = ["config.json", "labels.json", "model.safetensors", "tags.json", "versions.json", "words.json"]


def joint(seed=0, **fields) -> JointModel:
    return JointModel.from_examples(corpus(20), small(**fields), seed=seed).eval()


@pytest.fixture
def folder(tmp_path):
    joint().save_pretrained(tmp_path / "model")
    return tmp_path / "model"


def change_config(folder, **changes):
    config = json.loads((folder / "config.json").read_text())
    config.update(changes)
    (folder / "config.json").write_text(json.dumps(config))


def refused(folder, cls=Model) -> str:
    with pytest.raises(FolderError) as caught:
        cls.from_pretrained(folder)
    assert str(caught.value).startswith(str(folder))
    return str(caught.value)


@pytest.mark.parametrize("cls", [TextClassifier, SequenceTagger, JointModel])
@pytest.mark.parametrize("encoder", ["S-LSTM", "2 stacked BiLSTM", "CNN"])
def test_a_model_comes_back_bit_by_bit(cls, encoder, tmp_path):
    model = cls.from_examples(corpus(20), small(encoder=encoder, characters="BiLSTM", case_size=4)).eval()
    model.save_pretrained(tmp_path / "deep" / "model")
    for loader in (cls, Model):
        again = loader.from_pretrained(tmp_path / "deep" / "model")
        assert type(again) is cls
        assert not again.training
        assert (again.config, again.vocabularies) == (model.config, model.vocabularies)
        assert (again.tokenizer, again.tag_scheme) == (model.tokenizer, model.tag_scheme)
        for name, tensor in model.state_dict().items():
            assert torch.equal(tensor, again.state_dict()[name])
        assert again.predict(TEXTS) == model.predict(TEXTS)


def test_the_folder_holds_json_and_safetensors_only_and_everybody_may_read_it(folder):
    assert sorted(path.name for path in folder.iterdir()) == FILES
    assert len({path.stat().st_mode for path in folder.iterdir()}) == 1
    assert load_file(folder / "model.safetensors").keys() == joint().state_dict().keys()
    assert json.loads((folder / "versions.json").read_text())["torch"] == torch.__version__


def test_loading_leaves_random_numbers_alone(folder):
    before = torch.get_rng_state()
    Model.from_pretrained(folder)
    assert torch.equal(before, torch.get_rng_state())


def test_a_model_can_be_saved_over_another(folder):
    model = joint(seed=7, hidden_size=9)
    model.save_pretrained(folder)
    assert Model.from_pretrained(folder).predict(TEXTS) == model.predict(TEXTS)


@pytest.mark.parametrize("name", [name for name in FILES if name != "versions.json"])
def test_a_missing_file_is_named(folder, name):
    (folder / name).unlink()
    assert refused(folder) == f"{folder / name}: no such file"


@pytest.mark.parametrize("name", [name for name in FILES if name != "versions.json"])
@pytest.mark.parametrize("kept", [0.0, 0.3, 0.99])
def test_a_file_that_is_cut_off_is_refused(folder, name, kept):
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content[: int(kept * len(content))])
    assert str(folder / name) in refused(folder)


def test_one_changed_bit_in_the_weights_is_refused(folder):
    path = folder / "model.safetensors"
    content = bytearray(path.read_bytes())
    for position in (9, 300, len(content) // 2, len(content) - 1):
        damaged = bytearray(content)
        damaged[position] ^= 1
        path.write_bytes(damaged)
        assert str(path) in refused(folder)


def test_a_newer_format_is_refused_with_what_to_do(folder):
    change_config(folder, format_version=FORMAT_VERSION + 1)
    assert refused(folder).endswith(
        "written by a newer version of sentence-state (format 2, this one reads up to 1); "
        "pip install --upgrade sentence-state"
    )


def test_a_folder_of_another_model_is_refused(folder):
    assert refused(folder, TextClassifier) == f"{folder}: holds a JointModel, not a TextClassifier"
    change_config(folder, **{"class": "os.system"})
    assert refused(folder) == f"{folder}: holds a os.system, not a model of sentence-state"
    change_config(folder, **{"class": "Model"})
    assert refused(folder) == f"{folder}: holds a Model, not a model of sentence-state"


def test_a_config_that_does_not_fit_the_weights_is_refused_without_the_memory_it_asks_for(folder):
    for size in (13, 10**6, 10**12):
        config = {**small().to_dict(), "hidden_size": size}
        change_config(folder, model=config)
        message = refused(folder)
        assert "does not fit config.json" in message or "describes no model" in message


@pytest.mark.parametrize(
    "changes",
    [
        {"model": {"hidden_size": 12}},
        {"model": []},
        {"model": {**small().to_dict(), "encoder": "GRU"}},
        {"model": {**small().to_dict(), "dropout": "much"}},
        {"format_version": "1"},
        {"format_version": True},
        {"format_version": -3},
        {"tag_scheme": "bilou"},
        {"tag_scheme": "bio"},
        {"tokenizer": {"whitespace": 1}},
        {"tokenizer": {"whitespace": "yes", "contractions": True}},
        {"vocabularies": ["words"]},
        {"vocabularies": ["../../etc/passwd"]},
        {"vocabularies": None},
        {"class": None},
    ],
)
def test_a_broken_config_is_refused(folder, changes):
    change_config(folder, **changes)
    assert "config.json" in refused(folder)


@pytest.mark.parametrize("content", ["[]", "7", '"a"', "null", "{", "\x00", "[" * 100_000])
@pytest.mark.parametrize("name", ["config.json", "words.json"])
def test_json_that_is_something_else_is_refused(folder, content, name):
    (folder / name).write_text(content)
    assert name in refused(folder)


@pytest.mark.parametrize("words", [[1, 2], [["a"]], "abc", None, ["a", "a"], [{}], {"a": 1}])
def test_a_broken_vocabulary_is_refused(folder, words):
    content = json.loads((folder / "words.json").read_text())
    (folder / "words.json").write_text(json.dumps({**content, "words": words}))
    assert "words.json" in refused(folder)


def test_other_words_of_the_same_number_are_refused(folder):
    content = json.loads((folder / "words.json").read_text())
    content["words"] = content["words"][::-1]
    (folder / "words.json").write_text(json.dumps(content))
    assert refused(folder).endswith("belongs to another config.json or to other vocabularies")


def test_weights_without_a_checksum_are_refused(folder):
    save_file(joint().state_dict(), folder / "model.safetensors")
    assert "checksum" in refused(folder)


class Payload:
    """What a pickle does when it is loaded."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (self.path, "w")


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("write", [pickle.dump, torch.save], ids=["pickle", "torch.save"])
def test_nothing_in_a_folder_is_executed(folder, tmp_path, name, write):
    with open(folder / name, "wb") as file:
        write(Payload(str(tmp_path / "executed")), file)
    if name == "versions.json":
        Model.from_pretrained(folder)  # it is for people
    else:
        assert str(folder / name) in refused(folder)
    assert not (tmp_path / "executed").exists()


def test_files_that_are_not_the_models_are_left_alone(folder, tmp_path):
    for name in ("model.pt", "pytorch_model.bin", "model.pkl", "__init__.py", "config.py"):
        with open(folder / name, "wb") as file:
            pickle.dump(Payload(str(tmp_path / "executed")), file)
    Model.from_pretrained(folder).predict(TEXTS)
    assert not (tmp_path / "executed").exists()


@pytest.mark.parametrize("name", [name for name in FILES if name != "versions.json"])
def test_a_pipe_or_a_device_in_the_place_of_a_file_is_refused_at_once(folder, name):
    (folder / name).unlink()
    os.mkfifo(folder / name)
    assert refused(folder) == f"{folder / name}: no regular file"
    (folder / name).unlink()
    (folder / name).symlink_to("/dev/zero")
    assert refused(folder) == f"{folder / name}: no regular file"
    (folder / name).unlink()
    (folder / name).mkdir()
    assert refused(folder) == f"{folder / name}: no regular file"


def test_files_of_two_models_that_are_swapped_are_refused(folder, tmp_path):
    examples = corpus(20)
    for example in examples:
        example.label = f"not {example.label}"
    other = JointModel.from_examples(examples, small(), seed=0)
    other.save_pretrained(tmp_path / "other")
    for name in ("labels.json", "model.safetensors"):
        both = (folder / name).read_bytes(), (tmp_path / "other" / name).read_bytes()
        (folder / name).write_bytes(both[1])
        assert "belongs to another config.json or to other vocabularies" in refused(folder)
        (folder / name).write_bytes(both[0])
    labels, tags = (folder / "labels.json").read_bytes(), (folder / "tags.json").read_bytes()
    (folder / "labels.json").write_bytes(tags)
    (folder / "tags.json").write_bytes(labels)
    refused(folder)


def test_a_number_of_steps_that_would_never_end_is_refused(folder):
    model = joint()
    object.__setattr__(model.config, "num_steps", 10**9)
    model.save_pretrained(folder)  # whole, with a fitting checksum: only the number is hostile
    assert refused(folder) == f"{folder / 'config.json'}: num_steps is 1000000000, at most 1000 are run"


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_weights_that_are_no_finite_numbers_are_refused(folder, number):
    model = joint()
    with torch.no_grad():
        model.classifier.output.weight[0, 0] = number
    model.save_pretrained(folder)
    assert refused(folder).endswith("classifier.output.weight holds numbers that are not finite")


def test_a_label_that_is_no_unicode_is_refused(folder):
    path = folder / "labels.json"
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, "words": ["\ud800", *content["words"][1:]]}))
    assert refused(folder) == f"{path}: no vocabulary of sentence-state: a word with half a surrogate pair"


def test_what_is_no_folder_is_refused(tmp_path):
    assert refused(tmp_path / "nothing").endswith("no such folder")
    (tmp_path / "file").touch()
    assert refused(tmp_path / "file").endswith("no such folder")
    (tmp_path / "empty").mkdir()
    assert refused(tmp_path / "empty").endswith("config.json: no such file")


def test_a_full_disk_leaves_the_old_model_and_nothing_half_written(folder, monkeypatch):
    before = {path.name: path.read_bytes() for path in folder.iterdir()}

    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(FolderError, match="could not be written: the disk is full; nothing half-written is left"):
        joint(seed=1).save_pretrained(folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_a_file_that_cannot_grow_leaves_nothing_half_written(folder):
    before = (folder / "model.safetensors").read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, hard))
    try:
        with pytest.raises(FolderError, match=r"model\.safetensors: could not be written"):
            joint(seed=1).save_pretrained(folder)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (folder / "model.safetensors").read_bytes() == before
    assert sorted(path.name for path in folder.iterdir()) == FILES


def test_a_place_where_no_folder_can_be_made_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(FolderError, match="could not be made"):
        joint().save_pretrained(tmp_path / "file" / "model")


def test_push_to_hub_uploads_the_folder_and_asks_for_the_extra_where_it_is_missing(monkeypatch):
    uploaded = []
    hub = SimpleNamespace(
        create_repo=lambda name, exist_ok, private: uploaded.append((name, private)),
        upload_folder=lambda folder_path, repo_id: uploaded.append(sorted(os.listdir(folder_path))) or "address",
    )
    monkeypatch.setitem(sys.modules, "huggingface_hub", SimpleNamespace(HfApi=lambda: hub))
    assert joint().push_to_hub("me/model", private=True) == "address"
    assert uploaded == [("me/model", True), FILES]
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(ImportError, match=r'pip install "sentence-state\[hub\]"'):
        joint().push_to_hub("me/model")


@pytest.mark.parametrize("encoder", ["S-LSTM", "BiLSTM", "CNN", "Transformer (N=6)"])
def test_bfloat16_answers_nearly_the_same(encoder, tmp_path):
    model = joint(encoder=encoder, characters="CNN", case_size=2)
    model.save_pretrained(tmp_path)
    half = JointModel.from_pretrained(tmp_path, precision="bfloat16")
    assert {parameter.dtype for parameter in half.parameters()} == {torch.bfloat16}
    for exact, rounded in zip(model.predict(TEXTS), half.predict(TEXTS), strict=True):
        assert exact["probabilities"] == pytest.approx(rounded["probabilities"], abs=0.02)
        assert exact["probabilities"] != rounded["probabilities"]


def test_an_unknown_precision_is_refused(folder):
    with pytest.raises(ValueError, match="precision must be one of 'float32', 'bfloat16', 'int8', got 'int4'"):
        Model.from_pretrained(folder, precision="int4")


@pytest.mark.parametrize("options", [{}, {"gates": "paper"}, {"sentence_nodes": 2, "window": 2}, {"sentence_nodes": 0}])
def test_int8_answers_nearly_the_same_alone_and_in_a_batch(options, tmp_path):
    model = joint(hidden_size=40, **options)
    with torch.no_grad():
        model.encoder.h_0.fill_(1.5)  # an initial state is a parameter: it may lie outside of [-1, 1]
    model.save_pretrained(tmp_path)
    rounded = JointModel.from_pretrained(tmp_path, precision="int8")
    together = rounded.predict(TEXTS, batch_size=2)
    for exact, text, answer in zip(model.predict(TEXTS), TEXTS, together, strict=True):
        assert exact["probabilities"] == pytest.approx(answer["probabilities"], abs=0.02)
        assert exact["probabilities"] != answer["probabilities"]
        assert rounded.predict([text])[0]["probabilities"] == pytest.approx(answer["probabilities"], abs=1e-6)


def test_int8_is_for_an_s_lstm(tmp_path):
    joint(encoder="BiLSTM").save_pretrained(tmp_path / "bilstm")
    with pytest.raises(ValueError, match='precision="int8" is for an S-LSTM, got BiLSTM'):
        Model.from_pretrained(tmp_path / "bilstm", precision="int8")
