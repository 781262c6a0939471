"""The page in a real Chromium, against a server process of its own."""

from __future__ import annotations

import csv
import io
import json

import pytest
from playwright.sync_api import expect

from .browser import chromium
from .test_server import Server

KINDS = ("of-input", "of-left", "of-own", "of-right", "of-sentence")
TEXT = "play some quiet jazz in the kitchen"


@pytest.fixture(scope="module")
def address(runs, tmp_path_factory):
    folders = [str(runs[name]) for name in ("assistant", "labels", "spans")]
    server = Server([*folders, "--max-words", "40"], tmp_path_factory.mktemp("page"))
    yield f"http://{server.host}:{server.port}/"
    server.stop()
    server.process.communicate()


@pytest.fixture(scope="module")
def browser():
    with chromium() as running:
        yield running


@pytest.fixture
def page(browser, address, request):
    """A page that may call this server only, and whose script and policy may not fail."""
    options = getattr(request, "param", {"viewport": {"width": 1200, "height": 900}})
    context = browser.new_context(**options)
    opened = context.new_page()
    wrong: list[str] = []
    opened.on("pageerror", lambda error: wrong.append(f"error: {error}"))
    opened.on("console", lambda line: wrong.append(line.text) if is_wrong(line) else None)
    opened.on("request", lambda one: wrong.append(one.url) if not one.url.startswith((address, "blob:")) else None)
    opened.goto(address)
    expect(opened.locator(".panel .answer")).to_be_visible()
    yield opened
    context.close()
    assert not wrong


def is_wrong(line) -> bool:
    return line.type == "error" and "422" not in line.text  # that a text is refused, the browser notes too


def type_text(page, text):
    page.get_by_label("Sentence", exact=True).fill(text)
    page.keyboard.press("Enter")  # asks at once
    expect(page.locator(".panel:not(.busy) .exchange")).to_be_visible()


def test_a_typed_sentence_gets_its_label_and_spans(page, models):
    type_text(page, TEXT)
    (expected,) = models["assistant"].predict([TEXT])
    expect(page.locator(".answer .verdict")).to_contain_text(expected["label"])
    expect(page.locator(".answer mark")).to_have_count(len(expected["spans"]))
    assert expected["spans"], "the small model should find something here"
    for mark, span in zip(page.locator(".answer mark").all(), expected["spans"], strict=True):
        assert mark.evaluate("mark => mark.firstChild.textContent") == span["text"]
        expect(mark.locator(".tag")).to_have_text(span["label"])
    expect(page.locator(".answer .bars li")).to_have_count(6)


def test_markup_emoji_and_right_to_left_text_stay_text(page):
    family, arabic = "\U0001f468\u200d\U0001f469\u200d\U0001f467", "\u0645\u0631\u062d\u0628\u0627"
    for text in ("<img src=x onerror=alert(1)> play jazz", f"\U0001f600{family} play jazz", f"{arabic} play jazz"):
        type_text(page, text)
        shown = page.locator(".answer .tagged").evaluate(
            "p => [...p.childNodes].map(n => n.nodeType === 3 ? n.data : n.firstChild.data).join('')"
        )
        assert shown == text
    assert page.locator("main img").count() == 0


def test_the_slider_shows_each_step_and_the_shares_are_the_servers(page, address):
    type_text(page, TEXT)
    found = page.request.post(f"{address}v1/trace", data={"text": TEXT}).json()
    slider = page.get_by_label("Step of the exchange")
    last = len(found["steps"])
    expect(slider).to_have_value(str(last))
    page.get_by_text("All numbers of this step").click()
    slider.focus()
    for step in range(last - 1, 0, -1):
        page.keyboard.press("ArrowLeft")
        expect(page.locator(".steps output")).to_have_text(f"Step {step} of {last}")
        rows = page.locator(".exchange details tbody tr").evaluate_all(
            "rows => rows.map(row => [...row.children].map(cell => cell.textContent))"
        )
        assert [row[0] for row in rows] == found["words"]
        expected = [f"{share:.3f}" for share in found["steps"][step - 1]["words"][1]]
        assert rows[1][1:6] == expected
        said = found["steps"][step - 1]["prediction"]
        expect(page.locator(".stopped .verdict")).to_contain_text(said["label"])
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".reading")).to_contain_text("nothing was exchanged yet")
    expect(page.locator(".stopped .verdict")).to_have_count(0)
    page.get_by_role("button", name="Play", exact=True).click()
    expect(page.locator(".steps output")).to_have_text(f"Step {last} of {last}", timeout=15_000)


