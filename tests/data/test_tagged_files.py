"""Files for tagging in any scheme, brought into one; broken tags refused with file and line, or read leniently."""

import pytest

from sentence_state.data.errors import DataError
from sentence_state.data.streamed_forms import column_form
from sentence_state.data.streaming import StreamedExamples
from sentence_state.data.tagged_files import read_tagged


def write(tmp_path, rows, name="train.conll"):
    path = tmp_path / name
    path.write_text("\n".join(rows.split("|")) + "\n")
    return path


def test_iob1_is_recognised_said_and_converted(tmp_path):
    path = write(tmp_path, "he O|met O|Ann I-PER|Lee I-PER|Bob B-PER")
    corpus = read_tagged(path)
    assert corpus.examples[0].tags == ["O", "O", "B-PER", "E-PER", "S-PER"]
    assert corpus.tag_scheme == "iob1"
    note = f"{path}:3: I-PER after O: the file looks like IOB1, read as IOB1 (--tag-scheme to choose)"
    assert corpus.description[1] == note


@pytest.mark.parametrize(
    ("rows", "tags"),
    [
        ("北 B-LOC|京 M-LOC|市 E-LOC|王 S-PER|在 O", ["B-LOC", "I-LOC", "E-LOC", "S-PER", "O"]),
        ("北 B|京 M|市 E|在 S", ["B", "I", "E", "S"]),
    ],
)
def test_bmes_of_chinese_data_is_recognised_said_and_converted(tmp_path, rows, tags):
    path = write(tmp_path, rows)
    corpus = read_tagged(path)
    assert corpus.examples[0].tags == tags
    assert f"{path}: tags are BMES, as found out" in corpus.description
    streamed = StreamedExamples([path], column_form(path)[0])
    assert [example.tags for example in streamed] == [tags]


@pytest.mark.parametrize("target", ["iob1", "bio", "bioes", "bilou"])
def test_the_target_scheme_can_be_chosen(tmp_path, target):
    tags = {
        "iob1": ["I-PER", "I-PER"],
        "bio": ["B-PER", "I-PER"],
        "bioes": ["B-PER", "E-PER"],
        "bilou": ["B-PER", "L-PER"],
    }
    corpus = read_tagged(write(tmp_path, "Ann B-PER|Lee I-PER"), target_scheme=target)
    assert corpus.examples[0].tags == tags[target]


def test_plain_tags_are_left_alone(tmp_path):
    path = write(tmp_path, "Ann NNP|runs VBZ")
    corpus = read_tagged(path)
    assert corpus.examples[0].tags == ["NNP", "VBZ"]
    assert corpus.tag_scheme == "plain"
    assert corpus.description[-1] == "2 tags: NNP 1, VBZ 1"


@pytest.mark.parametrize(("first", "rest"), [("b-loc", "i-loc"), ("LOC-B", "LOC-I"), ("B_LOC", "I_LOC")])
def test_tags_that_are_almost_spans_are_said(tmp_path, first, rest):
    path = write(tmp_path, f"in O|New {first}|York {rest}")
    corpus = read_tagged(path)
    assert corpus.tag_scheme == "plain"
    note = f"{path}: tags such as {first!r} are no spans: spans are written B-LOC, I-LOC (--tag-scheme to choose)"
    assert note in corpus.description
    assert note not in read_tagged(path, tag_scheme="plain").description


def test_tags_beside_o_that_are_spans_of_one_word_are_said(tmp_path):
    path = write(tmp_path, "John PER|Smith PER|lives O|in O|Berlin LOC")
    corpus = read_tagged(path)
    assert corpus.tag_scheme == "plain"
    note = (
        f"{path}: tags such as 'LOC' beside O, without B- or I-: each word is a span of its own, one with O is none; "
    )
    assert note + "for spans of several words write B-LOC, I-LOC" in corpus.description
    assert not any(line.startswith(note) for line in read_tagged(path, tag_scheme="plain").description)


@pytest.mark.parametrize(("rows", "tag"), [("a LOC|b O|c PER|d B-PER", "LOC"), ("dog M-sg|the O|dogs M-pl", "M-pl")])
def test_a_note_on_plain_tags_names_one_that_is_no_span_if_there_is_one(tmp_path, rows, tag):
    notes = read_tagged(write(tmp_path, rows)).description
    assert any(f"tags such as {tag!r} beside O" in note for note in notes)


def test_the_scheme_of_train_can_be_imposed_on_dev(tmp_path):
    path = write(tmp_path, "Ann B-PER|Lee B-PER")
    assert read_tagged(path, tag_scheme="iob1", target_scheme="bio").examples[0].tags == ["B-PER", "B-PER"]
    with pytest.raises(
        ValueError, match="tag_scheme must be auto, plain or one of iob1, bio, bioes, bmes, bilou, got 'iobes'"
    ):
        read_tagged(path, tag_scheme="iobes")


BROKEN = "a B-PER|b O||c B-LOC|d I-LOC||e O|f I-PER||g I-ORG|h B-PER||i B-PER"


def test_broken_tags_are_refused_with_file_and_line(tmp_path):
    path = write(tmp_path, BROKEN)
    with pytest.raises(DataError) as error:
        read_tagged(path)
    assert str(error.value).startswith(f"{path}:8: I-PER after O: not BIO (and 1 more); --tag-scheme to choose another")


