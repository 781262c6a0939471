import gzip
import json
import re
import shutil
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from prometheus_client.parser import text_string_to_metric_families

from sentence_state.data.tokenizer import Tokenizer
from sentence_state.runtime import RuntimeModel
from sentence_state.serving.export.folder import export_onnx
from sentence_state.serving.limits import Limits
from sentence_state.serving.page import page_files
from sentence_state.serving.server import build_app
from sentence_state.serving.service import names_of

from .exported import assert_same_answers

JSON = {"content-type": "application/json"}
LIMITS = Limits(max_texts=8, max_words=20, max_body_kb=16, max_queue=8)


@contextmanager
def client_of(*models, **options):
    """What `build_app` makes, asked without a server."""
    app = build_app(*models, **options)
    try:
        with TestClient(app) as client:
            yield client
    finally:
        for service in app.state.services:
            service.close()


@pytest.fixture(scope="module")
def client(runs, models):
    with client_of(list(runs.values()), list(models.values()), LIMITS) as client:
        yield client


def plain(answer) -> list:
    """The predictions of an answer as `Model.predict` gives them: without fields that are null."""
    found = answer.json()["predictions"]
    return [
        {name: value for name, value in one.items() if value is not None or name in ("label", "score")} for one in found
    ]


def predict(client, texts, **fields):
    return client.post("/v1/predict", json={"texts": texts, **fields})


def test_predictions_are_those_of_the_model(client, models, sentences):
    texts = [" ".join(example.words) for example in sentences if len(example.words) <= 20][:8]
    for name, model in models.items():
        answer = predict(client, texts, model=name)
        assert answer.status_code == 200
        assert answer.json()["model"] == name
        assert_same_answers(model.predict(texts), plain(answer), 1e-5)  # float32, another batch


def test_a_text_may_come_as_words_and_the_first_model_answers_when_none_is_named(client):
    answer = predict(client, ["play some jazz", ["play", "some", "jazz"]]).json()
    assert answer["model"] == "assistant"
    assert answer["predictions"][0]["label"] == answer["predictions"][1]["label"]


def test_spans_are_counted_in_code_points(client, models):
    text = "\U0001f600\U0001f600 play some jazz in the kitchen"
    (found,) = predict(client, [text], model="assistant").json()["predictions"]
    assert found["spans"]
    assert all(text[span["start"] : span["end"]] == span["text"] for span in found["spans"])


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        (b"", 422, "Invalid JSON"),
        (b"{", 422, "Invalid JSON"),
        (b"[" * 5000, 422, "recursion limit"),
        (b'{"texts": "a"}', 422, "texts: Input should be a valid array"),
        (b'{"texts": []}', 422, "texts: List should have at least 1 item"),
        (b'{"texts": [""]}', 422, "text 0 has no words"),
        (b'{"texts": ["a", " \\t\\n\\u200b"]}', 422, "text 1 has no words"),
        (b'{"texts": ["a", ["b", ""]]}', 422, "text 1 has a word that is empty"),
        (b'{"texts": [[]]}', 422, "texts.0"),
        (b'{"texts": [1]}', 422, "texts.0"),
        (b'{"texts": [null]}', 422, "texts.0"),
        (b'{"texts": ["a"], "model": 3}', 422, "model: Input should be a valid string"),
        (b'{"texts": ["a"], "modle": "x"}', 422, "modle: Extra inputs are not permitted"),
        (b'{"texts": ["a"], "model": "x"}', 404, "no model 'x'; there are: assistant, labels, spans"),
        (b'{"texts": ["\\ud800"]}', 422, "Invalid JSON"),
        (b'{"texts": ["\xff"]}', 422, "Invalid JSON"),
        (b'{"texts": ["a a a a a a a a a a a a a a a a a a a a a"]}', 422, "text 0 has 21 words, at most 20 are read"),
        (b'{"texts": ["' + b"a" * 1281 + b'"]}', 422, "text 0 has 1281 characters, at most 1280 are read"),
        (b'{"texts": [["' + b"a" * 1281 + b'"]]}', 422, "text 0 has 1281 characters, at most 1280 are read"),
        (b'{"texts": ["a","a","a","a","a","a","a","a","a"]}', 422, "9 texts, at most 8 in one request"),
        (b'{"texts": ["' + b"a" * 16 * 1024 + b'"]}', 413, "the body may have 16,384 bytes"),
        (b"x" * 16 * 1024 * 40, 413, "the body may have 16,384 bytes"),
    ],
)  # fmt: skip
def test_what_cannot_be_answered_is_refused_in_words(client, body, status, message):
    answer = client.post("/v1/predict", content=body, headers=JSON)
    assert (answer.status_code, list(answer.json())) == (status, ["detail"])
    assert message in answer.json()["detail"]
    assert len(answer.json()["detail"]) <= 300


