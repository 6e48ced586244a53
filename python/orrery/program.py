"""Runs the orrery program and reads the JSON that it prints."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import warnings
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Iterator, Mapping, Sequence, Union

Spec = Union[str, "os.PathLike[str]", Mapping[str, Any]]


class OrreryError(RuntimeError):
    """The program's own line about what went wrong, and its exit status: 1 failure, 2 bad input, 5 a rank was lost."""
    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class OrreryWarning(UserWarning):
    """A line in which the program says something about a result, such as what it rounded."""


def program() -> str:
    """The path of the program: $ORRERY, else the one of the prefix that this package lies in, else one on PATH."""
    folders = Path(__file__).resolve().parents
    beside = folders[4] / "bin" / "orrery" if len(folders) > 4 else None
    found = os.environ.get("ORRERY") or (str(beside) if beside and beside.is_file() else shutil.which("orrery"))
    if not found:
        raise OrreryError("orrery: is not on PATH; install it, or name it by the environment variable ORRERY", 1)
    return found


def run_text(arguments: Sequence[str], accepted: Sequence[int] = (0,), callers: int = 1) -> str:
    """What a command prints. Raises OrreryError for an exit status that is not accepted; warns of what it remarks.

    callers: how many functions of this package lie between this one and the user's line, which the warning names.
    """
    command = [program(), *arguments]
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", check=False)
    except OSError as error:
        raise OrreryError(f"{command[0]}: {error.strerror}; name the program by $ORRERY", 1) from error
    lines = done.stderr.strip().splitlines()
    if done.returncode not in accepted or not done.stdout:
        lines = lines or [f"orrery {arguments[0]}: exit status {done.returncode}"]
        raise OrreryError(lines[-1], done.returncode)
    for line in lines:
        warnings.warn(line, OrreryWarning, stacklevel=2 + callers)
    return done.stdout


def run_json(arguments: Sequence[str], accepted: Sequence[int] = (0,)) -> Any:
    """What a command prints with --json."""
    return json.loads(run_text([*arguments, "--json"], accepted, callers=2))


@contextmanager
def spec_files(specs: Sequence[Spec]) -> Iterator[list[str]]:
    """The specs' files: paths as given; for a mapping a temporary file with its values (JSON is YAML too)."""
    with tempfile.TemporaryDirectory(prefix="orrery-") as folder:
        paths = []
        for number, spec in enumerate(specs, 1):
            path = os.path.join(folder, f"spec{number}.json") if isinstance(spec, Mapping) else os.fspath(spec)
            if isinstance(spec, Mapping):
                Path(path).write_text(json.dumps(spec), encoding="utf-8")
            paths.append(os.path.join(".", path) if path.startswith("-") else path)  # no option
        yield paths


def word(value: object) -> str:
    """A value as --set takes it: text as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value)


def set_options(values: Mapping[str, object] | None) -> list[str]:
    """--set for each key of a spec that is to have another value."""
    return [part for key, value in (values or {}).items() for part in ("--set", f"{key}={word(value)}")]


def vary_options(values: Mapping[str, Sequence[object]] | None) -> list[str]:
    """--vary for each key of a spec that is to have several values in turn."""
    for key, items in (values or {}).items():
        if isinstance(items, str) or any(isinstance(item, str) and "," in item for item in items):
            raise ValueError(f"vary: {key}: {items!r} is not a list of values without commas")
    return [part for key, items in (values or {}).items()
            for part in ("--vary", f"{key}={','.join(word(item) for item in items)}")]


def options_of(**values: object) -> list[str]:
    """--name value for each value that is given (not None)."""
    return [part for name, value in values.items() if value is not None for part in (f"--{name}", str(value))]
