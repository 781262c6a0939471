"""What a model is made of; the defaults are the paper's (Section 4.1 and 4.2)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from ..data.description import check_fields
from ..encoders import ENCODERS
from ..encoders.encoding import check_choice, check_size
from ..encoders.sentence_state_lstm import INITIALISATIONS
from ..heads.classifier import READOUTS

CHARACTERS = ("none", "BiLSTM", "CNN")


@dataclass(frozen=True)
class ModelConfig:
    """The shape of a model. Weights follow from it, the vocabularies and a seed."""

    encoder: str = "S-LSTM"
    """A name of the paper's tables, a key of `ENCODERS`."""
    hidden_size: int = 300
    num_steps: int = 9
    """S-LSTM only, as are window, sentence_nodes, gates, variant, step_dropout and initialisation."""
    window: int = 1
    sentence_nodes: int = 1
    gates: Literal["paper", "sharp"] = "paper"
    variant: Literal["paper", "released"] = "paper"
    cell: Literal["standard", "coupled"] = "standard"
    """LSTM and BiLSTM only: nn.LSTM's cell, or Eq. 1's."""
    word_size: int = 300
    """Length of a word vector; given vectors decide it."""
    freeze_words: bool = False
    """Keep the word vectors as they were given."""
    characters: Literal["none", "BiLSTM", "CNN"] = "none"
    """Features made of a word's characters, beside its vector."""
    character_size: int = 30
    character_hidden_size: int = 50
    """For each direction of the BiLSTM; the filters of the CNN."""
    case_size: int = 0
    """Length of the vector for a word's case (lower, Capital, ...); 0: none."""
    dropout: float = 0.5
    """On the word, character and case vectors."""
    word_dropout: float = 0.0
    """Share of words that are read as <unk> in training, so that unknown words are met there."""
    step_dropout: float = 0.0
    """On h and g between the steps of S-LSTM, one mask for all steps."""
    output_dropout: float = 0.0
    """On what the head reads."""
    readout: Literal["sentence", "attention", "max", "steps"] = "sentence"
    """What is classified: the sentence vector, the attended words, the sentence vector beside the maximum over the
    words, or the attended sentence vectors of all steps (S-LSTM only, in plain PyTorch)."""
    boundaries: bool = True
    """Words <s> and </s> around every sentence."""
    initialisation: Literal["glorot", "orthogonal"] = "glorot"
    """Of the blocks of S-LSTM's matrices."""
    transitions: Literal["edge", "static"] = "edge"
    """CRF: the paper's weights for every pair of tags, or one matrix."""

    def __post_init__(self) -> None:
        check_choice("encoder", self.encoder, list(ENCODERS))
        check_choice("gates", self.gates, ("paper", "sharp"))
        check_choice("variant", self.variant, ("paper", "released"))
        check_choice("cell", self.cell, ("standard", "coupled"))
        check_choice("characters", self.characters, CHARACTERS)
        check_choice("readout", self.readout, READOUTS)
        check_choice("initialisation", self.initialisation, INITIALISATIONS)
        check_choice("transitions", self.transitions, ("edge", "static"))
        for name in ("hidden_size", "num_steps", "window", "word_size", "character_size", "character_hidden_size"):
            check_size(name, getattr(self, name))
        for name in ("sentence_nodes", "case_size"):
            check_size(name, getattr(self, name), least=0)
        if self.readout == "steps" and (self.encoder != "S-LSTM" or self.variant != "paper" or not self.sentence_nodes):
            raise ValueError('readout="steps" reads the sentence state of every step: the paper\'s S-LSTM has one')
        for name in ("dropout", "word_dropout", "step_dropout", "output_dropout"):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f"{name} must lie in [0, 1), got {getattr(self, name)}")

    def encoder_options(self) -> dict[str, Any]:
        """What the class behind `encoder` takes beside its two sizes."""
        names = ["cell"] if self.encoder.endswith("LSTM") else []
        if self.encoder == "S-LSTM":
            names = ["num_steps", "window", "sentence_nodes", "gates", "variant", "step_dropout", "initialisation"]
        return {name: getattr(self, name) for name in names}

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> ModelConfig:
        """The opposite of `to_dict`; fields that are missing or unknown, or of another type, are a ValueError."""
        check_fields(cls, values)
        return cls(**values)
