"""Where MR, the 16 domains, CoNLL-2003, PTB, EWT and GUM come from and what they must contain."""

from __future__ import annotations

from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path

from .benchmark_files import (
    find_files,
    has_sections,
    in_folder,
    read_fdu,
    read_polarity,
    read_ptb,
    read_tables,
    read_tagging,
)
from .errors import DataError
from .example import Splits
from .folds import FOLDS, Counts, fold_counts, fold_of
from .tokenizer import Tokenizer


@dataclass(frozen=True)
class Source:
    """A set as it was published. `folder`: train, dev and test where we keep them, .jsonl.gz or .conll.gz."""

    task: str  # "classification" or "tagging"
    sentences: Counts
    words: Counts | None
    folder: str
    originals: tuple[str, ...]  # files as their makers ship them, in any folder under the data folder
    origin: str
    licence: str

    @property
    def suffix(self) -> str:
        """Of the three files where we keep them."""
        return ".jsonl" if self.task == "classification" else ".conll"


@dataclass
class Benchmark:
    name: str
    task: str
    splits: Splits
    description: list[str]  # sentences for the user: counts, and how they compare with those expected


FDU_TRAIN = {  # reviews in train; dev has 200 and test 400
    "books": 1400, "electronics": 1398, "dvd": 1400, "kitchen_housewares": 1400, "apparel": 1400, "camera_photo": 1397,
    "health_personal_care": 1400, "music": 1400, "toys_games": 1400, "video": 1400, "baby": 1300, "magazines": 1370,
    "software": 1315, "sports_outdoors": 1399, "imdb": 1400, "mr": 1400,
}  # fmt: skip
PTB_SECTIONS = {
    "ptb": (range(19), range(19, 22), range(22, 25)),  # the text of the paper
    "ptb/02-21": (range(2, 22), range(22, 23), range(23, 24)),  # the counts in its Table 1
}
LDC = ("Penn Treebank 3, LDC99T42, https://catalog.ldc.upenn.edu/LDC99T42", "licence of the LDC")
PTB_FILES = ("wsj_????.mrg or wsj_????.pos",)
UD = "Universal Dependencies, https://github.com/UniversalDependencies/"
SOURCES = {
    "mr": Source(
        "classification", (8530, 1066, 1066), (179037, 22714, 22290),
        "classification/mr", ("rt-polarity.pos", "rt-polarity.neg"),
        "Pang and Lee 2005, https://www.cs.cornell.edu/people/pabo/movie-review-data", "CC BY 4.0, as NLTK states it",
    ),
    "conll2003": Source(
        "tagging", (14041, 3250, 3453), (203621, 51362, 46435),
        "tagging/conll2003_ner", ("eng.train", "eng.testa", "eng.testb"),
        "CoNLL-2003, https://www.clips.uantwerpen.be/conll2003/ner",
        "Reuters corpus: research use, do not redistribute",
    ),
    "ptb": Source(
        "tagging", (38219, 5527, 5462), (912344, 131768, 129654),
        "tagging/ptb_pos", PTB_FILES, *LDC,
    ),
    "ptb/02-21": Source(
        "tagging", (39832, 1700, 2416), (950028, 40117, 56684),
        "tagging/ptb_pos_02-21", PTB_FILES, *LDC,
    ),
    "ewt": Source(
        "tagging", (12544, 2001, 2077), (204577, 25147, 25094),
        "tagging/ud_ewt_pos", ("en_ewt-ud-train.conllu", "en_ewt-ud-dev.conllu", "en_ewt-ud-test.conllu"),
        UD + "UD_English-EWT", "CC BY-SA 4.0",
    ),
    "gum": Source(
        "tagging", (10330, 1575, 1464), (178797, 28119, 28397),
        "tagging/ud_gum_pos", ("en_gum-ud-train.conllu", "en_gum-ud-dev.conllu", "en_gum-ud-test.conllu"),
        UD + "UD_English-GUM", "CC BY-NC-SA 4.0: not for commercial use",
    ),
} | {
    f"fdu/{domain}": Source(
        "classification", (train, 200, 400), None,
        f"classification/fdu_mtl/{domain}", (f"{domain}.task.train", f"{domain}.task.test"),
        "Liu, Qiu and Huang 2017, https://github.com/ccsasuke/man, data/fdu-mtl",
        "reviews from Amazon, IMDB and MR: research use, do not redistribute",
    )
    for domain, train in FDU_TRAIN.items()
}  # fmt: skip
# The paper's split of MR was not published, and a tenth of it is too few sentences to tell two good models apart. In
# mr/0 to mr/9 every sentence is tested once.
MR_FOLDS = {f"mr/{fold}": fold for fold in range(FOLDS)}
SOURCES |= {
    name: replace(SOURCES["mr"], sentences=fold_counts(sum(SOURCES["mr"].sentences), fold), words=None)
    for name, fold in MR_FOLDS.items()
}
OTHER_SPLITS = ("ptb/02-21", *MR_FOLDS)  # of sets that have a name of their own


