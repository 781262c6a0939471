"""The page reads a file as `predict --input` does: the modules of the page in a Chromium beside sentence_state.data."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sentence_state.data import DataError, read_lines, read_table, read_tagged
from sentence_state.serving.page import page_files

from .browser import chromium

HOST = "http://page.test"
READ = """async ([name, bytes]) => {
  const { decoded } = await import("/page/text.js");
  const { readFile, guessColumn } = await import("/page/reading.js");
  let file;
  try {
    file = readFile(name, decoded(new Uint8Array(bytes).buffer));
  } catch (error) {
    return error.message;
  }
  const column = guessColumn(file);
  return file.rows.map((row) => row[column]);
}"""


@pytest.fixture(scope="module")
def page():
    found = {HOST + path: content for path, content in page_files().items()}
    with chromium() as browser:
        opened = browser.new_page()

        def answer(route):
            body, kind = found.get(route.request.url, (b"<!doctype html>", "text/html"))
            route.fulfill(body=body, content_type=kind)

        opened.route("**/*", answer)
        opened.goto(f"{HOST}/empty")
        yield opened


def of_page(page, name: str, content: bytes) -> list[str] | str:
    """The texts in the file, less those without a word; or why it is refused."""
    found = page.evaluate(READ, [name, list(content)])
    if isinstance(found, str):
        return found
    texts = [" ".join(text) if isinstance(text, list) else text for text in found]
    return [text for text in texts if text.strip()]


def of_python(path, content: bytes) -> list[str] | None:
    """The same of `predict --input`; None if it is refused."""
    path.write_bytes(content)
    try:
        if path.suffix == ".conll":
            return [" ".join(example.words) for example in read_tagged(path, tag_column=None).examples]
        read = read_lines(path) if path.suffix == ".txt" else read_table(path, labelled=False, skip_empty=True)
    except DataError:
        return None
    return [example.text for example in read.examples]


ROWS = b"1;good film;pos\n2;bad film;neg\n3;fine, long film;pos\n"
FILES = {
    "semicolons.csv": b"id;text;label\n" + ROWS,
    "commas in cells.csv": b"id;review_text;label\n" + ROWS,
    "bars.csv": b"id|body|y\n1|good film|a\n2|bad; very|b\n",
    "tabs in a csv.csv": b"text\tlabel\ngood, film\tpos\nbad\tneg\n",
    "a comma in every line.csv": b"pos\tthe film was bad , really plot\nneg\ta plot , a film\n",
    "commas in a tsv.tsv": b"text,label\ngood film,pos\nbad,neg\n",
    "quotes.tsv": b'text\tlabel\nsay "no\tpos\nor "yes\tneg\n5" disk\tpos\n',
    "backslashes.csv": b'text,label\n"say \\"no\\", he",pos\n"fine",neg\n',
    "spaces.csv": b'text, label\n"good, film", pos\n"bad", neg\n',
    "unquoted.csv": b'text;label\n"good" film;pos\nbad "film;neg\n',
    "lines in cells.csv": b'text,label\n"one\ntwo",pos\n"three ""quoted""",neg\n',
    "whole before part.csv": b"tweet_text,text\nshort,a much longer one\ns,and this\n",
    "order of names.csv": b"title,text\na very long title of a film,good\nanother long title,bad\n",
    "part.csv": b"id,tweet_text,airline_sentiment\n1,good,pos\n2,bad,neg\n",
    "for excel.csv": b"sep=;\ntext;label\ngood, film;pos\nbad;neg\n",
    "long labels.csv": b"verdict_label,said\nvery negative,bad\nvery positive,good\nvery negative,x\n",
    "labels alone.csv": b"label,score\nvery negative,1\nvery positive,2\n",
    "longest.csv": b"a,b\nx,good film\ny,bad film\nz,x\n",
    "a comma more.csv": b"utt,kind,\n" + b"good film,pos,\nbad film,neg,\n" * 3,
    "first without a name.csv": b",utt,kind\n0,good film,pos\n1,bad film,neg\n2,fine film,pos\n3,a film,neg\n",
    "numbered by pandas.csv": b",0,1\n0,good film,pos\n1,bad film,neg\n",
    "not numbered.csv": b",0,1\n1,good film,pos\n0,bad film,neg\n",
    "json.csv": b'{"text": "good", "label": "pos"}\n{"text": "bad", "label": "neg"}\n',
    "numbers.jsonl": b'{"id": 1, "text": "good"}\n\n{"text": "bad", "n": null}\n',
    "no header.csv": b"pos,good film\nneg,bad film\npos,fine film\n",
    "uneven.csv": b"text,label\ngood,film,pos\nbad,neg\n",
    "empty.csv": b" \n",
    "old mac.csv": b"text,label\rgood,pos\rbad,neg\r",
    "three line ends.csv": b"text,label\r\ngood,pos\r\r\nbad,neg\n",
    "old windows.csv": "text,label\ncaf\u00e9 cr\u00e8me,pos\nbad,neg\n".encode("cp1252"),
    "damaged.csv": "text,label\ncaf\u00e9 \u00fcber \u4e2d\u6587 \u00e9t\u00e9,pos\n".encode() + b"x\xe9y,neg\n",
    "utf-16.csv": "text,label\ngood,pos\nb\u00e4d,neg\n".encode("utf-16"),
    "unmarked.csv": "text,label\ngood,pos\n".encode("utf-16-le"),
    "workbook.csv": b"PK\x03\x04 and so on",
    "lines.txt": "one\u2028line\n\n two \n".encode(),
    "words.conll": b"good JJ O\nfilm NN O\n\nbad JJ O\n",
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_read_alike(page, name, tmp_path):
    expected = of_python(tmp_path / name, FILES[name])
    found = of_page(page, name, FILES[name])
    assert isinstance(found, str) if expected is None else found == expected


@settings(max_examples=300, deadline=None)
@given(
    rows=st.lists(st.lists(st.text('ab "\\,;\t|', max_size=5), min_size=1, max_size=3), min_size=1, max_size=6),
    mark=st.sampled_from(",;\t|"),
    end=st.sampled_from([".csv", ".tsv"]),
    header=st.sampled_from([None, "text", "label"]),
)
def test_odd_tables_are_read_alike(page, tmp_path_factory, rows, mark, end, header):
    lines = [mark.join(row) for row in rows]
    if header is not None:
        lines.insert(0, mark.join([header, *("xy"[: len(rows[0]) - 1])]))
    content = "\n".join(lines).encode()
    expected = of_python(tmp_path_factory.getbasetemp() / f"odd{end}", content)
    found = of_page(page, f"odd{end}", content)
    assert isinstance(found, str) or not found if expected is None else found == expected
