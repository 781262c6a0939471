"""CSV, TSV and JSONL as people write them, and the message for everything that is wrong with one."""

import csv
import gzip
import json
import subprocess
import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sentence_state.data.errors import DataError
from sentence_state.data.streamed_forms import table_form
from sentence_state.data.streaming import StreamedExamples
from sentence_state.data.tables import read_lines, read_table
from sentence_state.data.tokenizer import Tokenizer


def write(tmp_path, text, name="reviews.csv"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def pairs(corpus):
    return [(example.text, example.label) for example in corpus.examples]


def message(path, **options):
    with pytest.raises(DataError) as error:
        read_table(path, **options)
    assert str(error.value).startswith(str(path))
    return str(error.value).removeprefix(str(path.parent) + "/")


GOOD, BAD = ("a fine film", "pos"), ("a dull one", "neg")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("reviews.csv", "text,label\na fine film,pos\na dull one,neg\n"),
        ("reviews.csv", "\ufefftext,label\r\na fine film,pos\r\na dull one,neg"),
        ("reviews.csv", "label;review\npos;a fine film\n\nneg;a dull one\n;\n"),
        ("reviews.csv", "id|Sentiment|Text\n1|pos|a fine film\n2|neg|a dull one\n"),
        ("reviews.csv", '"text","label"\n"a fine film","pos"\n"a dull one","neg"\n'),
        ("reviews.tsv", "text\tlabel\na fine film\tpos\na dull one\tneg\n"),
        ("reviews.txt", "a fine film\tpos\na dull one\tneg\n"),
        ("reviews.csv", "pos,a fine film\nneg,a dull one\n"),
        ("reviews.jsonl", '{"text": "a fine film", "label": "pos"}\n\n{"label": "neg", "text": "a dull one"}\n'),
        ("reviews.data", '{"review": "a fine film", "stars": "pos"}\n{"stars": "neg", "review": "a dull one"}'),
    ],
)
def test_the_same_two_reviews_are_read_from_every_form(tmp_path, name, text):
    assert pairs(read_table(write(tmp_path, text, name))) == [GOOD, BAD]


def test_gzip_is_read(tmp_path):
    path = write(tmp_path, gzip.compress(b"text,label\na fine film,pos\na dull one,neg\n"), "reviews.csv.gz")
    assert pairs(read_table(path)) == [GOOD, BAD]


def test_words_come_with_offsets_into_the_text(tmp_path):
    example = read_table(write(tmp_path, 'text,label\n"fine, isn\'t it?",pos\nno,neg\n')).examples[0]
    assert example.words == ["fine", ",", "is", "n't", "it", "?"]
    assert [example.text[start:end] for start, end in example.offsets] == example.words


def test_tokenised_text_is_left_as_it_is_when_asked(tmp_path):
    path = write(tmp_path, "text,label\nit's fine.,pos\nno,neg\n")
    tokenizer = Tokenizer(whitespace=True, contractions=False)
    assert read_table(path, tokenizer=tokenizer).examples[0].words == ["it's", "fine."]


def test_columns_can_be_named_or_numbered(tmp_path):
    path = write(tmp_path, "text,label,title,kind\na,x,a fine film,pos\nb,y,a dull one,neg\n")
    assert pairs(read_table(path, text_column="title", label_column="kind")) == [GOOD, BAD]
    assert pairs(read_table(path, text_column="3", label_column="4")) == [GOOD, BAD]


def test_columns_without_usual_names_are_found_by_their_content(tmp_path):
    rows = "".join(f"{i},film number {i} is long,{'good' if i % 3 else 'bad'},x{i}\n" for i in range(30))
    corpus = read_table(write(tmp_path, "nr,what,verdict,code\n" + rows))
    assert pairs(corpus)[0] == ("film number 0 is long", "bad")
    assert corpus.description[1] == "text from column 'what', label from column 'verdict'"


def test_columns_are_found_by_the_end_of_their_names(tmp_path):
    rows = "".join(f"{i},{i % 2},{'good' if i % 3 else 'bad'},film {i} is long\n" for i in range(9))
    corpus = read_table(write(tmp_path, "review_id,flag,airline_sentiment,comment_text\n" + rows))
    assert corpus.description[1] == "text from column 'comment_text', label from column 'airline_sentiment'"


