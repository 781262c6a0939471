"""sentence-state train: files -> run folder, saying on the way what was found and how it goes."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from ..data import Example, Splits, Vocabulary, read_embeddings
from ..data.indexing import Vocabularies
from ..data.streaming import StreamedExamples, Survey
from ..data.word_vectors import cache_folder, read_word_vectors
from ..models import JointModel, Model, ModelConfig, SequenceTagger, TextClassifier
from ..training import Evaluation, Progress, TrainingConfig, TrainingResult, fit, preset
from ..training.config import suit_to_size
from ..training.distributed import is_first, pick_device, started_together, was_restarted
from ..training.run_folder import refuse_other_run
from .console import TrainingDisplay, make_console, percent, print_evaluation, program
from .flags import Settings, TrainFlags, UsageError
from .load import check_device
from .pictures import HOW_TO_GET_PICTURES, confusion_matrices, draw_run
from .saved_reading import as_read
from .starting import INTERRUPTED
from .tracking import Tracker
from .training_data import Material, read_material, task_of

MODELS: dict[str, type[Model]] = {"classifier": TextClassifier, "tagger": SequenceTagger, "joint": JointModel}


def train(flags: TrainFlags, arguments: Sequence[str]) -> int:
    """`arguments` are those of the command line, to print how to go on. Returns the exit code."""
    console = make_console(quiet=not is_first())
    resume = flags.resume or was_restarted()
    if is_first() and not resume:
        refuse_other_run(flags.out)  # before the user waits for anything
    tracker = Tracker(flags.out) if flags.track and is_first() else None
    model_config, training_config = configure(flags)
    material = read_material(flags)
    if flags.preset == "fast":
        training_config, notes = suited(training_config, flags.settings, len(material.splits.train))
        material.notes += notes
    for note in material.notes:
        console.print(note)
    if started_together() and training_config.batch_size < int(os.environ["WORLD_SIZE"]):
        size, processes = training_config.batch_size, os.environ["WORLD_SIZE"]
        raise UsageError(f"{processes} processes share a batch of {size}: give --batch-size {processes} or more")
    model = build(flags, material, model_config, console)
    console.print(describe_model(model, training_config))
    with TrainingDisplay(console) as display:

        def progress(where: Progress) -> None:
            display(where)
            if tracker and where.record:
                tracker(where.record)

        reading = as_read(flags, material.columns)
        result = fit(model, material.splits, training_config, flags.out, resume, progress, reading)
    if not result.finished:
        console.print(how_to_go_on(flags.out, result, arguments), style="bold")
        return INTERRUPTED
    if is_first():
        report(console, flags, model, material.splits, result)
    return 0


def configure(flags: TrainFlags) -> tuple[ModelConfig, TrainingConfig]:
    """The preset with the user's flags over it."""
    model, training = preset(flags.preset, task_of(flags), vectors=flags.sources.embeddings is not None)
    check_device(flags.device)
    try:
        if flags.settings.shard:
            training = replace(training, lazy_words=False)  # FSDP2 knows no sparse gradients
        training = replace(training, **given(flags.settings, training), seed=flags.seed, device=flags.device)
        return replace(model, **given(flags.settings, model)), training
    except ValueError as error:
        raise UsageError(str(error)) from None


def suited(config: TrainingConfig, settings: Settings, sentences: int) -> tuple[TrainingConfig, list[str]]:
    """The config for so many sentences, with what the user chose as it is, and what to tell the user."""
    suited = suit_to_size(config, sentences, keep=given(settings, config))
    if suited == config:
        return config, []
    chosen = f"batches of {suited.batch_size}, at most {suited.epochs} epochs, patience {suited.patience}"
    return suited, [f"{sentences:,} sentences are few: {chosen} (--batch-size, --epochs, --patience to choose)"]


def given(settings: Settings, config: ModelConfig | TrainingConfig) -> dict[str, Any]:
    """The settings that the user chose and that are fields of this config."""
    names = {field.name for field in fields(config)}
    chosen = {name: value for name, value in asdict(settings).items() if value is not None and value is not False}
    return {name: value for name, value in chosen.items() if name in names}


