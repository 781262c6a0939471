"""python -m sentence_state"""

import sys

from .cli import main

sys.exit(main())
