"""CoNLL columns and CoNLL-U as they are found on disk."""

import gzip

import pytest

from sentence_state.data.columns import columns_corpus, trees_corpus
from sentence_state.data.errors import DataError
from sentence_state.data.text_files import read_text


def write(tmp_path, text, name="train.conll"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def read_columns(path, word_column=0, tag_column=-1):
    return columns_corpus(read_text(path), word_column, tag_column)


def read_conllu(path, tag_column="xpos"):
    return trees_corpus(read_text(path), tag_column, "CoNLL-U")


def sentences(corpus):
    return [list(zip(example.words, example.tags, strict=True)) for example in corpus.examples]


JOHN = [("John", "B-PER"), ("sleeps", "O")]
BYE = [("Bye", "O")]


@pytest.mark.parametrize(
    "text",
    [
        "John B-PER\nsleeps O\n\nBye O\n",
        "John\tB-PER\nsleeps\tO\n\nBye\tO",
        "\ufeffJohn B-PER\r\nsleeps O\r\n\r\nBye O\r\n",
        "-DOCSTART- O\n\n\nJohn  B-PER \nsleeps\t O\n \t \nBye O\n\n\n",
        "-DOCSTART-\nJohn B-PER\nsleeps O\n-DOCSTART-\nBye O\n",
        "# id = 1\n# text = John sleeps\nJohn B-PER\nsleeps O\n\n# newdoc\nBye O\n",
        "# id = 1\nJohn\tB-PER\nsleeps\tO\n\n# a b\nBye\tO\n",
    ],
)
def test_the_same_two_sentences_are_read_from_every_form(tmp_path, text):
    assert sentences(read_columns(write(tmp_path, text))) == [JOHN, BYE]


def test_gzip_is_read(tmp_path):
    path = write(tmp_path, gzip.compress(b"John B-PER\nsleeps O\n\nBye O\n"), "train.conll.gz")
    assert sentences(read_columns(path)) == [JOHN, BYE]


def test_any_column_can_hold_words_and_tags(tmp_path):
    path = write(tmp_path, "1 John NNP I-NP B-PER\n2 sleeps VBZ I-VP O\n\n1 Bye UH O O\n")
    assert sentences(read_columns(path, word_column=1)) == [JOHN, BYE]
    assert sentences(read_columns(path, word_column=1, tag_column=4)) == [JOHN, BYE]
    assert sentences(read_columns(path, word_column=-4, tag_column=2))[1] == [("Bye", "UH")]


def test_words_are_read_without_tags(tmp_path):
    corpus = read_columns(write(tmp_path, "John\nsleeps\n\nBye\n"), tag_column=None)
    assert [(example.words, example.tags) for example in corpus.examples] == [
        (["John", "sleeps"], None),
        (["Bye"], None),
    ]


def test_a_space_is_part_of_a_word_where_tabs_separate(tmp_path):
    assert sentences(read_columns(write(tmp_path, "1 000\tCD\nmen\tNNS\n"))) == [[("1 000", "CD"), ("men", "NNS")]]


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("# # I-NP O\n5 CD I-NP O\n\n# id = 5\nBye UH O O\n", [("#", "O"), ("5", "O")]),
        ("#\t#\n5\tCD\n\n# a comment\nBye\tUH\n", [("#", "#"), ("5", "CD")]),
        ("# #\n5 CD\n", [("#", "#"), ("5", "CD")]),
        ("#win O\nnow O\n", [("#win", "O"), ("now", "O")]),
        ("now O\n#win O\n# O\n", [("now", "O"), ("#win", "O"), ("#", "O")]),
    ],
)
def test_a_number_sign_that_is_a_word_is_no_comment(tmp_path, text, first):
    assert sentences(read_columns(write(tmp_path, text)))[0] == first


def test_lines_are_kept_for_messages(tmp_path):
    corpus = read_columns(write(tmp_path, "# c\nJohn B-PER\nsleeps O\n\n\nBye O\n"))
    assert [list(example.lines) for example in corpus.examples] == [[2, 3], [6]]


def test_what_was_found_out_is_described(tmp_path):
    path = write(tmp_path, "John B-PER\nsleeps O\n")
    assert read_columns(path).description == [f"{path}: 1 sentences, 2 words (2 columns by spaces, UTF-8)"]


NUMBERED = "1 John NNP x B-PER\n2 sleeps VBZ x O\n\n1 Bye UH x O\n"


@pytest.mark.parametrize(
    ("options", "roles"),
    [
        ({}, "words from column 0, tags from column 4 (--word-column, --tag-column to choose)"),
        ({"word_column": -4, "tag_column": 2}, "words from column 1, tags from column 2 (--word-column, --tag-column"),
        ({"word_column": 1, "tag_column": None}, "words from column 1 (--word-column to choose)"),
    ],
)
def test_which_columns_hold_words_and_tags_is_described(tmp_path, options, roles):
    assert read_columns(write(tmp_path, NUMBERED), **options).description[1].startswith(roles)