@pytest.mark.parametrize(
    "names",
    [
        "Текст,Метка",
        "本文,ラベル",
        "Überschrift,Änderung",
        "पाठ,श्रेणी",
        "Q1: Comment,Q2: Rating (1-5)",
        "What did you like?,Would you come again? (please choose)",
    ],
)
@pytest.mark.parametrize("labels", [("да", "нет"), ("1", "5")])
def test_a_header_is_found_in_every_language(tmp_path, names, labels):
    path = write(tmp_path, names + "\n" + "".join(f"film {i} is long,{labels[i % 2]}\n" for i in range(60)))
    corpus = read_table(path)
    assert {example.label for example in corpus.examples} == set(labels)
    assert len(corpus.examples) == 60
    assert "a header as it seems (--header to choose)" in corpus.description[0]
    assert len(read_table(path, header=False).examples) == 61
    assert len(StreamedExamples([path], table_form(path))) == 60
    assert len(StreamedExamples([path], table_form(path, header=False))) == 61


def test_tabs_go_before_commas_that_every_text_has(tmp_path):
    path = write(tmp_path, "pos\ta film , fine\nneg\ta film , dull\n", "reviews.txt")
    assert pairs(read_table(path)) == [("a film , fine", "pos"), ("a film , dull", "neg")]


@pytest.mark.parametrize("size", [1, 2, 60])
def test_a_column_of_row_numbers_has_an_empty_header(tmp_path, size):
    rows = "".join(f"{i},film {i} is long,{('neg', 'pos')[i % 2]}\n" for i in range(size))
    path = write(tmp_path, ",0,1\n" + rows)
    assert len(read_table(path, text_column="0", label_column="1").examples) == size
    assert "a header, UTF-8" in read_table(path, labelled=False).description[0]
    if size > 1:
        assert len(StreamedExamples([path], table_form(path, text_column="0", label_column="1"))) == size


@pytest.mark.parametrize("first", ["a film that is fine,pos", "7,neutral", "so: so,1"])
def test_a_first_row_like_the_others_is_no_header(tmp_path, first):
    rows = "".join(f"film {i} is long,{('pos', 'neg', '1')[i % 3]}\n" for i in range(60))
    assert len(read_table(write(tmp_path, f"{first}\n{rows}")).examples) == 61


def test_columns_without_a_name_at_the_end_of_a_header_do_not_hide_it(tmp_path):
    rows = ["v1,v2,,,", *(f"{'spam' if i % 3 else 'ham'},some text {i},,,{'x' * (i == 7)}" for i in range(20))]
    path = write(tmp_path, "\n".join(rows))
    corpus = read_table(path)
    assert "text from column 'v2', label from column 'v1'" in corpus.description
    assert (len(corpus.examples), {example.label for example in corpus.examples}) == (20, {"spam", "ham"})
    assert len(StreamedExamples([path], table_form(path))) == 20
    assert len(read_table(write(tmp_path, "\n".join(rows[1:]))).examples) == 20


def test_columns_that_are_empty_everywhere_make_no_header(tmp_path):
    path = write(tmp_path, "".join(f"a text of its own {i},and another {i},,\n" for i in range(20)))
    assert len(read_table(path, labelled=False).examples) == 20


def test_whether_there_is_a_header_can_be_said(tmp_path):
    path = write(
        tmp_path, "Great,excellent\n" + "".join(f"film number {i},{'bad' if i % 2 else 'good'}\n" for i in range(9))
    )
    assert pairs(read_table(path, header=False))[0] == ("Great", "excellent")
    assert len(read_table(path, header=True).examples) == 9


def test_numbers_and_booleans_of_json_become_labels(tmp_path):
    path = write(tmp_path, '{"text": "a", "label": 1}\n{"text": "b", "label": false}\n', "a.jsonl")
    assert [example.label for example in read_table(path).examples] == ["1", "false"]


def test_nan_in_json_is_a_missing_value(tmp_path):
    rows = [{"text": "a", "label": "x"}, {"text": float("nan"), "label": "y"}, {"text": "b", "label": float("nan")}]
    path = write(tmp_path, "\n".join(map(json.dumps, [*rows, {"text": "NaN", "label": "y"}])), "reviews.jsonl")
    assert message(path) == "reviews.jsonl:2: empty text (--skip-empty to leave such rows out)"
    assert pairs(read_table(path, skip_empty=True)) == [("a", "x"), ("NaN", "y")]


def test_what_was_found_out_is_described(tmp_path):
    path = write(tmp_path, "text;label\na fine film;pos\na caf\xe9;pos\na dull one;neg\n".encode("cp1252"))
    assert read_table(path).description == [
        f"{path}: 3 examples (semicolon-separated, a header, cp1252 (line 3 is not UTF-8; --encoding to choose))",
        "text from column 'text', label from column 'label'",
        "2 labels: pos 2, neg 1",
    ]


def test_a_quoted_cell_over_several_lines_keeps_the_line_numbers_right(tmp_path):
    path = write(tmp_path, 'text,label\n"one\n\ntwo ""quoted"", yes",pos\nthree,neg\n')
    corpus = read_table(path)
    assert [example.lines for example in corpus.examples] == [(2,), (5,)]
    assert corpus.examples[0].text == 'one\n\ntwo "quoted", yes'


