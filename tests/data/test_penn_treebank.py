"""Sentences of the LDC's two forms; the sentences here are ours."""

import pytest

from sentence_state.data.errors import DataError
from sentence_state.data.penn_treebank import find_sections, read_section

MERGED = """
( (S
    (NP-SBJ (DT The) (NN cat) )
    (VP (VBZ sleeps)
      (NP (-NONE- *T*-1) )
      (PP (IN for)
        (NP (CD 1\\/2) (NN hour) ))
      (PRN (-LRB- -LRB-) (VBG|NN purring) (-RRB- -RRB-) ))
    (. .) ('' '') ))
( (S (NP-SBJ (PRP It) )
    (VP (VBD|JJ purred) )
    (. !) ))
"""

TAGGED = """
======================================

[ The/DT cat/NN ]
sleeps/VBZ for/IN
[ 1\\/2/CD hour/NN ]
(/( purring/VBG|NN )/) ./. ''/''
[ It/PRP ]
purred/VBD|JJ !/.

======================================

[ No/DT end/NN ]

======================================
"""

CAT = [
    ("The", "DT"), ("cat", "NN"), ("sleeps", "VBZ"), ("for", "IN"), ("1/2", "CD"), ("hour", "NN"),
    ("(", "-LRB-"), ("purring", "VBG"), (")", "-RRB-"), (".", "."), ("''", "''"),
]  # fmt: skip
IT = [("It", "PRP"), ("purred", "VBD"), ("!", ".")]


def write(tmp_path, text, name):
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def sentences(examples):
    return [list(zip(example.words, example.tags, strict=True)) for example in examples]


def test_merged_trees_give_their_leaves_without_traces(tmp_path):
    examples = read_section([write(tmp_path, MERGED, "wsj_0001.mrg")])
    assert sentences(examples) == [CAT, IT]
    assert examples[1].lines == [10, 11, 12]


def test_tagged_files_end_a_sentence_after_its_stop_and_closing_quotes(tmp_path):
    examples = read_section([write(tmp_path, TAGGED, "WSJ_0001.POS")])
    assert sentences(examples) == [CAT, IT, [("No", "DT"), ("end", "NN")]]


def test_sections_are_found_in_any_folder_and_trees_are_preferred(tmp_path):
    write(tmp_path, TAGGED, "tagged/pos/wsj/00/wsj_0001.pos")
    write(tmp_path, TAGGED, "tagged/pos/wsj/24/wsj_2454.pos")
    assert sorted(find_sections(tmp_path)) == [0, 24]
    trees = [write(tmp_path, MERGED, f"parsed/mrg/wsj/00/WSJ_000{i}.MRG") for i in (2, 1)]
    write(tmp_path, MERGED, "parsed/mrg/brown/cf/cf01.mrg")
    assert find_sections(tmp_path) == {0: sorted(trees)}


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("wsj_0001.mrg", "( (S (NN cat))\n", "2: 1 brackets are never closed"),
        ("wsj_0001.mrg", "( (NN cat)))\n", "1: a closing bracket too many"),
        ("wsj_0001.pos", "the/DT\ncat\n", '2: expected word/TAG, got "cat"'),
    ],
)
def test_damaged_files_are_refused_with_their_line(tmp_path, name, text, message):
    path = write(tmp_path, text, name)
    with pytest.raises(DataError) as error:
        read_section([path])
    assert str(error.value) == f"{path}:{message}"
