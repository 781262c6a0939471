"""python -m sentence_state"""

import os
import sys

from .cli import main

code = main()
if "TORCHELASTIC_RUN_ID" in os.environ:
    # One of torchrun's processes: gloo's threads may still be letting go of their last message, and one that asks for
    # Python's lock while Python is shutting down ends the process with SIGABRT, and with it all others.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
sys.exit(code)
