#!/usr/bin/env python3
"""The rows of pytorch_step.json, on disk as soon as each is there, and our step held against PyTorch's.

  pytorch_results.py FOLDER   compares FOLDER/step_NAME/validation.json (of `orrery validate --out`) with the rows called
                              NAME of FOLDER/pytorch_step.json; prints a line for each and writes FOLDER/ratio.json
"""
import json
import os
import sys

LIMIT = 1.10  # of our step over PyTorch's eager one with FLASH_ATTENTION


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


def compare(folder):
    theirs, rows = Results(os.path.join(folder, "pytorch_step.json"), {}), []
    for name in ("plain", "checkpointing", "accumulation"):
        path = os.path.join(folder, "step_" + name, "validation.json")
        row = theirs.find("steps", name)
        if row is None or not os.path.exists(path):
            continue
        with open(path) as file:
            spec = json.load(file)["specs"][0]
        if "error" in spec:
            continue
        ours = spec["measured"]["step_time_s"]
        rows.append({"name": name, "ours_s": ours, "pytorch_s": row["step_s"], "ratio": ours / row["step_s"],
                     "within_limit": ours <= LIMIT * row["step_s"]})
        print(f"{name:16} ours {ours * 1e3:8.2f} ms  PyTorch {row['step_s'] * 1e3:8.2f} ms  ratio {rows[-1]['ratio']:.3f}")
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