def test_flows_are_as_wide_as_their_shares(page, address):
    type_text(page, TEXT)
    step = page.request.post(f"{address}v1/trace", data={"text": TEXT}).json()["steps"][-1]
    for word in (1, 3):
        flows = page.locator(f".figure svg g.word-mark:nth-of-type({word + 1}) .flow")
        widths = dict(flows.evaluate_all("all => all.map(f => [f.classList[1], parseFloat(f.style.strokeWidth)])"))
        expected = dict(zip(KINDS, step["words"][word], strict=True))
        for kind in ("of-input", "of-left", "of-right", "of-sentence"):
            assert widths[kind] == pytest.approx(32 * expected[kind], rel=1e-3)


def test_a_word_is_chosen_with_the_keyboard_and_read_out(page):
    type_text(page, TEXT)
    page.locator(".words button").nth(1).focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(page.locator(".words button[aria-pressed=true]")).to_have_text("quiet")
    expect(page.locator(".reading")).to_contain_text("“quiet” took")
    expect(page.locator(".reading")).to_contain_text("from “some”")
    assert page.locator(".reading").get_attribute("aria-live") == "polite"


def test_two_models_stand_side_by_side_and_one_without_an_exchange_says_so(page):
    type_text(page, TEXT)
    page.get_by_label("Compare with").select_option("labels")
    expect(page.locator(".panel")).to_have_count(2)
    second = page.locator(".panel").nth(1)
    expect(second.locator(".verdict")).to_be_visible()
    expect(second.locator(".exchange")).to_contain_text("BiLSTM is no S-LSTM")
    left, right = (one.bounding_box() for one in page.locator(".panel").all())
    assert left["y"] == right["y"]
    assert right["x"] > left["x"] + left["width"]


def test_a_refusal_is_shown_in_words(page):
    page.get_by_label("Sentence", exact=True).fill("word " * 41)
    expect(page.locator(".panel .trouble")).to_have_text("the text has 41 words, at most 40 are read")
    type_text(page, TEXT)
    expect(page.locator(".panel .trouble")).to_have_count(0)


def test_the_sentence_is_in_the_address(page, address):
    type_text(page, "stop the music, 100% & more")
    page.reload()
    expect(page.get_by_label("Sentence", exact=True)).to_have_value("stop the music, 100% & more")


