"""python -m sentence_state, and the command sentence-state"""

import os
import sys

from .commands import starting


def main() -> int:
    starting.begin()
    from .cli import main as run

    code = run()
    if "TORCHELASTIC_RUN_ID" in os.environ:
        # One of torchrun's processes: gloo's threads may still be letting go of their last message, and one that asks
        # for Python's lock while Python is shutting down ends the process with SIGABRT, and with it all others.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    return code


if __name__ == "__main__":
    sys.exit(main())
