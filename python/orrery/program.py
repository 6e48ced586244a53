"""Runs the orrery program and reads the JSON that it prints."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Iterator, Mapping, Sequence, Union

Spec = Union[str, "os.PathLike[str]", Mapping[str, Any]]


class OrreryError(RuntimeError):
    """The program's own line about what went wrong, and its exit status: 1 failure, 2 bad input, 5 a rank was lost."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


def program() -> str:
    """The path of the program: $ORRERY, else the one of the prefix that this package lies in, else one on PATH."""
    given = os.environ.get("ORRERY")
    if given:
        return given
    parents = Path(__file__).resolve().parents
    if len(parents) > 4 and (parents[4] / "bin" / "orrery").is_file():
        return str(parents[4] / "bin" / "orrery")
    found = shutil.which("orrery")
    if found is None:
        raise OrreryError("orrery: is not on PATH; install it, or name it by the environment variable ORRERY", 1)
    return found


def run_text(arguments: Sequence[str], accepted: Sequence[int] = (0,)) -> str:
    """What a command prints. Raises OrreryError for an exit status that is not accepted."""
    done = subprocess.run([program(), *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode not in accepted or not done.stdout:
        lines = done.stderr.strip().splitlines() or [f"orrery {arguments[0]}: exit status {done.returncode}"]
        raise OrreryError(lines[-1], done.returncode)
    return done.stdout


def run_json(arguments: Sequence[str], accepted: Sequence[int] = (0,)) -> Any:
    """What a command prints with --json."""
    return json.loads(run_text([*arguments, "--json", "--quiet"], accepted))


@contextmanager
def spec_file(spec: Spec) -> Iterator[str]:
    """A spec's file: the path that is given, or a temporary file with the values that are given (JSON is YAML too)."""
    if not isinstance(spec, Mapping):
        yield os.fspath(spec)
        return
    with tempfile.TemporaryDirectory(prefix="orrery-") as folder:
        path = os.path.join(folder, "spec.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(spec, file)
        yield path


def word(value: object) -> str:
    """A value as --set takes it: text as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value)


def set_options(values: Mapping[str, object] | None) -> list[str]:
    """--set for each key of a spec that is to have another value."""
    return [part for key, value in (values or {}).items() for part in ("--set", f"{key}={word(value)}")]