FILES = {
    "a.csv": ('id,text\n1,"play jazz, loud"\n2,"she said ""stop"""\n', ["play jazz, loud", 'she said "stop"']),
    "a.tsv": ("text\tid\nplay jazz\t1\nstop\t2\n", ["play jazz", "stop"]),
    "a.jsonl": ('{"id": 1, "text": "play jazz"}\n\n{"id": 2, "text": "stop \\u00e9"}\n', ["play jazz", "stop é"]),
    "a.txt": ("\ufeffplay jazz\r\n\r\nstop\r\n", ["play jazz", "stop"]),
    "a.conll": ("-DOCSTART- O\n\nplay O\njazz B-genre\n\nstop O\n", ["play jazz", "stop"]),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_a_file_becomes_a_table_and_two_downloads(page, name, models):
    content, texts = FILES[name]
    page.get_by_role("tab", name="A file").click()
    page.locator("#file").set_input_files({"name": name, "mimeType": "text/plain", "buffer": content.encode()})
    expect(page.locator("#batch-state")).to_have_text("2 texts are answered.")
    expected = models["assistant"].predict(texts)
    assert page.locator("#answers tbody td:nth-child(3)").all_text_contents() == [e["label"] for e in expected]
    with page.expect_download() as download:
        page.get_by_role("button", name="Download CSV").click()
    assert download.value.suggested_filename == "a.answers.csv"
    rows = list(csv.DictReader(io.StringIO(download.value.path().read_text(encoding="utf-8"))))
    assert [row["text"] for row in rows] == texts
    assert [row["label"] for row in rows] == [one["label"] for one in expected]
    assert [len(json.loads(row["spans"])) for row in rows] == [len(one["spans"]) for one in expected]
    with page.expect_download() as download:
        page.get_by_role("button", name="Download JSON lines").click()
    lines = [json.loads(line) for line in download.value.path().read_text(encoding="utf-8").splitlines()]
    assert [line["text"] for line in lines] == texts


AS_THEY_COME = {
    "no header.csv": (b"1,play jazz\n2,stop\n", ["play jazz", "stop"]),
    "numbers.csv": (b"7,play jazz\n7,stop\n7,go\n7,wait\n", ["play jazz", "stop", "go", "wait"]),
    "header.csv": (b"kind,what\nx,play jazz\nx,stop\nx,go\n", ["play jazz", "stop", "go"]),
    "russian.csv": ("\u0422\u0435\u043a\u0441\u0442,\u0412\u0438\u0434\nplay jazz,x\nstop,x\n".encode(),
                    ["play jazz", "stop"]),
    "questions.csv": (b"Q1: Comment,Q2: Rating (1-5)\n" + b"play jazz,5\n" * 10, ["play jazz"] * 10),
    "one column.csv": (b"comment\nplay jazz\nstop\n", ["play jazz", "stop"]),
    "windows.csv": ("text\ncaf\u00e9\nna\u00efve\n".encode("cp1252"), ["caf\u00e9", "na\u00efve"]),
    "spreadsheet.tsv": ("id\ttext\n1\tplay jazz\n2\t\u043f\u0440\u0438\u0432\u0435\u0442\n".encode("utf-16"),
                        ["play jazz", "\u043f\u0440\u0438\u0432\u0435\u0442"]),
    "words.jsonl": (b'{"words": ["play", "jazz"], "n": 1}\n{"words": ["stop"], "n": 2}\n', ["play jazz", "stop"]),
}  # fmt: skip


@pytest.mark.parametrize("name", AS_THEY_COME)
def test_a_file_may_have_no_header_another_encoding_or_words(page, name):
    content, texts = AS_THEY_COME[name]
    page.get_by_role("tab", name="A file").click()
    page.locator("#file").set_input_files({"name": name, "mimeType": "text/plain", "buffer": content})
    expect(page.locator("#batch-state")).to_have_text(f"{len(texts)} texts are answered.")
    with page.expect_download() as download:
        page.get_by_role("button", name="Download JSON lines").click()
    lines = [json.loads(line) for line in download.value.path().read_text(encoding="utf-8").splitlines()]
    assert [line["text"] for line in lines] == texts


def test_a_download_is_of_the_model_that_answered(page):
    page.get_by_role("tab", name="A file").click()
    page.locator("#file").set_input_files({"name": "a.txt", "mimeType": "text/plain", "buffer": b"play jazz\nstop\n"})
    expect(page.locator("#batch-state")).to_have_text("2 texts are answered.")
    page.locator("#batch-model").select_option("spans")
    with page.expect_download() as download:
        page.get_by_role("button", name="Download CSV").click()
    assert download.value.path().read_text(encoding="utf-8").splitlines()[0] == "text,label,score,spans"


def test_a_file_with_texts_that_cannot_be_read_keeps_the_others(page):
    page.get_by_role("tab", name="A file").click()
    content = "play jazz\n\u200b\n" + "word " * 41 + "\n" + "stop\n" * 70
    page.locator("#file").set_input_files({"name": "b.txt", "mimeType": "text/plain", "buffer": content.encode()})
    expect(page.locator("#batch-state")).to_have_text("73 texts are answered, 2 of them could not be read.")
    expect(page.locator("#answers tbody .trouble")).to_have_text(
        ["the text has no words", "the text has 41 words, at most 40 are read"]
    )


def test_a_file_that_is_no_json_is_refused_with_its_line(page):
    page.get_by_role("tab", name="A file").click()
    content = b'{"text": "a"}\n{"text": \n'
    page.locator("#file").set_input_files({"name": "b.jsonl", "mimeType": "text/plain", "buffer": content})
    expect(page.locator("#batch-state")).to_have_text("Line 2 is no JSON.")


def test_tabs_obey_the_arrow_keys(page):
    page.get_by_role("tab", name="A sentence").focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("tab", name="A file")).to_be_focused()
    expect(page.locator("#view-file")).to_be_visible()
    expect(page.locator("#view-sentence")).to_be_hidden()


