"""The command line."""

import sys

from experiments.engine import run

sys.exit(run.main())
