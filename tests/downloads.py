"""Download the servers' jars that tests need, before they run in several processes.

``python -m tests.downloads``; the Python environments of other tools are made by the tests
that use them.
"""

import sys
import time
from collections.abc import Callable
from functools import partial

from cdc_lakehouse.errors import UserError
from lab.stack import jars, trino_server

DOWNLOADS: dict[str, Callable[[], object]] = {
    "Kafka, Connect and Debezium": partial(jars.fetch, *jars.STACK),
    "Debezium's connector for MariaDB": partial(jars.fetch, "mariadb"),
    "Apicurio's registry": partial(jars.fetch, "registry"),
    "the jars of Hive's metastore": partial(jars.fetch, "metastore"),
    "Trino and its Java": trino_server.fetch,
}

if __name__ == "__main__":
    for name, download in DOWNLOADS.items():
        begin = time.monotonic()
        try:
            download()
        except UserError as error:
            sys.exit(f"tests.downloads: {error}")
        print(f"{name}: there after {time.monotonic() - begin:.0f} s", flush=True)
