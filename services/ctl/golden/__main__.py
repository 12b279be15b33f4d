"""Entry point of `scripts/golden`."""

import os
import sys

from services import quiet

if __name__ == "__main__":
    quiet.prepare(os.environ)  # noqa: TID251
    with quiet.greetings_withheld():
        from services.ctl.golden.command import main

    sys.exit(main())
