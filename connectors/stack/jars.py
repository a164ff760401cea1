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
from collections.abc import Callable
from pathlib import Path

from lake.errors import UserError

PROJECT = Path(__file__).parents[2]
POM = PROJECT / "connectors" / "pom.xml"
MARIADB_POM = PROJECT / "connectors" / "mariadb" / "pom.xml"
JARS = PROJECT / ".venv" / "stack"
KAFKA = JARS / "kafka"
PLUGINS = JARS / "plugins"
REGISTRY = JARS / "registry"
# Connect looks up its plugins by files like this one, which the archive lacks.
SERVICE = "META-INF/services/org.apache.kafka.connect.storage.Converter"
CONVERTER = "io.apicurio.registry.utils.converter.AvroConverter"
OLDEST_JAVA = 17


def fetch() -> bool:
    """Make the folders ``KAFKA`` and ``PLUGINS`` what the pom says.

    Returns:
        Whether anything had to be fetched.

    Raises:
        UserError: Maven is missing, or it failed.
    """
    apicurio = PLUGINS / "apicurio"
    folders = {"kafka": KAFKA, "debezium": PLUGINS / "debezium", "apicurio": apicurio}
    return copy_dependencies(POM, folders, JARS / "pom.sha256", _unpack_converter)


def fetch_mariadb() -> bool:
    """Make the folder of Debezium's connector for MariaDB, beside the other plugins.

    Returns:
        Whether anything had to be fetched.

    Raises:
        UserError: Maven is missing, or it failed.
    """
    folders = {"mariadb": PLUGINS / "mariadb"}
    return copy_dependencies(MARIADB_POM, folders, JARS / "mariadb.sha256")


def fetch_registry() -> bool:
    """Make the folder ``REGISTRY`` what the pom says.

    Returns:
        Whether anything had to be fetched.

    Raises:
        UserError: Maven is missing, or it failed.
    """
    stamp = JARS / "registry.sha256"
    return copy_dependencies(POM, {"registry": REGISTRY}, stamp, _unpack_registry)


def _unpack(folder: Path) -> None:
    """Put what an archive in a folder holds in its place."""
    for archive in folder.glob("*.tar.gz"):
        with tarfile.open(archive) as content:
            content.extractall(folder, filter="data")
        archive.unlink()


def _unpack_registry() -> None:
    _unpack(REGISTRY)


def _unpack_converter() -> None:
    folder = PLUGINS / "apicurio"
    _unpack(folder)
    # Connect has its own, newer one.
    for older in folder.glob("connect-json-*.jar"):
        older.unlink()
    with zipfile.ZipFile(folder / "services.jar", "w") as jar:
        jar.writestr(SERVICE, CONVERTER)


def copy_dependencies(
    pom: Path,
    folders: dict[str, Path],
    stamp: Path,
    then: Callable[[], None] = lambda: None,
) -> bool:
    """Copy the jars of each profile of a pom into its folder, where the pom has changed.

    Args:
        pom: the file.
        folders: profile to folder.
        stamp: the file that remembers which pom it was.
        then: what is done with what was fetched.

    Returns:
        Whether anything had to be fetched.

    Raises:
        UserError: Maven is missing, or it failed.
    """
    digest = hashlib.sha256(pom.read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text() == digest:
        return False
    maven = shutil.which("mvn")
    if maven is None:
        raise UserError(
            f"Maven fetches {', '.join(folders)}, and there is no `mvn` on this machine;"
            " install it: apt-get install maven"
        )
    stamp.unlink(missing_ok=True)
    for profile, folder in folders.items():
        shutil.rmtree(folder, ignore_errors=True)
        command = [maven, "-B", "-q", "-f", str(pom), "-P", profile]
        command += ["dependency:copy-dependencies", "-DincludeScope=runtime"]
        answer = subprocess.run(
            [*command, f"-DoutputDirectory={folder}"], capture_output=True, text=True
        )
        if answer.returncode != 0:
            said = answer.stdout.strip() or answer.stderr.strip()
            raise UserError(f"Maven cannot fetch the jars of {pom}: {said[:2000]}")
    then()
    stamp.write_text(digest)
    return True


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