PHONE = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True}


@pytest.mark.parametrize("page", [PHONE], indirect=True)
def test_on_a_phone_nothing_is_wider_than_the_screen_and_everything_can_be_touched(page):
    type_text(page, TEXT + " " + "supercalifragilistic" * 4)
    for tab in ("A file", "A sentence"):
        page.get_by_role("tab", name=tab).tap()
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
    heights = page.locator("main button:visible, main select:visible, main input[type=range]:visible").evaluate_all(
        "all => all.map(one => one.getBoundingClientRect().height)"
    )
    assert min(heights) >= 44
    page.locator(".words button").nth(2).tap()
    expect(page.locator(".reading")).to_contain_text("“some” took")


CONTRAST = """() => {
  const numbers = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (node) => {
    const [r, g, b, a = 1] = numbers(getComputedStyle(node).backgroundColor);
    return a > 0 || !node.parentElement ? [r, g, b] : behind(node.parentElement);
  };
  const found = [];
  for (const node of document.querySelectorAll("main *, header *, footer *")) {
    const own = [...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim());
    if (!own || !node.checkVisibility() || node.closest("svg") || node.closest(".away")) continue;
    const [a, b] = [light(numbers(getComputedStyle(node).color)), light(behind(node))].sort((x, y) => y - x);
    found.push([(a + 0.05) / (b + 0.05), node.className || node.tagName, node.textContent.slice(0, 30)]);
  }
  return found.sort((x, y) => x[0] - y[0]);
}"""


@pytest.mark.parametrize(
    "page",
    [{"color_scheme": scheme, "viewport": {"width": 1200, "height": 900}} for scheme in ("light", "dark")],
    indirect=True,
    ids=["light", "dark"],
)
def test_text_has_contrast_and_controls_have_names(page):
    type_text(page, TEXT)
    found = page.evaluate(CONTRAST)
    assert len(found) > 30
    assert found[0][0] >= 4.5, found[:3]
    unnamed = page.locator("button, select, textarea, input:not([type=file])").evaluate_all(
        "all => all.filter(one => !one.textContent.trim() && !one.labels?.length && !one.ariaLabel).map(one => one.id)"
    )
    assert not unnamed


def test_a_server_with_a_token_asks_for_it(browser, runs, tmp_path):
    (tmp_path / "token").write_text("sesame-ü-сезам", encoding="utf-8")
    server = Server([str(runs["spans"]), "--token-file", "token"], tmp_path)
    try:
        page = browser.new_page()
        page.goto(f"http://{server.host}:{server.port}/")
        page.get_by_label("This server asks for a token").fill("wrong")
        page.get_by_role("button", name="Use it").click()
        expect(page.get_by_role("alert")).to_have_text("The server does not accept this token.")
        page.get_by_label("This server asks for a token").fill("sesame-ü-сезам")
        page.get_by_role("button", name="Use it").click()
        expect(page.locator(".panel .answer")).to_be_visible()
        expect(page.get_by_role("alert")).to_be_hidden()
        page.close()
    finally:
        server.stop()
        server.process.communicate()
