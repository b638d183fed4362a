#!/usr/bin/env python3
"""Runs the interoperability tests: `ble` and Bumble over rootcanal and over `ble controller`, in every combination."""

import argparse
import asyncio
import os
import shutil
import sys
import tempfile
import time
import traceback
from pathlib import Path

import captures
import hosts
from controllers import PRESETS, Controllers, OurControllers, Rootcanal
from harness import TESTS, Skipped, World
from tool import Tool

import central_tests  # noqa: F401, I001  (tests register themselves)
import server_tests  # noqa: F401
import sounding_tests  # noqa: F401
import recovery_tests  # noqa: F401
import input_tests  # noqa: F401
import bumble_tests  # noqa: F401
import controller_tests  # noqa: F401
import demo_tests  # noqa: F401
import channel_tests  # noqa: F401
import throughput_tests  # noqa: F401
import iso_tests  # noqa: F401
import broadcast_tests  # noqa: F401
import periodic_tests  # noqa: F401
import link_tests  # noqa: F401
import decode_tests  # noqa: F401
import enhanced_bearer_tests  # noqa: F401
import pairing_tests

ROOT = Path(__file__).resolve().parents[2]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--filter", default="", help="only tests whose name, with its preset before it, has this text")
    parser.add_argument("--preset", action="append", choices=list(PRESETS), help="only this preset; may be repeated")
    parser.add_argument("--list", action="store_true", help="list the tests and run none")
    parser.add_argument("--jobs", type=int, default=min(3, (os.cpu_count() or 1) + 1), help="how many tests run at once")
    parser.add_argument("--keep", default=str(ROOT / ".build-interop"), help="where captures and logs are left")
    parser.add_argument("-v", "--verbose", action="store_true", help="print where a test failed")
    return parser.parse_args()


def binary() -> Path:
    """The `ble` that BLE names, or the last build."""
    candidates = (
        [os.environ["BLE"]] if os.environ.get("BLE") else [ROOT / f".build/{kind}/ble" for kind in ("release", "debug")]
    )
    for candidate in map(Path, candidates):
        if candidate.is_file() and os.access(candidate, os.X_OK):
            return candidate.resolve()
    sys.exit(f"interop: no ble at {' or '.join(map(str, candidates))}: run make build, or name one in BLE")


