#!/usr/bin/env python3
"""The rows of pytorch_step.json, on disk as soon as each is there, and our step held against PyTorch's.

  pytorch_results.py FOLDER   compares FOLDER/step_NAME/validation.json (of `orrery validate --out`) with the rows of
                              FOLDER/pytorch_step.json that have the same model: with the attention that PyTorch takes by
                              itself, by which we are judged, and with FlashAttention-2. Prints a line of JSON for each
                              and writes them to FOLDER/ratio.json
"""
import json
import os
import sys

LIMIT = 1.10  # of our step over PyTorch's eager one with the attention that it takes by itself
DEFAULT, PINNED = "", ", FLASH_ATTENTION"  # ends of the names of PyTorch's rows


class Results:
    """What a file holds: `about`, and rows in lists by kind. A row replaces one of its name, whoever wrote it."""

    def __init__(self, path, about):
        self.path, self.content = path, dict(about, steps=[], attention=[])
        if path and os.path.exists(path):
            with open(path) as file:
                before = json.load(file)
            for kind in ("steps", "attention"):
                self.content[kind] = before.get(kind, [])

    def find(self, kind, name):
        return next((row for row in self.content[kind] if row["name"] == name and "error" not in row), None)

    def add(self, kind, row):
        self.content[kind] = [r for r in self.content[kind] if r["name"] != row["name"]] + [row]
        if not self.path:
            return
        with open(self.path + ".new", "w") as file:
            json.dump(self.content, file, indent=2)
            file.write("\n")
        os.replace(self.path + ".new", self.path)


def our_step(path):
    """Seconds of our step: of the steps in which no task was timed, if there are any; None where it failed."""
    if not os.path.exists(path):
        return None
    with open(path) as file:
        spec = json.load(file)["specs"][0]
    if "error" in spec:
        return None
    return spec.get("unmarked_step_s") or spec["measured"]["step_time_s"]


def compare(folder):
    theirs, rows = Results(os.path.join(folder, "pytorch_step.json"), {}), []
    for name in ("plain", "checkpointing", "accumulation"):
        ours = our_step(os.path.join(folder, "step_" + name, "validation.json"))
        by = {key: theirs.find("steps", name + end) for key, end in (("default", DEFAULT), ("flash", PINNED))}
        if ours is None or not any(by.values()):
            continue
        row = {"name": name, "ours_s": ours}
        for key, their in by.items():
            if their is not None:
                row.update({f"pytorch_{key}_s": their["step_s"], f"ratio_{key}": ours / their["step_s"]})
        if by["default"] is not None:
            row["within_limit"] = ours <= LIMIT * by["default"]["step_s"]
        rows.append(row)
        print(json.dumps(row))
    return rows


def main():
    folder = sys.argv[1]
    rows = compare(folder)
    if not rows:
        sys.exit(f"{folder}: no step of ours and of PyTorch's to compare")
    with open(os.path.join(folder, "ratio.json"), "w") as file:
        json.dump({"limit": LIMIT, "steps": rows}, file, indent=2)
        file.write("\n")


if __name__ == "__main__":
    main()