@pytest.mark.parametrize(
    "text",
    [
        'text\tlabel\n"Good" he said\tpos\nfine\tneg\n',
        'text\tlabel\n"unclosed good\tpos\nfine\tneg\n',
        'text\tlabel\n"unclosed\tpos\nand closed"\tneg\n',
    ],
)
def test_quotes_of_a_tsv_are_text_where_they_cannot_be_quoting(tmp_path, text):
    corpus = read_table(write(tmp_path, text, "reviews.tsv"))
    assert [example.text for example in corpus.examples] == [line.split("\t")[0] for line in text.split("\n")[1:3]]
    assert "quotes are part of the text" in corpus.description[0]


def test_quotes_escaped_by_backslashes_are_read(tmp_path):
    path = write(tmp_path, 'text,label\n"he said \\"fine, yes\\" twice",pos\nno,neg\n')
    assert pairs(read_table(path))[0] == ('he said "fine, yes" twice', "pos")


def test_spaces_after_the_separators_are_no_part_of_the_quoting(tmp_path):
    path = write(tmp_path, 'label, text\npos, "a gorgeous , witty film"\nneg, "no"\n')
    corpus = read_table(path)
    assert pairs(corpus) == [("a gorgeous , witty film", "pos"), ("no", "neg")]
    assert "spaces after the separators" in corpus.description[0]


def test_a_text_longer_than_the_csv_modules_limit_is_read(tmp_path):
    limit = csv.field_size_limit()
    path = write(tmp_path, f"text,label\n{'word ' * 50_000},pos\nno,neg\n")
    assert len(read_table(path).examples[0].words) == 50_000
    assert csv.field_size_limit() == limit


def test_texts_are_read_without_labels(tmp_path):
    assert pairs(read_table(write(tmp_path, "id,text\n1,a fine film\n"), labelled=False)) == [("a fine film", None)]
    corpus = read_lines(write(tmp_path, "a fine film\n\n  \na dull one", "texts.txt"))
    assert pairs(corpus) == [("a fine film", None), ("a dull one", None)]
    assert corpus.examples[1].lines == (4,)


def test_empty_rows_can_be_left_out_and_are_counted(tmp_path):
    path = write(tmp_path, "text,label\na fine film,pos\n  ,pos\nx,\na dull one,neg\n")
    corpus = read_table(path, skip_empty=True)
    assert pairs(corpus) == [GOOD, BAD]
    assert corpus.description[-1] == "2 rows without text or label left out (the first on line 3)"


def test_a_json_array_can_be_turned_into_lines_as_the_message_says(tmp_path):
    rows = [{"text": "a caf\u00e9", "label": "pos"}, {"text": "b", "label": "neg"}]
    path = write(tmp_path, json.dumps(rows, indent=1, ensure_ascii=False), "FILE.json")
    command = message(path).partition("To write it so: ")[2].replace("python", sys.executable, 1)
    subprocess.run(command, shell=True, cwd=tmp_path, check=True)
    assert pairs(read_table(tmp_path / "FILE.jsonl")) == [("a caf\u00e9", "pos"), ("b", "neg")]


def test_a_missing_column_lists_those_there_are(tmp_path):
    path = write(tmp_path, "text,sentiment\na,pos\nb,neg\n")
    expected = "reviews.csv:1: no column 'label'. Columns: text, sentiment. Try --label-column sentiment"
    assert message(path, label_column="label") == expected


def test_one_column_cannot_be_text_and_label(tmp_path):
    path = write(tmp_path, "text,label\na,pos\nb,neg\n")
    expected = (
        "reviews.csv:1: text and label are both the column 'text'. Columns: text, label. Try --label-column label"
    )
    for column in ("text", "1"):
        assert message(path, text_column="text", label_column=column) == expected
        with pytest.raises(DataError, match="text and label are both the column 'text'"):
            table_form(path, text_column="text", label_column=column)


