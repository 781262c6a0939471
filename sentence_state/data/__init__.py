"""Section 4.1, "Datasets": files on disk -> Example -> Batch."""

from .batching import Batch, Batches, collate
from .benchmarks import read_benchmark
from .checks import check_training_data
from .embeddings import Embeddings, read_embeddings
from .errors import DataError
from .example import Corpus, Example, Splits, split_off_dev
from .hub import read_hub
from .indexing import Vocabularies, index_examples
from .marked import read_marked, read_sample
from .tables import read_lines, read_table
from .tag_schemes import spans_to_tags, tags_to_spans
from .tagged_files import read_tagged
from .tokenizer import Token, Tokenizer, tokenize
from .vocabulary import Vocabulary

__all__ = [
    "Batch",
    "Batches",
    "Corpus",
    "DataError",
    "Embeddings",
    "Example",
    "Splits",
    "Token",
    "Tokenizer",
    "Vocabularies",
    "Vocabulary",
    "check_training_data",
    "collate",
    "index_examples",
    "read_benchmark",
    "read_embeddings",
    "read_hub",
    "read_lines",
    "read_marked",
    "read_sample",
    "read_table",
    "read_tagged",
    "spans_to_tags",
    "split_off_dev",
    "tags_to_spans",
    "tokenize",
]
