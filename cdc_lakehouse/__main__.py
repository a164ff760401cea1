"""Entry point of ``python -m cdc_lakehouse``, which is ``cdc-lakehouse``."""

import sys

from cdc_lakehouse.cli import main

if __name__ == "__main__":
    sys.exit(main())