def test_a_label_column_that_cannot_be_guessed_is_asked_for(tmp_path):
    path = write(tmp_path, "text,colour,size\na,red,1\nb,green,2\nc,blue,3\n")
    expected = "reviews.csv:1: which column holds the label? Columns: text, colour, size. Use --label-column"
    assert message(path) == expected


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("a.csv", "", "a.csv:1: the file is empty"),
        ("a.csv", " \n\n", "a.csv:1: the file is empty"),
        ("a.jsonl", "", "a.jsonl:1: the file is empty"),
        ("a.csv", "text,label\n", "a.csv:1: a header, but no row after it"),
        ("a.csv", "text,label\na,pos\nb,c,neg\n", 'a.csv:3: expected 2 columns, got 3 ("b,c,neg"); a cell with'),
        ("a.csv", 'text,label\n"a\nb",pos\n\nb\n', 'a.csv:5: expected 2 columns, got 1 ("b")'),
        ("a.csv", "text,label\na,pos\n  ,pos\n", "a.csv:3: empty text (--skip-empty to leave such rows out)"),
        ("a.csv", "text,label\na,pos\nb, \n", "a.csv:3: empty label (--skip-empty to leave such rows out)"),
        ("a.csv", 'text,label\n"b, c",neg\n"a,pos\nc,neg\n', "a.csv:3: a quote is opened here and never closed"),
        ("a.csv", 'text,label\n"a" b,pos\nc,d,neg\n', "a.csv:2: broken quoting (',' expected after '\"')"),
        ("a.csv", "text,label\na\0b,pos\n", "a.csv:2: a NUL byte: this is a binary file"),
        ("a.csv", b"text,label\na,pos\n\x90\x81,neg\n", "a.csv:3: byte 0x90 is not UTF-8"),
        ("a.csv", b"\x89PNG\r\n\x1a\n\0\0", "a.csv:1: this is an image, not text"),
        ("a.csv", "only one column here\nand here\n", "a.csv:1: one column only, a label is needed too (--delimiter"),
        ("a.jsonl", '{"text": "a", "label": "x"}\n{"text": \n', "a.jsonl:2: not a JSON object at column 10; JSONL has"),
        ("a.jsonl", '[\n{"text": "a"}\n]', "a.jsonl:1: a JSON array; JSONL has one object on every line"),
        ("a.json", '[{"text": "a"}, {"text": "b"}]', "a.json:1: a JSON array; JSONL has one object on every line"),
        ("a.jsonl", '{"text": "a", "label": "x"}\n["b"]\n', 'a.jsonl:2: expected an object in braces, got ["b"]'),
        ("a.jsonl", '{"text": "a", "label": "x"}\n{"text": "b"}\n', "a.jsonl:2: empty label"),
        ("a.jsonl", '{"text": ["a"], "label": "x"}\n', "a.jsonl:1: field 'text' should hold a string, got [\"a\"]"),
        ("a.jsonl", '{"text": "a", "label": ' + 5000 * "1" + "}", "a.jsonl:1: not a JSON object"),
        ("a.jsonl", '{"text": "a \\ud83d", "label": "x"}', r"a.jsonl:1: field 'text' holds '\ud83d', half a character"),
        ("a.jsonl", '{"text": "a", "label": "\\ude00"}', r"a.jsonl:1: field 'label' holds '\ude00', half a character"),
    ],
)
def test_bad_input_is_refused_with_file_and_line(tmp_path, name, text, expected):
    assert message(write(tmp_path, text, name)).startswith(expected)


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r"), min_size=1)
texts = texts.filter(Tokenizer(whitespace=True).tokenize)  # some characters cannot be seen


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(st.lists(st.tuples(texts, st.sampled_from(["pos", "neg", "so, so", 'a "b"'])), min_size=1), st.data())
def test_what_the_csv_module_writes_comes_back(tmp_path, written, data):
    delimiter = data.draw(st.sampled_from([",", ";", "|"]))
    path = tmp_path / "written.csv"
    with open(path, "w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file, delimiter=delimiter, lineterminator=data.draw(st.sampled_from(["\n", "\r\n"])))
        rows.writerow(["text", "label"])
        rows.writerows(written)
    assert pairs(read_table(path, delimiter=delimiter, tokenizer=Tokenizer(whitespace=True))) == written


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(st.lists(st.tuples(texts, st.sampled_from(["pos", "neg"])), min_size=1))
def test_what_the_json_module_writes_comes_back(tmp_path, written):
    path = tmp_path / "written.jsonl"
    path.write_text("\n".join(json.dumps({"text": text, "label": label}) for text, label in written))
    assert pairs(read_table(path, tokenizer=Tokenizer(whitespace=True))) == written


def test_the_line_that_names_the_separator_for_excel_is_no_row(tmp_path):
    path = tmp_path / "excel.csv"
    path.write_text("sep=;\ntext;label\ngood, film;pos\nbad;neg\n")
    corpus = read_table(path)
    assert [(example.text, example.label) for example in corpus.examples] == [("good, film", "pos"), ("bad", "neg")]
    assert [example.lines for example in corpus.examples] == [(3,), (4,)]
    path.write_text("sep=;\ntext;label\ngood;pos\nbad\n")
    with pytest.raises(DataError, match=r"excel\.csv:4: expected 2 columns, got 1"):
        read_table(path)
    with pytest.raises(DataError, match=r"excel\.csv:1: a line for Excel alone: delete it to stream the file"):
        table_form(path)
