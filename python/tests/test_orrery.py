"""The package against the program: python3 -m unittest, with ORRERY naming the program."""

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))

import orrery  # noqa: E402

SMALL = str(ROOT / "tests" / "program" / "specs" / "small.yaml")
SPEC = {
    "model": {"name": "t", "layers": 4, "hidden": 256, "heads": 8, "feed_forward": 1024, "vocab": 1024},
    "sequence": 256,
    "cluster": {"node": "dgx-h100", "nodes": 1},
    "strategy": {"tensor": 2, "data": 4, "global_batch": 8},
}


def has(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


class Simulate(unittest.TestCase):
    def test_is_what_the_program_prints(self) -> None:
        report = orrery.simulate(SMALL, set={"strategy.micro_batch": 2})
        out = subprocess.run([orrery.program(), "simulate", SMALL, "--set", "strategy.micro_batch=2", "--json"],
                             stdout=subprocess.PIPE, check=True, text=True).stdout
        told = json.loads(out)
        self.assertEqual(report.step_time_s, told["step_time_s"])
        self.assertEqual(report.memory.peak_bytes, told["memory"]["peak_bytes"])
        self.assertEqual(len(report.communication), len(told["communication"]))
        self.assertAlmostEqual(sum(report.time_s.values()), report.step_time_s, delta=1e-6 * report.step_time_s)
        self.assertEqual(report.memory.ranks[0].peak_bytes, sum(report.memory.ranks[0].at_peak.values()))

    def test_takes_a_mapping(self) -> None:
        with_two, with_four = orrery.simulate(SPEC), orrery.simulate(SPEC, set={"strategy": {"tensor": 4, "data": 2}})
        self.assertNotEqual(with_two.plan_hash, with_four.plan_hash)

    def test_takes_a_model_and_machines(self) -> None:
        self.assertTrue(orrery.simulate("llama-3.1-8b", on="1xdgx-h100").memory.fits)

    def test_bad_input_is_the_programs_line(self) -> None:
        with self.assertRaises(orrery.OrreryError) as raised:
            orrery.simulate(SMALL, set={"strategy.tensr": 2})
        self.assertEqual(raised.exception.status, 2)
        self.assertIn("tensr", str(raised.exception))

    def test_a_file_may_have_any_name(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            self.addCleanup(os.chdir, os.getcwd())
            os.chdir(folder)
            Path("-größe.json").write_text(json.dumps(SPEC), encoding="utf-8")
            self.assertGreater(orrery.simulate("-größe.json").step_time_s, 0)

    def test_a_missing_program_is_named(self) -> None:
        with mock.patch.dict(os.environ, {"ORRERY": "/nowhere/orrery"}):
            with self.assertRaises(orrery.OrreryError) as raised:
                orrery.simulate(SPEC)
        self.assertIn("/nowhere/orrery: No such file", str(raised.exception))

    def test_what_the_program_remarks_is_a_warning(self) -> None:
        with mock.patch.object(subprocess, "run") as run:
            run.return_value = subprocess.CompletedProcess([], 0, stdout="{}", stderr="orrery: rounded\n")
            with self.assertWarns(orrery.OrreryWarning):
                orrery.schema()

    def test_version_is_the_programs(self) -> None:
        told = subprocess.run([orrery.program(), "--version"], stdout=subprocess.PIPE, check=True, text=True).stdout
        self.assertEqual(told.split()[1], orrery.__version__)
        self.assertEqual(orrery.simulate(SMALL).software_version, orrery.__version__)


class CompareAndSearch(unittest.TestCase):
    def test_every_combination_has_a_report_or_a_reason(self) -> None:
        cases = list(orrery.compare(SPEC, vary={"strategy.tensor": [2, 3], "strategy.sharding": ["none", "zero1"]}))
        self.assertEqual(len(cases), 4)
        self.assertEqual([case.report is not None for case in cases], [True, True, False, False])
        self.assertIn("gpus: 12", str(cases[2].error))

    def test_without_a_possible_combination_the_reason_is_raised(self) -> None:
        with self.assertRaises(orrery.OrreryError) as raised:
            list(orrery.compare(SPEC, vary={"strategy.tensor": [3]}))
        self.assertIn("gpus: 12", str(raised.exception))

    def test_lists_are_varied_as_lists(self) -> None:
        cases = list(orrery.compare(SPEC, vary={"strategy.recompute": ["none", ["mlp", "norm"]]}))
        self.assertEqual(len(cases), 2)

    def test_a_list_of_values_is_no_text(self) -> None:
        for wrong in ("none", ["none,full"]):
            with self.assertRaises(ValueError):
                list(orrery.compare(SPEC, vary={"strategy.recompute": wrong}))

    def test_mappings_are_told_apart(self) -> None:
        cases = list(orrery.compare([SPEC, SMALL, SPEC], vary={"strategy.micro_batch": [1]}))
        self.assertEqual([case.name.split()[0] for case in cases], ["spec1", "small", "spec3"])

    def test_zero_is_given_on(self) -> None:
        with self.assertRaises(orrery.OrreryError) as raised:
            orrery.search(SPEC, top=0)
        self.assertEqual(raised.exception.status, 2)

    def test_a_search_iterates_from_the_best(self) -> None:
        spec = {**SPEC, "strategy": {"global_batch": 8, "schedule": "1f1b", "recompute": "none", "sharding": "zero1"}}
        found = orrery.search(spec, top=3)
        self.assertTrue(found.proven)
        strategies = list(found)
        self.assertEqual(len(strategies), len(found))
        self.assertEqual(strategies[0].slower, 0)
        self.assertEqual(sorted(s.report.step_time_s for s in strategies), [s.report.step_time_s for s in strategies])
        again = orrery.simulate(spec, set=dict(o.split("=", 1) for o in strategies[0].overrides))
        self.assertEqual(again.step_time_s, strategies[0].report.step_time_s)

    @unittest.skipUnless(has("pandas"), "pandas is not installed")
    def test_frames(self) -> None:
        frame = orrery.to_pandas(orrery.compare(SPEC, vary={"strategy.micro_batch": [1, 2]}))
        self.assertEqual(len(frame), 2)
        self.assertGreater(frame["tokens_per_s"].min(), 0)
        self.assertIn("time_s.compute", frame.columns)

    @unittest.skipIf(has("pandas"), "pandas is installed")
    def test_frames_without_pandas(self) -> None:
        with self.assertRaises(ImportError):
            orrery.to_pandas([])


class Package(unittest.TestCase):
    def test_is_small(self) -> None:
        lines = sum(len(path.read_text().splitlines()) for path in (ROOT / "python" / "orrery").glob("*.py"))
        self.assertLessEqual(lines, 300)

    @unittest.skipUnless(has("mypy"), "mypy is not installed")
    def test_is_typed(self) -> None:
        done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "orrery"], cwd=ROOT / "python",
                              stdout=subprocess.PIPE, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout)

    @unittest.skipUnless(has("jsonschema"), "jsonschema is not installed")
    def test_the_schema_by_jsonschema(self) -> None:
        import jsonschema

        check = jsonschema.Draft202012Validator(orrery.schema())
        check.check_schema(check.schema)
        check.validate(SPEC)
        for wrong in ({**SPEC, "stratgy": {}}, {**SPEC, "sequence": [1]}, {**SPEC, "strategy": {"tensor": "two"}}):
            self.assertFalse(check.is_valid(wrong), wrong)

    @unittest.skipUnless(has("setuptools") and has("wheel"), "setuptools or wheel is not installed")
    def test_installs_into_a_venv(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, "-m", "venv", "--system-site-packages", folder + "/v"], check=True)
            source = folder + "/python"
            subprocess.run(["cp", "-r", str(ROOT / "python"), source], check=True)
            subprocess.run([folder + "/v/bin/python", "-m", "pip", "install", "--quiet", "--no-build-isolation",
                            "--no-deps", "--no-index", source], check=True)
            code = f"import orrery; print(orrery.__file__, orrery.simulate({SMALL!r}).step_time_s)"
            out = subprocess.run([folder + "/v/bin/python", "-c", code], stdout=subprocess.PIPE, text=True, check=True,
                                 cwd="/", env={**os.environ, "PYTHONPATH": "", "ORRERY": orrery.program()}).stdout
            self.assertTrue(out.startswith(folder), out)


if __name__ == "__main__":
    unittest.main()
