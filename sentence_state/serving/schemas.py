"""What comes in and goes out as JSON: the shapes of the OpenAPI description."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

Text = Annotated[str, Field(description="Raw text; it is cut into words as in training.")]
Words = Annotated[list[str], Field(description="A text that is cut into words already.", min_length=1)]
ModelName = Annotated[str | None, Field(description="A name of /v1/models; the first one when not given.")]


class PredictRequest(BaseModel):
    """Texts to label or tag."""

    model_config = ConfigDict(extra="forbid", strict=True)

    texts: Annotated[list[Text | Words], Field(min_length=1)]
    model: ModelName = None


class TraceRequest(BaseModel):
    """A sentence whose exchange of states is to be shown."""

    model_config = ConfigDict(extra="forbid", strict=True)

    text: Text | Words
    model: ModelName = None


class Span(BaseModel):
    """text[start:end], counted in Unicode code points; `score` is the least certain word's probability."""

    start: int
    end: int
    label: str
    text: str
    score: float


class Prediction(BaseModel):
    """`label`, `score` and `probabilities` of a classifier, `spans` of a tagger; a joint model has all."""

    label: str | None = None
    score: float | None = None
    probabilities: dict[str, float] = {}
    spans: list[Span] = []


class PredictAnswer(BaseModel):
    """One prediction for each text, in their order."""

    model: str
    predictions: list[Prediction]


class Step(BaseModel):
    """One step of the exchange. Shares are means over the hidden units."""

    words: Annotated[list[list[float]], Field(description="For each word its shares, in the order of `sources`.")]
    sentence_read: Annotated[list[float], Field(description="What the sentence took from each word.")]
    sentence_kept: Annotated[float, Field(description="What the sentence kept of itself: with the words it makes one.")]
    words_moved: Annotated[list[float], Field(description="|h^t - h^(t-1)| / |h^t| of each word.")]
    sentence_moved: float
    prediction: Annotated[Prediction, Field(description="What the model says when it stops after this step.")]


class TraceAnswer(BaseModel):
    """Steps 1 to T. `words` begins with <s> and ends with </s>, which have no place in the text."""

    model: str
    text: str
    words: list[str]
    offsets: list[tuple[int, int] | None]
    sources: list[str]
    steps: list[Step]


class ModelDescription(BaseModel):
    name: str
    targets: Annotated[list[str], Field(description="label, tags or both: what predictions hold.")]
    runtime: Annotated[str, Field(description="torch, or onnx for an exported model.")]
    encoder: str
    hidden_size: int
    num_steps: int | None
    parameters: int | None
    labels: list[str]
    span_labels: list[str]
    trace: Annotated[bool, Field(description="Whether /v1/trace answers for this model.")]


class ModelsAnswer(BaseModel):
    models: list[ModelDescription]
    limits: dict[str, Any]


class Status(BaseModel):
    status: str


class Refusal(BaseModel):
    """Why a request was not answered."""

    detail: str
