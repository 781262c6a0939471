"""Models with weights that matter, and the comparison of two ways to run one."""

import numpy as np
import pytest
import torch

from sentence_state.models import Model

from ..models.synthetic import corpus, small

EXAMPLES = corpus(60)
TEXTS = [
    "Mary",
    "the film was good in New York",
    "a bad, long story about Rio de Janeiro and its garden ... zzz",
    "🙂 Paris",
]


def make(cls: type[Model], **options) -> Model:
    """A new model; biases, initial states and CRF weights are drawn too, so that no term of an equation is zero."""
    model = cls.from_examples(EXAMPLES, small(**options)).eval()
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() == 1 or name.startswith("crf"):
                parameter.normal_(0, 0.4, generator=generator)
    return model


def assert_same_answers(expected: list, found: list, tolerance: float) -> None:
    for one, other in zip(expected, found, strict=True):
        assert one.keys() == other.keys()
        assert one["label"] == other["label"]
        assert one.get("probabilities", {}) == pytest.approx(other.get("probabilities", {}), abs=tolerance)
        places = [[(s["start"], s["end"], s["label"], s["text"]) for s in answer["spans"]] for answer in (one, other)]
        assert places[0] == places[1]
        scores = [np.array([span["score"] for span in answer["spans"]]) for answer in (one, other)]
        np.testing.assert_allclose(*scores, atol=tolerance)
