"""The jars of the stack, copied by Maven from ``connectors/pom.xml``, once."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from lake.errors import UserError

PROJECT = Path(__file__).parents[2]
POM = PROJECT / "connectors" / "pom.xml"
MARIADB_POM = PROJECT / "connectors" / "mariadb" / "pom.xml"
JARS = PROJECT / ".venv" / "stack"
KAFKA = JARS / "kafka"
PLUGINS = JARS / "plugins"
REGISTRY_FOLDER = JARS / "registry"
# Connect looks up its plugins by files like this one, which the archive lacks.
SERVICE = "META-INF/services/org.apache.kafka.connect.storage.Converter"
CONVERTER = "io.apicurio.registry.utils.converter.AvroConverter"
OLDEST_JAVA = 17


@dataclass(frozen=True)
class JarSet:
    """Jars that are fetched together, once.

    Attributes:
        pom: lists them.
        folders: where those of each of the pom's profiles go.
        stamp: the file that remembers which pom it was.
        finish: what is done with them then.
    """

    pom: Path
    folders: Mapping[str, Path]
    stamp: Path
    finish: Callable[[], None] = lambda: None

    def fetch(self) -> bool:
        """Copy the jars into their folders, where the pom has changed.

        Returns:
            Whether anything had to be fetched.

        Raises:
            UserError: Maven is missing, or it failed.
        """
        digest = hashlib.sha256(self.pom.read_bytes()).hexdigest()
        if self.stamp.exists() and self.stamp.read_text() == digest:
            return False
        maven = shutil.which("mvn")
        if maven is None:
            raise UserError(
                f"Maven fetches {', '.join(self.folders)}, and there is no `mvn` on this"
                " machine; install it: apt-get install maven"
            )
        self.stamp.unlink(missing_ok=True)
        for profile, folder in self.folders.items():
            shutil.rmtree(folder, ignore_errors=True)
            command = [maven, "-B", "-q", "-f", str(self.pom), "-P", profile]
            command += ["dependency:copy-dependencies", "-DincludeScope=runtime"]
            answer = subprocess.run(
                [*command, f"-DoutputDirectory={folder}"], capture_output=True, text=True
            )
            if answer.returncode != 0:
                said = answer.stdout.strip() or answer.stderr.strip()
                raise UserError(f"Maven cannot fetch the jars of {self.pom}: {said[:2000]}")
        self.finish()
        self.stamp.write_text(digest)
        return True


def _unpack(folder: Path) -> None:
    """Put what an archive in a folder holds in its place."""
    for archive in folder.glob("*.tar.gz"):
        with tarfile.open(archive) as content:
            content.extractall(folder, filter="data")
        archive.unlink()


def _unpack_registry() -> None:
    _unpack(REGISTRY_FOLDER)


def _unpack_converter() -> None:
    folder = PLUGINS / "apicurio"
    _unpack(folder)
    # Connect has its own, newer one.
    for older in folder.glob("connect-json-*.jar"):
        older.unlink()
    with zipfile.ZipFile(folder / "services.jar", "w") as jar:
        jar.writestr(SERVICE, CONVERTER)


# Kafka, Connect and Debezium for PostgreSQL.
STACK = JarSet(
    POM,
    {"kafka": KAFKA, "debezium": PLUGINS / "debezium", "apicurio": PLUGINS / "apicurio"},
    JARS / "pom.sha256",
    _unpack_converter,
)
# Debezium's connector for MariaDB, beside the other plugins.
MARIADB = JarSet(MARIADB_POM, {"mariadb": PLUGINS / "mariadb"}, JARS / "mariadb.sha256")
# Apicurio's registry.
REGISTRY = JarSet(
    POM, {"registry": REGISTRY_FOLDER}, JARS / "registry.sha256", _unpack_registry
)


def find_java() -> str:
    """The Java that the ingest uses, too: ``JAVA_HOME``'s, else the environment's.

    Raises:
        UserError: there is none, or it is too old for Kafka.
    """
    home = os.environ.get("JAVA_HOME")
    beside = Path(sys.executable).with_name("java")
    if home:
        java = f"{home}/bin/java"
    elif beside.exists():
        java = str(beside)
    else:
        java = shutil.which("java") or "java"
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True)
    except OSError as error:
        raise UserError(f"cannot run {java}: {error.strerror}; run `make setup`") from error
    version = re.search(r'version "(\d+)', answer.stderr)
    if version is None or int(version[1]) < OLDEST_JAVA:
        said = answer.stderr.strip().splitlines()[:1]
        raise UserError(
            f"Kafka needs Java {OLDEST_JAVA} or newer, and {java} says: {' '.join(said)}"
        )
    return java
