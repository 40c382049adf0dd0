"""java: where Netty is, and how a program on it is started."""

import shutil
from pathlib import Path

JARS = ["netty-common.jar", "netty-transport.jar", "netty-buffer.jar", "netty-resolver.jar",
        "jctools-core.jar"]
# Without these Netty does without its faster selector and buffers.
OPENED = ["java.base/java.nio", "java.base/sun.nio.ch"]


class Java:
    """The Java programs of this benchmark: compiled by the Makefile into ${classes}."""

    def __init__(self, jars, classes):
        self.jars = Path(jars)
        self.classes = Path(classes)

    def why_missing(self, program):
        """Why ${program} cannot run, or None."""
        if not shutil.which("java"):
            return "java is not installed"
        absent = [name for name in JARS if not (self.jars / name).exists()]
        if absent:
            return f"{', '.join(absent)} not in {self.jars}"
        if not (self.classes / f"{program}.class").exists():
            return f"{program}.class is not in {self.classes}: javac was missing when it was built"
        return None

    def command(self, program):
        """The words that start ${program}; its arguments are to be added."""
        path = [str(self.jars / name) for name in JARS] + [str(self.classes)]
        opened = [word for name in OPENED for word in ("--add-opens", f"{name}=ALL-UNNAMED")]
        return ["java", "-Xms256m", "-Xmx256m", *opened, "-cp", ":".join(path), program]

    def version(self):
        """Netty's version by the name of its file, None when that does not say."""
        for path in sorted(self.jars.glob("netty-common-*.jar")):
            return path.stem.removeprefix("netty-common-")
        return None