def test_a_body_without_a_length_is_counted_as_it_comes(client):
    def chunks(size):
        yield b'{"texts": ["'
        for _ in range(size // 1024):
            yield b"a" * 1024
        yield b'"]}'

    assert client.post("/v1/predict", content=chunks(1024), headers=JSON).status_code == 200
    assert client.post("/v1/predict", content=chunks(20 * 1024), headers=JSON).status_code == 413


@pytest.mark.parametrize("kind", ["text/plain", "", "multipart/form-data; boundary=a", "application/json2", "a/\x7f"])
def test_another_content_type_is_refused(client, kind):
    answer = client.post("/v1/predict", content=b'{"texts": ["a"]}', headers={"content-type": kind})
    assert answer.status_code == 415
    assert "application/json" in answer.json()["detail"]


@pytest.mark.parametrize("coding", ["gzip", "br", "Identity, GZIP"])
def test_a_compressed_body_is_refused_by_the_name_of_its_coding(client, coding):
    body, headers = gzip.compress(b'{"texts": ["play"]}'), {**JSON, "content-encoding": coding}
    answer = client.post("/v1/predict", content=body, headers=headers)
    assert (answer.status_code, answer.headers["accept-encoding"]) == (415, "identity")
    assert answer.json()["detail"] == f"the body must come as it is, without Content-Encoding: {coding.lower()}"


@pytest.mark.parametrize("coding", ["identity", "", " Identity "])
def test_the_identity_is_no_compression(client, coding):
    headers = {**JSON, "content-encoding": coding}
    assert client.post("/v1/predict", content=b'{"texts": ["play"]}', headers=headers).status_code == 200


def test_odd_texts_are_answered(client):
    family, arabic = "\U0001f468\u200d\U0001f469\u200d\U0001f467", "\u202eabc \u0645\u0631\u062d\u0628\u0627"
    texts = ["\x00\x01", arabic, family, "a" * 1200, "\ufeff\ufffd\uffff", "e\u0301" * 50, "<script>alert(1)</script>"]
    texts.append("\\u0000 \x7f \x85")
    for name in ("assistant", "labels", "spans"):
        answer = predict(client, texts, model=name)
        assert answer.status_code == 200
        assert len(answer.json()["predictions"]) == 8


def test_a_full_queue_is_answered_429_with_a_time_to_come_back(runs, models):
    model, go = models["assistant"], threading.Event()
    with client_of([runs["assistant"]], [model], LIMITS) as client:
        held = hold_up(client, go)
        answers: list = []
        ask = lambda: answers.append(predict(client, ["play jazz"] * 4))  # noqa: E731
        clients = [threading.Thread(target=ask) for _ in range(5)]
        for one in clients:
            one.start()
        wait_for(lambda: len(answers) == 3)  # two are waiting; none may come after `go`
        refused = list(answers)
        assert [answer.status_code for answer in refused] == [429] * 3
        assert refused[0].headers["retry-after"] == "1"
        assert "sentences are waiting already, 8 may" in refused[0].json()["detail"]
        assert client.get("/ready").json() == {"status": "the queue is full"}
        go.set()
        for one in clients:
            one.join(20)
        assert sorted(answer.status_code for answer in answers) == [200, 200, 429, 429, 429]
        assert client.get("/ready").status_code == 200
        assert held.done()


def hold_up(client, go):
    """Keep the only model's thread busy until `go` is set."""
    entered = threading.Event()
    service = client.app.state.services[0]
    future = service.batcher.call(lambda: (entered.set(), go.wait(20)))
    assert entered.wait(10)
    return future


def wait_for(condition, seconds=10.0):
    for _ in range(int(seconds * 100)):
        if found := condition():
            return found
        threading.Event().wait(0.01)
    raise AssertionError("it did not happen in time")


def test_a_trace_has_steps_words_and_what_the_model_would_say(client, models):
    answer = client.post("/v1/trace", json={"text": "play some jazz", "model": "assistant"}).json()
    assert answer["words"] == ["<s>", "play", "some", "jazz", "</s>"]
    assert answer["offsets"] == [None, [0, 4], [5, 9], [10, 14], None]
    assert len(answer["steps"]) == models["assistant"].config.num_steps
    assert answer["steps"][-1]["prediction"]["label"] == models["assistant"].predict(["play some jazz"])[0]["label"]


def test_an_encoder_without_an_exchange_says_so(client):
    answer = client.post("/v1/trace", json={"text": "play some jazz", "model": "labels"})
    assert answer.status_code == 422
    assert answer.json()["detail"] == "labels is a BiLSTM: only an S-LSTM's words exchange their states"


def test_an_exported_model_is_served_with_the_same_answers_and_without_a_trace(runs, models, sentences, tmp_path):
    export_onnx(models["assistant"], tmp_path / "onnx", sentences)
    exported = RuntimeModel.from_pretrained(tmp_path / "onnx")
    folders = [runs["assistant"], tmp_path / "onnx"]
    with client_of(folders, [models["assistant"], exported], LIMITS) as client:
        texts = ["play some jazz in the kitchen", ["wake", "me", "at", "seven"]]
        trained, same = (plain(predict(client, texts, model=name)) for name in ("assistant", "onnx"))
        assert_same_answers(trained, same, 1e-4)  # float32, another order of sums
        described = client.get("/v1/models").json()["models"][1]
        assert (described["runtime"], described["encoder"], described["trace"]) == ("onnx", "S-LSTM", False)
        answer = client.post("/v1/trace", json={"text": "play", "model": "onnx"})
        assert answer.status_code == 422
        assert answer.json()["detail"] == "onnx is an exported graph, which keeps no states to show"


def test_a_text_for_an_exported_model_is_cut_into_words_once(models, sentences, tmp_path, monkeypatch):
    export_onnx(models["assistant"], tmp_path / "onnx", sentences)
    exported, seen = RuntimeModel.from_pretrained(tmp_path / "onnx"), []
    tokenize = Tokenizer.tokenize
    monkeypatch.setattr(Tokenizer, "tokenize", lambda self, text: (seen.append(text), tokenize(self, text))[1])
    with client_of([tmp_path / "onnx"], [exported], LIMITS) as client:
        assert predict(client, ["play some jazz"]).status_code == 200
    assert seen == ["play some jazz"]


def test_numbers_that_are_not_finite_are_answered_500(runs, models, monkeypatch):
    with client_of([runs["assistant"]], [models["assistant"]], LIMITS) as client:
        monkeypatch.setattr(client.app.state.services[0].batcher, "answer", lambda examples: [{"score": float("nan")}])
        answer = predict(client, ["a"])
        assert (answer.status_code, answer.json()) == (500, {"detail": "the model's answer is not a finite number"})


def test_models_are_described(client):
    answer = client.get("/v1/models").json()
    described = {model["name"]: model for model in answer["models"]}
    assert list(described) == ["assistant", "labels", "spans"]
    assert (described["labels"]["targets"], described["labels"]["encoder"]) == (["label"], "BiLSTM")
    assert [described[name]["trace"] for name in described] == [True, False, True]
    assert "play_music" in described["labels"]["labels"]
    assert "genre" in described["spans"]["span_labels"]
    assert "O" not in described["spans"]["span_labels"]
    assert answer["limits"]["max_words"] == 20


def test_a_model_that_fails_is_answered_500_and_serves_on(runs, models, monkeypatch):
    with client_of([runs["assistant"]], [models["assistant"]], LIMITS) as client:
        monkeypatch.setattr(client.app.state.services[0].batcher, "answer", lambda examples: 1 // 0)
        answer = predict(client, ["a"])
        assert (answer.status_code, answer.json()) == (500, {"detail": "the model failed on this request"})
        monkeypatch.undo()
        assert predict(client, ["a"]).status_code == 200


def test_two_folders_of_the_same_name_keep_their_paths(runs, models, tmp_path):
    for place, name in (("a", "spans"), ("b", "labels")):
        shutil.copytree(runs[name], tmp_path / place / "x")
    with client_of([tmp_path / "a/x", tmp_path / "b/x"], [models["spans"], models["labels"]]) as client:
        names = [model["name"] for model in client.get("/v1/models").json()["models"]]
    assert names == [str(tmp_path / "a/x"), str(tmp_path / "b/x")]


def test_an_export_inside_a_run_has_the_name_of_the_run(tmp_path, monkeypatch):
    folders = [
        tmp_path / name for name in ("assistant", "reviews", "reviews/onnx", "assistant/onnx-int8", "alone/onnx")
    ]
    for folder in folders:
        folder.mkdir(parents=True)
        (folder / ("export.json" if "onnx" in folder.name else "config.json")).touch()
    assistant, reviews, reviews_onnx, assistant_int8, alone = folders
    assert names_of([assistant, reviews_onnx, alone]) == ["assistant", "reviews", "onnx"]
    assert names_of([assistant_int8, reviews]) == ["assistant", "reviews"], "clients need not know which is served"
    monkeypatch.chdir(reviews)
    alike = [Path("."), Path("onnx"), alone]  # the second is called by its path, as the third by its name
    assert names_of(alike) == [str(reviews), str(reviews_onnx), str(alone)]
    both = [reviews, reviews_onnx, assistant_int8]
    assert names_of(both) == [str(reviews), str(reviews_onnx), "assistant"]


# ---- the token ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def guarded(runs, models):
    with client_of([runs["spans"]], [models["spans"]], token="geheim-ü") as client:
        yield client


@pytest.mark.parametrize("header", [None, "Bearer", "Bearer ", "Bearer geheim", "Basic geheim-ü", "Bearer geheim-üx"])
def test_without_the_token_nothing_is_answered_but_health_and_the_page(guarded, header):
    headers = {"authorization": header.encode()} if header else {}
    for method, path in (("POST", "/v1/predict"), ("POST", "/v1/trace"), ("GET", "/v1/models"), ("GET", "/metrics")):
        answer = guarded.request(method, path, headers={**JSON, **headers}, content=b'{"texts": ["a"]}')
        assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
    for path in ("/", "/health", "/ready"):
        assert guarded.get(path, headers=headers).status_code == 200


def test_with_the_token_everything_is_answered(guarded):
    headers = {**JSON, "authorization": "Bearer geheim-ü".encode()}
    assert guarded.post("/v1/predict", headers=headers, content=b'{"texts": ["a"]}').status_code == 200
    assert guarded.get("/metrics", headers=headers).status_code == 200


def test_openapi_says_that_a_token_is_needed(guarded, client):
    operation = guarded.get("/openapi.json").json()["paths"]["/v1/predict"]["post"]
    assert operation["security"] == [{"HTTPBearer": []}]
    assert "401" in operation["responses"]
    assert "security" not in client.get("/openapi.json").json()["paths"]["/v1/predict"]["post"]


# ---- metrics, description, headers --------------------------------------------------------------


def test_metrics_count_requests_batches_and_words(runs, models):
    with client_of([runs["spans"]], [models["spans"]], LIMITS) as client:
        predict(client, ["play some jazz", "stop"])
        predict(client, [])
        client.get("/no/such/path")
        families = {f.name: f for f in text_string_to_metric_families(client.get("/metrics").text)}
    requests = {(s.labels["path"], s.labels["status"]): s.value for s in families["sentence_state_requests"].samples
                if s.name.endswith("_total")}  # fmt: skip
    assert requests == {("/v1/predict", "200"): 1, ("/v1/predict", "422"): 1, ("other", "404"): 1}
    words = [sample.value for sample in families["sentence_state_words"].samples if sample.name.endswith("_total")]
    assert words == [4]
    assert families["sentence_state_queue_sentences"].samples[0].value == 0
    assert "process_resident_memory_bytes" in families


def test_openapi_describes_every_path_and_every_refusal(client):
    paths = client.get("/openapi.json").json()["paths"]
    assert sorted(paths) == ["/health", "/metrics", "/ready", "/v1/models", "/v1/predict", "/v1/trace"]
    statuses = set(paths["/v1/predict"]["post"]["responses"])
    assert statuses == {"200", "404", "408", "413", "415", "422", "429", "500", "503"}
    assert paths["/v1/predict"]["post"]["requestBody"]["required"]


def test_every_answer_forbids_the_browser_what_the_page_does_not_need(client):
    for path in ("/", "/health", "/page/page.css", "/nothing"):
        policy = client.get(path).headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert client.get(path).headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    "path", ["/", "/health", "/ready", "/v1/models", "/metrics", "/page/page.css", "/openapi.json"]
)
def test_head_is_answered_as_get_without_its_content(client, path):
    head, get = client.head(path), client.get(path)
    assert (head.status_code, head.headers["content-type"], head.content) == (200, get.headers["content-type"], b"")
    assert client.head("/v1/predict").status_code == 405


@pytest.mark.parametrize(("method", "path"), [("GET", "/v1/models/"), ("POST", "/v1/predict/"), ("GET", "/health/")])
def test_no_answer_sends_the_client_to_another_host(client, method, path):
    answer = client.request(method, path, headers={"host": "other.example"}, follow_redirects=False)
    assert (answer.status_code, answer.json()) == (404, {"detail": "Not Found"})
    assert "location" not in answer.headers


def test_the_page_names_no_other_host_and_needs_no_build(client):
    files = page_files()
    assert "/" in files
    for path, (content, kind) in files.items():
        assert client.get(path).headers["content-type"] == kind
        text = content.decode()
        assert not re.search(r"(?:https?:)?//[\w-]+\.\w", text.replace("http://www.w3.org/2000/svg", "")), path
        assert not re.search(r"""\son\w+=["']|\sstyle=["']""", text) or path.endswith(".js"), path


def test_json_answers_are_what_their_description_says(client):
    answer = client.post("/v1/predict", content=json.dumps({"texts": ["play jazz"]}), headers=JSON).json()
    assert set(answer["predictions"][0]) == {"label", "score", "probabilities", "spans"}
    assert sum(answer["predictions"][0]["probabilities"].values()) == pytest.approx(1, abs=1e-4)
