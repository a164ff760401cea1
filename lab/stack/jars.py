"""The jars of the local servers, which Maven copies from ``connectors/pom.xml``."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tarfile
import zipfile
from functools import partial
from pathlib import Path

from cdc_lakehouse.errors import UserError
from cdc_lakehouse.spark import java
from lab.stack.downloads import download_once

PROJECT = Path(__file__).parents[2]
POM = PROJECT / "connectors" / "pom.xml"
FOLDER = PROJECT / ".venv" / "stack"
KAFKA = FOLDER / "kafka"
PLUGINS = FOLDER / "plugins"
REGISTRY = FOLDER / "registry"
METASTORE = FOLDER / "metastore"
TRINO = FOLDER / "trino"
# Where the jars of each of the pom's profiles go.
FOLDERS = {
    "kafka": KAFKA,
    "debezium": PLUGINS / "debezium",
    "mariadb": PLUGINS / "mariadb",
    "apicurio": PLUGINS / "apicurio",
    "registry": REGISTRY,
    "metastore": METASTORE,
    "trino": TRINO,
}
# The profiles of the stack: Kafka, Connect, Debezium for PostgreSQL, the Avro converter.
STACK = ("kafka", "debezium", "apicurio")
# Maven 3.8 by itself tries again only where a connection breaks, and waits half an hour for
# an answer. Maven 3.9 has other names for these, and tries again.
WAGON = "-Dmaven.wagon"
RETRIES = (
    f"{WAGON}.http.serviceUnavailableRetryStrategy.class=standard",
    f"{WAGON}.http.retryHandler.nonRetryableClasses=java.net.UnknownHostException",
    f"{WAGON}.rto=60000",
)
# Connect looks up its plugins by files like this one, which the archive lacks.
SERVICE = "META-INF/services/org.apache.kafka.connect.storage.Converter"
CONVERTER = "io.apicurio.registry.utils.converter.AvroConverter"


def fetch(*profiles: str) -> None:
    """Make the folders of some profiles hold what the pom says.

    Raises:
        UserError: Maven is missing, or it failed.
    """
    version = hashlib.sha256(POM.read_bytes()).hexdigest()
    for profile in profiles:
        download_once(FOLDERS[profile], version, partial(_copy, profile))


def unpack(archive: Path, folder: Path) -> None:
    """Unpack a tar archive, plain or compressed."""
    with tarfile.open(archive) as content:
        # Python has it since 3.11.4.
        content.extraction_filter = getattr(tarfile, "data_filter", None)
        content.extractall(folder)


def _copy(profile: str, folder: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise UserError(
            f"Maven fetches {profile}, and there is no `mvn` on this machine; install it:"
            " apt-get install maven"
        )
    command = [maven, *RETRIES, "-B", "-q", "-f", str(POM), "-P", profile]
    command += ["dependency:copy-dependencies", "-DincludeScope=runtime"]
    answer = subprocess.run(
        [*command, f"-DoutputDirectory={folder}"], capture_output=True, text=True
    )
    if answer.returncode != 0:
        said = answer.stdout.strip() or answer.stderr.strip()
        raise UserError(f"Maven cannot fetch {profile} of {POM}: {said[:2000]}")
    for archive in folder.glob("*.tar.gz"):
        unpack(archive, folder)
        archive.unlink()
    if profile == "apicurio":
        _mend_converter(folder)


def _mend_converter(folder: Path) -> None:
    # Connect has its own, newer one.
    for older in folder.glob("connect-json-*.jar"):
        older.unlink()
    with zipfile.ZipFile(folder / "services.jar", "w") as jar:
        jar.writestr(SERVICE, CONVERTER)


def find_java() -> str:
    """The Java that the ingest uses, too (``spark.java.find``)."""
    return str(java.find() / "bin/java")