def build(flags: TrainFlags, material: Material, config: ModelConfig, console: Console) -> Model:
    if isinstance(material.splits.train, StreamedExamples):
        return build_streamed(flags, material, material.splits.train.survey, config, console)
    words = vectors = None
    if flags.sources.embeddings is not None:
        words, embeddings = read_word_vectors(flags.sources.embeddings, material.splits)
        vectors = embeddings.matrix(flags.seed)
        for note in embeddings.description:
            console.print(note)
    train = material.splits.train
    make = MODELS[task_of(flags)].from_examples
    try:
        return make(train, config, words=words, vectors=vectors, tokenizer=material.tokenizer, seed=flags.seed)
    except ValueError as error:
        raise UsageError(str(error)) from None


def build_streamed(
    flags: TrainFlags, material: Material, found: Survey, config: ModelConfig, console: Console
) -> Model:
    """A model from what the pass over the files counted."""
    make, words, vectors = MODELS[task_of(flags)], found.vocabulary(), None
    if flags.sources.embeddings is not None:
        embeddings = read_embeddings(flags.sources.embeddings, words, cache_folder())
        vectors = embeddings.matrix(flags.seed)
        config = replace(config, word_size=vectors.shape[1])
        for note in embeddings.description:
            console.print(note)
    tags = [*found.tags, *(["O"] if material.tag_scheme != "plain" else [])]
    vocabularies = Vocabularies(
        words=words,
        characters=found.characters() if config.characters != "none" else None,
        labels=Vocabulary.of_labels(found.labels) if "label" in make.targets else None,
        tags=Vocabulary.of_labels(tags) if "tags" in make.targets else None,
        case=config.case_size > 0,
    )
    return make.from_vocabularies(
        vocabularies,
        config,
        seed=flags.seed,
        tag_scheme=material.tag_scheme,
        tokenizer=material.tokenizer,
        vectors=vectors,
    )


def describe_model(model: Model, config: TrainingConfig) -> str:
    parameters = sum(parameter.numel() for parameter in model.parameters())
    vectors = model.embedding.words.weight.numel()
    device = pick_device(config.device)
    threads = f", {torch.get_num_threads()} threads" if device.type == "cpu" else ""
    words = len(model.vocabularies.words)
    size = f"{parameters:,} parameters, {vectors:,} of them vectors of {words:,} words"
    return (
        f"{model.config.encoder} of size {model.config.hidden_size}: {size}; on {device}{threads}, seed {config.seed}"
    )


def how_to_go_on(run: Path, result: TrainingResult, arguments: Sequence[str]) -> str:
    done = f"{len(result.history)} epochs done"
    resumed = [*(argument for argument in arguments if argument != "--resume"), "--resume"]
    start = "torchrun (with its flags as before) -m sentence_state" if started_together() else program()
    return f"Stopped, {done}; everything is saved in {run}. To go on:\n  {start} {shlex.join(resumed)}"


def report(console: Console, flags: TrainFlags, model: Model, splits: Splits, result: TrainingResult) -> None:
    """Scores of the best epoch, pictures, and the command to type next."""
    name, examples, evaluation = "test", splits.test, result.test
    if evaluation is None:
        name, examples, evaluation = "dev", splits.dev, result.dev
    if evaluation is None:
        return
    best = f"epoch {result.best_epoch}, dev {percent(result.best_score or 0)}, {result.seconds:.0f} s of training"
    print_evaluation(console, evaluation, f"{name} after the best epoch ({best})")
    draw(console, flags.out, model, examples, evaluation, result.history)
    console.print(f"The model is in {flags.out}. Next:", style="bold")
    console.print(f"  {program()} {next_command(flags.out, examples)}")


def draw(
    console: Console,
    run: Path,
    model: Model,
    examples: Sequence[Example],
    evaluation: Evaluation,
    history: Sequence[dict[str, Any]],
) -> None:
    pictures = draw_run(run, history, confusion_matrices(model, examples, evaluation))
    console.print(HOW_TO_GET_PICTURES if pictures is None else f"pictures: {', '.join(map(str, pictures))}")


def next_command(run: Path, examples: Sequence[Example]) -> str:
    """One that can be copied as it is: a sentence of the user's own to predict."""
    example = min(examples, key=lambda one: abs(len(one.words) - 8))
    text = " ".join((example.text or " ".join(example.words)).split())
    return f"predict {shlex.quote(str(run))} {quoted(text)}"


def quoted(text: str) -> str:
    """In double quotes where that is safe in every shell, since people find them easier to change."""
    return f'"{text}"' if not set(text) & set('"$`\\!') else shlex.quote(text)
