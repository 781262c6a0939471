"""The command line: parse, call, print. What the user got wrong is one message and exit code 2, never a traceback."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence

import tyro

from . import __version__
from .commands import starting
from .commands.flags import Command, Demo, Evaluate, Export, Predict, Reproduce, Serve, Train, Tune, UsageError

WRONG, BROKEN_PIPE = 2, 141
DESCRIPTION = (
    "Sentence-State LSTM: train a classifier or a tagger on your own files, use it, measure it. "
    "--version says which one this is."
)
STYLE = (
    tyro.conf.OmitArgPrefixes,  # --epochs, not --settings.epochs
    tyro.conf.OmitSubcommandPrefixes,
    tyro.conf.FlagCreatePairsOff,  # --resume, no --no-resume
    tyro.conf.DisallowNone,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    write_any_text()
    try:
        return run(arguments)
    except KeyboardInterrupt:
        print("\nstopped", file=sys.stderr)
        return starting.INTERRUPTED
    except BrokenPipeError:  # the reader of a pipe, such as head, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE


def run(arguments: Sequence[str]) -> int:
    if arguments == ["--version"]:
        print(f"sentence-state {__version__}")
        return 0
    try:
        command = tyro.cli(Command, prog="sentence-state", description=DESCRIPTION, args=arguments, config=STYLE)
    except SystemExit:
        sys.stdout.flush()  # the help: a closed pipe is met here, not while Python shuts down
        raise
    from torch import OutOfMemoryError  # here, since --help and wrong flags need none of it

    from .data import DataError
    from .training import TrainingError

    starting.end()
    try:
        return call(command, arguments)
    except (DataError, UsageError, TrainingError) as error:
        return complain(str(error))
    except (OutOfMemoryError, MemoryError):
        return complain("there is not enough memory: try a smaller --batch-size, or in training --micro-batches")
    except BrokenPipeError:
        raise
    except OSError as error:
        return complain(f"{error.filename}: {error.strerror}" if error.filename else str(error))


def write_any_text() -> None:
    """Files and pipes get UTF-8 on every system; a terminal shows what it can."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a notebook puts something else in its place
            if stream.isatty():
                stream.reconfigure(errors="replace")
            else:
                stream.reconfigure(encoding="utf-8")


def call(
    command: Train | Evaluate | Predict | Export | Serve | Demo | Reproduce | Tune, arguments: Sequence[str]
) -> int:
    """Each command is imported when it is called."""
    if isinstance(command, Train):
        from .commands.train import train

        return train(command.task, arguments)
    if isinstance(command, Evaluate):
        from .commands.evaluate import evaluate

        return evaluate(command)
    if isinstance(command, Predict):
        from .commands.predict import predict

        return predict(command)
    if isinstance(command, Export):
        from .commands.export import export

        return export(command)
    if isinstance(command, Serve):
        from .commands.serve import serve

        return serve(command)
    if isinstance(command, Reproduce):
        from .commands.reproduce import reproduce

        return reproduce(command)
    if isinstance(command, Tune):
        from .commands.tune import tune

        return tune(command)
    from .commands.demo import demo

    return demo(command)


def complain(message: str) -> int:
    if os.environ.get("LOCAL_RANK", "0") != "0":  # of torchrun's processes, one on every machine says it
        return WRONG
    print(f"error: {message}", file=sys.stderr)
    return WRONG
