"""`python -m luckrate_otel`."""

import sys

from luckrate_otel.cli import main

sys.exit(main())