@pytest.mark.parametrize(("options", "meant"), [({}, 1), ({"tag_column": 1}, 2), ({"tag_column": None}, 1)])
def test_words_that_only_count_are_noted(tmp_path, options, meant):
    path = write(tmp_path, NUMBERED)
    note = f"{path}: the words are 1, 2, 3, ..: --word-column {meant} may be meant"
    assert read_columns(path, **options).description[-1] == note


@pytest.mark.parametrize("text", [NUMBERED.replace("2 sleeps", "3 sleeps"), "1 O\n2 O\n\n1 O\n"])
def test_other_numbers_are_words(tmp_path, text):
    assert not any("may be meant" in note for note in read_columns(write(tmp_path, text)).description)


@pytest.mark.parametrize(("word", "tag", "place"), [(-1, -1, 4), (4, -1, 4), (-5, 0, 0), (2, 2, 2), (1, -4, 1)])
def test_one_column_cannot_be_words_and_tags(tmp_path, word, tag, place):
    path = write(tmp_path, NUMBERED)
    with pytest.raises(DataError) as error:
        read_columns(path, word_column=word, tag_column=tag)
    found = f"words and tags are both column {place} of 5, counted from 0"
    assert str(error.value) == f"{path}:1: {found}: choose another --word-column or --tag-column"


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("a O\nb O\nJohn\n", {}, 'train.conll:3: expected 2 columns or more, got 1 ("John")'),
        ("a O\nb O\n\n-DOCSTART-\n\nc O\n#d\n", {}, 'train.conll:7: expected 2 columns or more, got 1 ("#d")'),
        ("a x O\nb x O\nJohn O\n", {}, 'train.conll:3: expected 3 columns as in most lines, got 2 ("John O")'),
        ("a x O\n", {"tag_column": 3}, 'train.conll:1: expected 4 columns or more, got 3 ("a x O")'),
        ("a\tO\nb\t\n", {}, r"train.conll:2: a column is empty ('b\t')"),
        ("", {}, "train.conll:1: the file is empty"),
        ("\n \n", {}, "train.conll:1: the file is empty"),
        ("-DOCSTART- O\n\n", {}, "train.conll:1: no sentence in the file"),
        (b"a O\n\xff\xfe O\n", {}, "train.conll:2: byte 0xff is not UTF-8"),
        (b"a O\nb\0 O\n", {}, "train.conll:2: a NUL byte"),
    ],
)
def test_bad_input_is_refused_with_file_and_line(tmp_path, text, options, message):
    path = write(tmp_path, text)
    with pytest.raises(DataError) as error:
        read_columns(path, **options)
    assert str(error.value).startswith(f"{path.parent}/{message}")


@pytest.mark.parametrize("separator", [" ", "\t"])
def test_a_space_that_does_not_break_is_part_of_a_word(tmp_path, separator):
    text = f"# doc 1 of 2\n10\u00a0000{separator}B-N\n\u3000{separator}O\nx{separator}O\n"
    assert sentences(read_columns(write(tmp_path, text))) == [[("10\u00a0000", "B-N"), ("\u3000", "O"), ("x", "O")]]


CONLLU = """# sent_id = 1
# text = don't go
1-2\tdon't\t_\t_\t_\t_\t_\t_\t_\t_
1\tdo\tdo\tAUX\tVB\t_\t3\taux\t_\t_
2\tn't\tnot\tPART\tRB\t_\t3\tadvmod\t_\t_
2.1\tyou\tyou\tPRON\tPRP\t_\t_\t_\t_\t_
3\tgo\tgo\tVERB\tVB\t_\t0\troot\t_\t_

1\t#\t#\tSYM\t#\t_\t0\troot\t_\t_
"""


def test_conllu_leaves_out_ranges_and_empty_nodes(tmp_path):
    corpus = read_conllu(write(tmp_path, CONLLU, "dev.conllu"))
    assert sentences(corpus) == [[("do", "VB"), ("n't", "RB"), ("go", "VB")], [("#", "#")]]
    assert corpus.examples[0].lines == [4, 5, 7]


def test_conllu_gives_universal_tags_when_asked(tmp_path):
    corpus = read_conllu(write(tmp_path, CONLLU, "dev.conllu"), tag_column="upos")
    assert corpus.examples[0].tags == ["AUX", "PART", "VERB"]


def test_bad_conllu_is_refused_with_file_and_line(tmp_path):
    with pytest.raises(DataError, match=r"dev.conllu:2: expected the 10 columns of CoNLL-U, by tabs, got 2 \("):
        read_conllu(write(tmp_path, "# c\n1\tdo\n", "dev.conllu"))
    with pytest.raises(DataError, match=r"dev.conllu:1: the column xpos is empty, try upos"):
        read_conllu(write(tmp_path, "1\tdo\tdo\tAUX\t_\t_\t0\troot\t_\t_\n", "dev.conllu"))
    with pytest.raises(DataError, match=r"dev.conllu:1: a column is empty \("):
        read_conllu(write(tmp_path, "1\tdo\tdo\tAUX\t\t_\t0\troot\t_\t_\n", "dev.conllu"))
    with pytest.raises(DataError, match=r"dev.conllu:1: the file is empty"):
        read_conllu(write(tmp_path, "", "dev.conllu"))
