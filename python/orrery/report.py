"""Reports as objects: the fields of the program's JSON by name, all of it in `raw`."""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field, fields
from typing import Any, Iterable, Mapping, TypeVar

T = TypeVar("T")


def build(kind: type[T], data: Mapping[str, Any], **made: Any) -> T:
    """An object of a dataclass from entries of JSON that are its fields; `made`: fields that are objects."""
    dataclass_of: Any = kind
    names = {f.name for f in fields(dataclass_of)}
    return kind(**{key: value for key, value in data.items() if key in names and key not in made}, **made)


@dataclass(frozen=True)
class RankMemory:
    """The memory of a class of ranks at its peak, in bytes; at_peak sums to peak_bytes."""
    name: str
    ranks: int
    peak_bytes: int
    peak_reserved_bytes: int
    peak_device_bytes: int
    at: str
    at_peak: Mapping[str, int]


@dataclass(frozen=True)
class Memory:
    """Peaks over all ranks, in bytes; fits: whether every rank has room."""
    capacity_bytes: int
    fits: bool
    peak_bytes: int
    peak_reserved_bytes: int
    peak_device_bytes: int
    host_peak_bytes: int
    nvme_peak_bytes: int
    ranks: tuple[RankMemory, ...]


@dataclass(frozen=True)
class Communication:
    """The transfers of one kind, of a step: bytes that leave a GPU, seconds they take and seconds compute waits."""
    group: str
    op: str
    link: str
    algorithm: str
    count: int
    bytes_per_gpu: float
    time_s: float
    exposed_s: float


@dataclass(frozen=True)
class Report:
    """A step, predicted or measured (schema orrery.report/2). Shares such as mfu are None where they are not known."""
    source: str
    step_time_s: float
    step_time_low_s: float
    step_time_high_s: float
    tokens_per_s: float
    tokens_per_s_per_gpu: float
    model_tflops_per_gpu: float
    mfu: float | None
    mfu_full_attention: float | None
    hfu: float | None
    bubble_fraction: float
    time_s: Mapping[str, float]
    memory: Memory
    communication: tuple[Communication, ...]
    remarks: tuple[str, ...]
    plan_hash: str
    software_version: str
    raw: Mapping[str, Any] = field(repr=False)

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Report:
        ranks = tuple(build(RankMemory, rank) for rank in data["memory"]["ranks"])
        communication = tuple(build(Communication, row) for row in data["communication"])
        return build(cls, data, memory=build(Memory, data["memory"], ranks=ranks), communication=communication,
                     remarks=tuple(data.get("remarks", ())), raw=data)

    def row(self) -> dict[str, Any]:
        """The figures of a step as a flat row: for tables."""
        row: dict[str, Any] = {key: value for key, value in self.raw.items() if isinstance(value, (int, float))}
        row.update({f"time_s.{kind}": seconds for kind, seconds in self.time_s.items()})
        row.update(fits=self.memory.fits, peak_bytes=self.memory.peak_bytes)
        row["peak_device_bytes"] = self.memory.peak_device_bytes
        return row


@dataclass(frozen=True)
class Case:
    """A row of a comparison: a report, or the reason why the combination is impossible."""
    name: str
    report: Report | None
    error: str | None

    def row(self) -> dict[str, Any]:
        return {"name": self.name, "error": self.error, **(self.report.row() if self.report else {})}


@dataclass(frozen=True)
class Found:
    """A strategy that a search found: how much slower than the best it is, and the settings that make it."""
    name: str
    overrides: tuple[str, ...]
    slower: float
    report: Report

    def row(self) -> dict[str, Any]:
        return {"name": self.name, "slower": self.slower, **self.report.row()}


def to_pandas(items: Iterable[Report | Case | Found]) -> Any:
    """A pandas.DataFrame with a row for each report, case or strategy. Raises ImportError where pandas is missing."""
    try:
        pandas: Any = importlib.import_module("pandas")
    except ImportError as missing:
        raise ImportError("to_pandas: pandas is not installed (python3-pandas)") from missing
    return pandas.DataFrame([item.row() for item in items])