class Runner:
    def __init__(self, options):
        self.options = options
        self.binary = binary()
        self.directory = Path(options.keep)
        shutil.rmtree(self.directory, ignore_errors=True)
        self.directory.mkdir(parents=True)
        self.checker = captures.Checker()
        self.passed, self.skipped, self.failures = 0, 0, []

    def report(self, name: str, started: float, error: BaseException | None):
        if isinstance(error, Skipped) and not os.environ.get("CI"):
            print(f"skipped            {name}: {error}", flush=True)
            self.skipped += 1
            return
        milliseconds = round((time.monotonic() - started) * 1000)
        print(f"{'ok    ' if error is None else 'FAILED'} {milliseconds:6} ms  {name}", flush=True)
        if error is None:
            self.passed += 1
            return
        self.failures.append(name)
        for line in describe(error, self.options.verbose):
            print(f"                  {line}", flush=True)

    async def run(self, number: int, test, preset: str | None):
        """Runs a test. If rootcanal itself has crashed during it, runs it once more and reports that."""
        name = f"{preset}: {test.name}" if preset else test.name
        label = f"{number:03}-{preset or 'none'}"
        started = time.monotonic()
        error, has_crashed = await self.attempt(label, test, preset)
        if error is not None and has_crashed:
            print(f"again              {name}: rootcanal has crashed ({describe(error, False)[0]})", flush=True)
            error, _ = await self.attempt(f"{label}-again", test, preset)
        self.report(name, started, error)

    async def attempt(self, label: str, test, preset: str | None) -> tuple[Exception | None, bool]:
        """Returns the error, and whether rootcanal's own end caused it."""
        error, world = None, None
        limit = asyncio.timeout(test.deadline)
        try:
            if preset is not None and not PRESETS[preset].is_installed:
                raise Skipped("the newer rootcanal is not installed: see the message of setup.sh")
            with tempfile.TemporaryDirectory() as directory:
                world = World(Tool(self.binary, self.directory, label, self.checker.submit), Path(directory))
                async with limit:
                    if preset is None:
                        await test.body(world)
                    else:
                        async with self.controllers(preset, label) as world.controllers:
                            await test.body(world)
                        if world.controllers.gateway is not None:
                            assert not world.controllers.gateway.violations, world.controllers.gateway.violations[:3]
        except Exception as caught:  # noqa: BLE001  (whatever it is, the next test runs)
            error = caught
            if isinstance(caught, TimeoutError):
                words = f"not done within {test.deadline} s" if limit.expired() else "what was waited for did not come"
                error = AssertionError(words).with_traceback(caught.__traceback__)
                error.__cause__ = caught.__context__
        controllers = world.controllers if world is not None else None
        return error, isinstance(controllers, Rootcanal) and controllers.has_crashed

    def controllers(self, preset: str, label: str) -> Controllers:
        """The process whose controllers a test uses."""
        chosen = PRESETS[preset]
        if chosen.configuration is None:
            return OurControllers(chosen, self.directory / f"{label}-controller.log", self.binary)
        return Rootcanal(chosen, self.directory / f"{label}-rootcanal.log")

    async def all(self, chosen):
        numbered = iter(enumerate(chosen, 1))

        async def work():
            for number, (test, preset) in numbered:
                await self.run(number, test, preset)

        await asyncio.gather(*(work() for _ in range(self.options.jobs)))
        started = time.monotonic()
        # Chosen tests may have none.
        state, lines = await self.checker.finish(expects_captures=not (self.options.filter or self.options.preset))
        if state == "skipped":
            print(f"skipped            captures in tshark: {lines[0]}")
        elif state == "passed":
            self.report(f"captures in tshark: {lines[0]}", started, None)
        else:
            self.report("captures in tshark", started, AssertionError("\n".join(lines)))


def describe(error: BaseException, verbose: bool) -> list[str]:
    if isinstance(error, BaseExceptionGroup) and not verbose:
        return [line for each in error.exceptions for line in describe(each, verbose)]
    if verbose:
        return "".join(traceback.format_exception(error)).splitlines()
    kind = "" if isinstance(error, AssertionError) else f"{type(error).__name__}: "
    places = [frame for frame in frames(error) if frame.filename.endswith("_tests.py")]
    where = f" ({Path(places[-1].filename).name}:{places[-1].lineno})" if places else ""
    return f"{kind}{error}{where}".splitlines() or [kind]


def frames(error: BaseException | None) -> list[traceback.FrameSummary]:
    """The places of an error, and of the errors that caused it."""
    return [] if error is None else [*traceback.extract_tb(error.__traceback__), *frames(error.__cause__)]


def chosen_tests(options) -> list:
    """The tests, each with its presets; None if it needs no controller."""
    named = options.preset or []
    for preset in named:
        if not PRESETS[preset].is_installed and not options.list:
            sys.exit(f"interop: the controller of {preset} is not installed: see the message of setup.sh")
    return [
        (test, preset)
        for preset in [None, *(named or PRESETS)]
        for test in TESTS
        if (test.runs_on(PRESETS[preset], preset in named) if preset else not test.presets)
        and options.filter.lower() in f"{preset}: {test.name}".lower()
    ]


async def main() -> int:
    options = arguments()
    chosen = chosen_tests(options)
    if not chosen:
        sys.exit(f"interop: no test of these presets has {options.filter!r} in its name")
    if options.list:
        for test, preset in chosen:
            print(f"{preset}: {test.name}" if preset else test.name)
        return 0
    hosts.quiet_logging()
    started = time.monotonic()
    runner = Runner(options)
    await runner.all(chosen)
    for line in pairing_tests.table():
        print(line)
    for name in runner.failures:
        print(f"failed: {name}")
    print(f"in {time.monotonic() - started:.0f} s, captures and logs in {os.path.relpath(runner.directory)}")
    skipped = f", {runner.skipped} skipped" if runner.skipped else ""
    print(f"{runner.passed} passed, {len(runner.failures)} failed{skipped}")
    return 1 if runner.failures else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
