"""Orrery from Python: predict, compare, search and run training steps of large models.

>>> import orrery
>>> report = orrery.simulate("examples/llama-3.1-70b.yaml", set={"strategy.sharding": "zero1"})
>>> report.step_time_s, report.memory.fits
>>> for case in orrery.compare(["a.yaml"], vary={"strategy.tensor": [1, 2, 4, 8]}): print(case.name, case.report)
>>> for found in orrery.search("a.yaml", gpus=[64]): print(found.name, found.report.step_time_s)

A spec is a path, a recipe's name, or a mapping with the keys of `orrery list keys`; paths in a mapping are absolute.
Bad input raises OrreryError with the program's own line; what the program remarks is an OrreryWarning.
"""

from __future__ import annotations

import json
from typing import Any, Iterator, Mapping, Sequence

from .program import (OrreryError, OrreryWarning, Spec, options_of, program, run_json, run_text, set_options,
                      spec_files, vary_options)
from .report import Case, Communication, Found, Memory, RankMemory, Report, to_pandas
from .version import __version__

__all__ = ["Case", "Communication", "Found", "Memory", "OrreryError", "OrreryWarning", "RankMemory", "Report", "Search",
           "Spec", "__version__", "compare", "program", "run", "schema", "search", "simulate", "to_pandas"]


def simulate(spec: Spec, *, set: Mapping[str, object] | None = None, on: str | None = None,
             profile: str | None = None) -> Report:
    """Predicts one step. on: machines ("2xdgx-h100") for a model without a spec."""
    with spec_files([spec]) as paths:
        return Report.of(run_json(["simulate", *paths, *set_options(set), *options_of(on=on, profile=profile)]))


def run(spec: Spec, *, set: Mapping[str, object] | None = None, steps: int | None = None,
        ranks: int | None = None, device: str = "cpu") -> Report:
    """Executes steps on this machine and reports what was measured."""
    options = options_of(steps=steps, ranks=ranks, device=device)
    with spec_files([spec]) as paths:
        return Report.of(run_json(["run", *paths, *set_options(set), *options]))


def compare(specs: Spec | Sequence[Spec], *, vary: Mapping[str, Sequence[object]] | None = None,
            set: Mapping[str, object] | None = None) -> Iterator[Case]:
    """Predicts every spec under every combination of values. Raises OrreryError if none is possible."""
    listed: list[Spec] = list(specs) if isinstance(specs, (list, tuple)) else [specs]  # type: ignore[list-item]
    with spec_files(listed) as paths:
        rows = run_json(["compare", *paths, *vary_options(vary), *set_options(set)])
    for row in rows:
        yield Case(row["name"], Report.of(row["report"]) if "report" in row else None, row.get("error"))


class Search:
    """What a search found: iterates over the best strategies, the best first. proven: no other can be better."""
    def __init__(self, raw: Mapping[str, Any]) -> None:
        self.raw = raw
        self.proven = bool(raw["proven"])
        self.machines: list[Mapping[str, Any]] = list(raw.get("machines", []))

    def __iter__(self) -> Iterator[Found]:
        for row in self.raw.get("strategies", []):
            yield Found(row["name"], tuple(row["overrides"]), row["slower"], Report.of(row["report"]))

    def __len__(self) -> int:
        return len(self.raw.get("strategies", []))


def search(spec: Spec, *, set: Mapping[str, object] | None = None, gpus: Sequence[int] = (),
           clusters: Sequence[str] = (), top: int | None = None, tokens: float | None = None) -> Search:
    """Searches for the best strategies that fit: what the spec gives is fixed, what it leaves out is searched."""
    options = [part for node in clusters for part in ("--cluster", node)]
    options += options_of(gpus=",".join(str(n) for n in gpus) or None, top=top, tokens=tokens)
    with spec_files([spec]) as paths:
        return Search(run_json(["search", "--quiet", *paths, *set_options(set), *options], accepted=(0, 1)))


def schema() -> Mapping[str, Any]:
    """The JSON Schema of a spec."""
    made: Mapping[str, Any] = json.loads(run_text(["schema"]))
    return made
