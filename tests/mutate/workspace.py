"""Builds outside the source tree, and the mutated object and its programs in a directory of their own."""
import os
import shutil
import subprocess
from pathlib import Path

# What each build is for, and its variables of make.
BUILDS = {
    "plain": ["CFLAGS=-O2 -g0"],
    "coverage": ["CFLAGS=-Og -g0 --coverage -fprofile-update=atomic"],
    "sanitized": ["CFLAGS=-O1 -g", "SANITIZE=address,undefined"],
}

MAINS = {"reactord": "src/daemon/main", "reactorctl": "src/ctl/main"}


class Build:
    """One build of the unmutated tree: directory/NAME. Its tests are those of the layer and above, and below those
    that include its headers.
    """

    def __init__(self, tree, directory, name, layer, jobs):
        self.tree, self.name = tree, name
        self.directory = directory / name
        self._make = ["make", "--no-print-directory", f"BUILD={self.directory}", "WERROR="] + BUILDS[name]
        shown = self._run_make(["mutate-commands"])
        self.commands = dict(line.split("=", 1) for line in shown.splitlines() if "=" in line)
        layers = self.commands["layers"].split()
        above = layers[layers.index(layer):] if layer in layers else [layer]  # ctl
        self.tests = [test for test in self._programs("tests/unit/*/test_*.c")
                      if test.split("/")[2] in above or f'#include "{layer}/' in (tree / f"{test}.c").read_text()]
        self.stress = self._programs("tests/stress/*.c") if name == "plain" else []
        programs = self.tests + self.stress + (list(MAINS) if name == "plain" else [])
        self._run_make([f"-j{jobs}"] + [str(self.directory / program) for program in programs])

    def _run_make(self, words):
        done = subprocess.run(self._make + words, cwd=self.tree, check=False, capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"mutate: the unmutated tree does not build\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
        return done.stdout

    def _programs(self, pattern):
        return [str(path.relative_to(self.tree).with_suffix("")) for path in sorted(self.tree.glob(pattern))]

    def object_of(self, name):
        return self.directory / Path(name).with_suffix(".o")

    def shell(self, command):
        """Run a command of make's in the source tree; True when it went well."""
        environment = dict(os.environ, CCACHE_DISABLE="1")
        return subprocess.run(["sh", "-c", command], cwd=self.tree, env=environment, check=False,
                              capture_output=True).returncode == 0


class Mutant:
    """A mutated source, and what is built with it. Its files are in directory, until remove()."""

    def __init__(self, directory, source_name, text):
        self.directory, self.name = directory, source_name
        shutil.rmtree(directory, ignore_errors=True)
        self.source = directory / source_name
        self.source.parent.mkdir(parents=True)
        self.source.write_text(text)

    def compile(self, build):
        """The mutated object of a build, or None when it does not compile."""
        target = self.directory / build.name / Path(self.name).with_suffix(".o")
        target.parent.mkdir(parents=True, exist_ok=True)
        # Names in the object are as in the unmutated one, so that equal code is an equal object.
        command = f"{build.commands['compile']} -w -ffile-prefix-map='{self.directory}/'= -c -o '{target}' '{self.source}'"
        return target if build.shell(command) else None

    def library(self, build):
        """The library without the object, so that the linker takes the mutated one."""
        library = self.directory / build.name / "libreactord.a"
        if not library.exists():
            shutil.copyfile(build.directory / "libreactord.a", library)
            subprocess.run(["ar", "d", library, Path(self.name).with_suffix(".o").name], check=True)
        return library

    def link(self, build, program):
        """A program of the build, with the mutated object. What does not link says nothing about a mutant."""
        target = self.directory / build.name / program
        target.parent.mkdir(parents=True, exist_ok=True)
        mutated = self.directory / build.name / Path(self.name).with_suffix(".o")
        if program in MAINS:
            main = "" if self.name == f"{MAINS[program]}.c" else f"'{build.directory}/{MAINS[program]}.o'"
            objects, libraries = main, build.commands["libraries"]
        else:
            objects = f"'{build.directory}/{program}.o' '{build.directory}'/tests/support/*.o"
            if program.startswith("tests/unit/"):
                objects += f" '{build.directory}/tests/unit/main.o'"
            libraries = build.commands["test_libraries"]
        command = f"{build.commands['link']} -o '{target}' {objects} '{mutated}' " \
                  f"'{build.directory}/libreactorctl.a' '{self.library(build)}' {libraries}"
        if not build.shell(command):
            raise SystemExit(f"mutate: {program} does not link:\n{command}")
        return target

    def copy(self, build, program):
        """A program of the build, unmutated, beside the mutated one."""
        shutil.copy(build.directory / program, self.directory / build.name / program)

    def remove(self):
        shutil.rmtree(self.directory, ignore_errors=True)