def test_broken_tags_are_read_as_conlleval_does_when_asked(tmp_path):
    path = write(tmp_path, BROKEN)
    corpus = read_tagged(path, broken="repair", target_scheme="bio")
    assert [example.tags for example in corpus.examples[2:4]] == [["O", "B-PER"], ["B-ORG", "B-PER"]]
    assert f"{path}:8: I-PER after O: not BIO: 2 such tags read as conlleval does" in corpus.description


def test_a_b_that_iob1_does_not_need_is_read_and_said(tmp_path):
    path = write(tmp_path, "a I-PER|b I-PER||c O|d B-LOC||e O|f I-PER")
    corpus = read_tagged(path, target_scheme="bio")
    assert corpus.examples[1].tags == ["O", "B-LOC"]
    assert f"{path}:5: B-LOC after O: not IOB1: 1 such tag read as conlleval does" in corpus.description


@pytest.mark.parametrize("broken", ["error", "repair"])
def test_a_tag_of_no_scheme_is_always_refused(tmp_path, broken):
    path = write(tmp_path, "a B-PER|b I-PER||c PER")
    with pytest.raises(DataError, match=r"train.conll:4: 'PER' is no tag of BIO \(--tag-scheme plain, if the tags"):
        read_tagged(path, broken=broken)


def test_a_line_of_column_names_is_recognised(tmp_path):
    with pytest.raises(
        DataError, match=r":1: 'tag' is no tag of BIO: a line of column names\? delete it \(--tag-scheme"
    ):
        read_tagged(write(tmp_path, "word tag|Ann B-PER|Lee I-PER"))
    with pytest.raises(DataError, match=r':1: expected 2 columns or more, got 1 \("names"\); a line of column names\?'):
        read_tagged(write(tmp_path, "names|Ann B-PER|Lee I-PER"))


def test_conllu_is_recognised_by_its_name(tmp_path):
    path = write(tmp_path, "1\tdo\tdo\tAUX\tVB\t_\t0\troot\t_\t_", "dev.conllu")
    assert read_tagged(path).examples[0].tags == ["VB"]
    assert read_tagged(path, tag_column="upos").examples[0].tags == ["AUX"]


TREES = "# text = it isn't|" + "|".join(
    row.replace(" ", "\t")
    for row in [
        "1 it it PRON PRP _ 2 dep _ _",
        "2-3 isn't _ _ _ _ _ _ _ _",
        "2 is be VERB VBZ _ 0 root _ SpaceAfter=No",
        "3 n't not PART RB _ 2 dep _ _",
        "",
        "1 yes yes INTJ UH _ 0 root _ _",
    ]
)


def test_conllu_is_recognised_by_its_content(tmp_path):
    path = write(tmp_path, TREES)
    corpus = read_tagged(path)
    assert [example.words for example in corpus.examples] == [["it", "is", "n't"], ["yes"]]
    assert corpus.examples[0].tags == ["PRP", "VBZ", "RB"]
    assert corpus.description[0] == f"{path}: 2 sentences, 4 words (CoNLL-U as found out, xpos, UTF-8)"
    assert read_tagged(path, tag_column="upos").examples[1].tags == ["INTJ"]
    assert read_tagged(path, tag_column=None).examples[1].words == ["yes"]
    streamed = list(StreamedExamples([path], column_form(path)[0]))
    assert [(e.words, e.tags) for e in streamed] == [(e.words, e.tags) for e in corpus.examples]


@pytest.mark.parametrize(
    ("rows", "options"),
    [
        (TREES.replace("2-3\tisn't", "2\tisn't"), {}),  # the first column counts nothing
        (TREES, {"tag_column": 4}),
        (TREES, {"word_column": 1}),
    ],
)
def test_ten_columns_that_are_no_conllu_or_are_counted_are_columns(tmp_path, rows, options):
    assert "10 columns by tabs" in read_tagged(write(tmp_path, rows), **options).description[0]


def test_columns_of_a_streamed_file_are_described_and_differ(tmp_path):
    path = write(tmp_path, "1 Ann NNP B-PER|2 runs VBZ O||1 Bye UH O|")
    roles = "words from column 0, tags from column 3 (--word-column, --tag-column to choose)"
    note = "the words are 1, 2, 3, ..: --word-column 1 may be meant"
    assert column_form(path)[0].description == f"4 columns by spaces, {roles}, {note}, tags are BIO"
    with pytest.raises(DataError, match=r":1: words and tags are both column 3 of 4, counted from 0: choose another"):
        column_form(path, word_column=3)


def test_words_are_read_without_tags(tmp_path):
    assert read_tagged(write(tmp_path, "Ann|runs"), tag_column=None).examples[0].words == ["Ann", "runs"]
    path = write(tmp_path, "1\tdo\tdo\tAUX\tVB\t_\t0\troot\t_\t_", "dev.conllu")
    assert read_tagged(path, tag_column=None).examples[0].tags is None


def test_a_named_column_is_refused_outside_conllu(tmp_path):
    with pytest.raises(
        DataError, match=r"train.conll: the column upos is one of CoNLL-U \(.conllu\); here, columns have"
    ):
        read_tagged(write(tmp_path, "Ann NNP"), tag_column="upos")
