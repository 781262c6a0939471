"""What a model folder says of its model beside the weights: config.json and vocabularies, checked; without torch."""

from __future__ import annotations

import hashlib
import json
from dataclasses import fields
from pathlib import Path
from typing import Any

from .errors import DataError
from .files import FolderError, check_regular, read_json
from .indexing import Vocabularies
from .tokenizer import Tokenizer
from .vocabulary import Vocabulary

FORMAT_VERSION = 1
CONFIG = "config.json"
VOCABULARIES = ("words", "characters", "labels", "tags")  # <name>.json


def read_config(folder: Path) -> dict[str, Any]:
    path = folder / CONFIG
    config: dict[str, Any] = read_json(path)
    version = config.get("format_version") if isinstance(config, dict) else None
    if type(version) is not int or version < 1:
        raise FolderError.at(path, "no config of sentence-state: it has no format_version")
    if version > FORMAT_VERSION:
        raise FolderError.at(
            path,
            f"written by a newer version of sentence-state (format {version}, this one reads up to {FORMAT_VERSION}); "
            "pip install --upgrade sentence-state",
        )
    wanted = {
        "class": str,
        "model": dict,
        "tag_scheme": (str, type(None)),
        "tokenizer": dict,
        "vocabularies": list,
    }
    for name, kind in wanted.items():
        if not isinstance(config.get(name, ...), kind):  # type: ignore[arg-type]
            raise FolderError.at(path, f"{name!r} is missing or of the wrong type")
    if config["tag_scheme"] not in (None, "plain", "bio", "bioes"):
        raise FolderError.at(path, f"tag_scheme must be null, plain, bio or bioes, got {config['tag_scheme']!r}")
    try:
        check_fields(Tokenizer, config["tokenizer"])
    except ValueError as error:
        raise FolderError.at(path, f"tokenizer: {error}") from None
    return config


def read_vocabularies(folder: Path, config: dict[str, Any]) -> Vocabularies:
    found: dict[str, Vocabulary] = {}
    for name in VOCABULARIES:  # never a name out of config.json: no path leads out of the folder
        if name not in config["vocabularies"]:
            continue
        path = folder / f"{name}.json"
        check_regular(path)
        try:
            found[name] = Vocabulary.load(path)
        except DataError as error:
            raise FolderError(str(error)) from None
        except (AttributeError, OSError, RecursionError) as error:
            raise FolderError.at(path, f"no vocabulary of sentence-state ({error})") from None
        if not all(isinstance(word, str) for word in found[name].words):
            raise FolderError.at(path, "no vocabulary of sentence-state: every word must be a string")
        if not all(word.isascii() or is_unicode(word) for word in found[name].words):
            raise FolderError.at(path, "no vocabulary of sentence-state: a word with half a surrogate pair")
    if "words" not in found:
        raise FolderError.at(folder / CONFIG, "names no vocabulary of words")
    case_size = config["model"].get("case_size")
    return Vocabularies(**found, case=isinstance(case_size, int) and case_size > 0)


def is_unicode(word: str) -> bool:
    """Whether it can be written and sent; JSON can hold halves of surrogate pairs."""
    return not any("\ud800" <= character <= "\udfff" for character in word)


def description_hash(config: dict[str, Any], vocabularies: Vocabularies) -> str:
    """The same for the same config and vocabularies, on every machine."""
    digest = hashlib.sha256(json.dumps(config, sort_keys=True).encode())
    for name in VOCABULARIES:
        vocabulary = getattr(vocabularies, name)
        digest.update(vocabulary.hash().encode() if vocabulary is not None else b"-")
    return digest.hexdigest()


def check_fields(cls: type, values: Any) -> None:
    """Whether a dictionary read from JSON has exactly the fields of a dataclass, each of its default's type."""
    defaults = {field.name: field.default for field in fields(cls)}
    if not isinstance(values, dict) or values.keys() != defaults.keys():
        names = values.keys() if isinstance(values, dict) else set()
        different = ", ".join(sorted(map(str, defaults.keys() ^ names))) or type(values).__name__
        raise ValueError(f"expected the fields of {cls.__name__}; missing or unknown: {different}")
    for name, value in values.items():
        kind = type(defaults[name])
        if type(value) is not kind and not (kind is float and type(value) is int):
            raise ValueError(f"{name} must be of type {kind.__name__}, got {value!r}")