def read_benchmark(
    name: str,
    data_folder: str | PathLike[str],
    *,
    tokenizer: Tokenizer | None = None,
    target_scheme: str = "bioes",
) -> Benchmark:
    """A named benchmark from a folder, in our layout or in its makers'; counts are compared with those published.

    Texts of classification are tokenised already; by default only contractions are split.
    """
    if name not in SOURCES:
        names = ", ".join(key for key in SOURCES if not key.startswith(("fdu/", "mr/")))
        raise DataError.at(
            name, f"no such benchmark; there are {names}, mr/0 to mr/9 and fdu/ with {', '.join(FDU_TRAIN)}"
        )
    source, folder = SOURCES[name], Path(data_folder)
    splits = find_splits(name, source, folder, tokenizer or Tokenizer(whitespace=True), target_scheme)
    if splits is None:
        raise missing(name, source, folder)
    return Benchmark(name, source.task, splits, describe(name, source, splits))


def is_here(name: str, data_folder: str | PathLike[str]) -> bool:
    """Whether the files of a benchmark are in a folder; they are not read."""
    source, folder = SOURCES[name], Path(data_folder)
    if in_folder(folder / source.folder, source.suffix):
        return True
    if name in PTB_SECTIONS:
        return has_sections(folder, PTB_SECTIONS[name])
    return find_files(folder, source.originals) is not None


def find_splits(name: str, source: Source, folder: Path, tokenizer: Tokenizer, target_scheme: str) -> Splits | None:
    if name in MR_FOLDS:
        whole = find_splits("mr", SOURCES["mr"], folder, tokenizer, target_scheme)
        return whole and fold_of(whole, MR_FOLDS[name])
    ours = in_folder(folder / source.folder, source.suffix)
    if name in PTB_SECTIONS and not ours:
        return read_ptb(folder, PTB_SECTIONS[name])
    paths = ours or find_files(folder, source.originals)
    if not paths:
        return None
    if source.task == "tagging":
        return read_tagging(paths, "auto" if name == "conll2003" else "plain", target_scheme)
    if ours:
        return read_tables(paths, tokenizer)
    read = read_polarity if name == "mr" else read_fdu
    return read(paths[0], paths[1], tokenizer)


def missing(name: str, source: Source, folder: Path) -> DataError:
    ours, theirs = f"{{train,dev,test}}{source.suffix}.gz", ", ".join(source.originals)
    looked = f"{folder / source.folder}/{ours} and, under {folder}, {theirs}"
    if name in PTB_SECTIONS:
        sections = "; ".join(f"{split.start:02d}-{split.stop - 1:02d}" for split in PTB_SECTIONS[name])
        looked += f" of the sections {sections}"
    where = f"It comes from {source.origin} ({source.licence}); nothing is downloaded for you"
    return DataError.at(folder, f"the benchmark {name} is not here. Looked for {looked}. {where}")


def describe(name: str, source: Source, splits: Splits) -> list[str]:
    """One sentence a split with its counts, each compared with what was published."""
    sentences = []
    for position, split in enumerate(("train", "dev", "test")):
        examples = getattr(splits, split)
        found = len(examples)
        words = sum(len(example.text.split()) if example.text else len(example.words) for example in examples)
        expected = f"{source.sentences[position]:,} sentences"
        same = found == source.sentences[position]
        if source.words:
            expected += f" and {source.words[position]:,} words"
            same = same and words == source.words[position]
        verdict = "as expected" if same else f"expected {expected}: another release or another preparation?"
        sentences.append(f"{name} {split}: {found:,} sentences, {words:,} words, {verdict}")
    return sentences
