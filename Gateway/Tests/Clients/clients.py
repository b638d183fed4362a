#!/usr/bin/env python3
"""Runs the tests of `ble-gateway` with its clients: aioesphomeapi, bleak-esphome with habluetooth, and raw sockets.

The devices are Bumble's and `ble serve`'s, on the controllers of `ble controller`.
"""

import argparse
import asyncio
import collections
import contextlib
import functools
import os
import shutil
import sys
import tempfile
import time
import traceback
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
# The peripherals, the controllers and the tool of the interoperability tests.
sys.path.insert(1, str(ROOT / "Tests/InteropTests"))

import hosts  # noqa: E402
from harness import TESTS, Test, World  # noqa: E402

import api_tests  # noqa: E402, F401  (tests register themselves)
import bleak_tests  # noqa: E402, F401
import command_tests  # noqa: E402, F401
import connection_tests  # noqa: E402, F401
import fleet_tests  # noqa: E402, F401
import hostile_tests  # noqa: E402, F401
import mqtt_command_tests  # noqa: E402, F401
import mqtt_fault_tests  # noqa: E402, F401
import mqtt_tests  # noqa: E402, F401
import mqtt_theengs_tests  # noqa: E402, F401
import recovery_tests  # noqa: E402, F401
import soak  # noqa: E402
import web_tests  # noqa: E402, F401


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--filter", default="", help="only tests whose name has this text")
    parser.add_argument("--with", dest="program", choices=["chromium"], help="run the tests that need this program")
    parser.add_argument("--list", action="store_true", help="list the tests and run none")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1), help="how many tests run at once")
    parser.add_argument("--keep", default=str(ROOT / ".build-gateway"), help="where logs are left")
    parser.add_argument("--soak", type=float, metavar="MINUTES", help="run for this time instead of the tests")
    parser.add_argument("-v", "--verbose", action="store_true", help="print where a test failed")
    return parser.parse_args()


def binary(name: str, variable: str, package: Path) -> Path:
    """The program that an environment variable names, or the last build."""
    named = os.environ.get(variable)
    candidates = [Path(named)] if named else [package / f".build/{kind}/{name}" for kind in ("release", "debug")]
    for candidate in candidates:
        if candidate.is_file() and os.access(candidate, os.X_OK):
            return candidate.resolve()
    sys.exit(f"test-gateway: no {name} at {' or '.join(map(str, candidates))}: build it, or name one in {variable}")


def describe(error: BaseException, verbose: bool) -> list[str]:
    if isinstance(error, BaseExceptionGroup) and not verbose:
        return [line for each in error.exceptions for line in describe(each, verbose)]
    if verbose:
        return "".join(traceback.format_exception(error)).splitlines()
    kind = "" if isinstance(error, AssertionError) else f"{type(error).__name__}: "
    places = [each for each in traceback.extract_tb(error.__traceback__) if each.filename.endswith("_tests.py")]
    where = f" ({Path(places[-1].filename).name}:{places[-1].lineno})" if places else ""
    return f"{kind}{error}{where}".splitlines() or [kind]


class Runner:
    def __init__(self, options):
        self.options = options
        self.directory = Path(options.keep)
        shutil.rmtree(self.directory, ignore_errors=True)
        self.directory.mkdir(parents=True)
        self.ble = binary("ble", "BLE", ROOT)
        self.gateway = binary("ble-gateway", "BLE_GATEWAY", ROOT / "Gateway")
        self.passed, self.failures = 0, []
        self.groups = collections.defaultdict(asyncio.Lock)

    async def run(self, number: int, test):
        started = time.monotonic()
        error = None
        limit = asyncio.timeout(test.deadline)
        try:
            with tempfile.TemporaryDirectory() as directory:
                async with limit, World(self.ble, self.gateway, self.directory, f"{number:02}", Path(directory)) as world:
                    await test.body(world)
        except Exception as failure:
            error = AssertionError(f"did not end within {test.deadline} s") if limit.expired() else failure
            if limit.expired() and self.options.verbose:
                error = failure
        milliseconds = round((time.monotonic() - started) * 1000)
        print(f"{'ok    ' if error is None else 'FAILED'} {milliseconds:6} ms  {number:02} {test.name}", flush=True)
        if error is None:
            self.passed += 1
            return
        self.failures.append(test.name)
        for line in describe(error, self.options.verbose):
            print(f"                  {line}", flush=True)

    async def all(self, tests):
        # Long tests begin first, so that the others run beside them.
        numbered = iter(sorted(tests, key=lambda each: -each[1].deadline))

        async def work():
            for number, test in numbered:
                async with self.groups[test.group] if test.group else contextlib.nullcontext():
                    await self.run(number, test)

        await asyncio.gather(*(work() for _ in range(self.options.jobs)))


def tests(words: str, program: str | None) -> list[tuple[int, Test]]:
    """The tests whose names have the words, with their numbers: those that need a program, or all others."""
    chosen = [(number, test) for number, test in enumerate(TESTS, 1) if test.program == program]
    return [(number, test) for number, test in chosen if words.lower() in test.name.lower()]


async def main() -> int:
    options = arguments()
    if options.soak:
        body = functools.partial(soak.soak, minutes=options.soak)
        chosen = [(0, Test(f"soak of {options.soak:g} minutes", body, options.soak * 60 + 300))]
    else:
        chosen = tests(options.filter, options.program)
        if not chosen:
            sys.exit(f"test-gateway: no test has {options.filter!r} in its name")
    if options.list:
        for _, test in chosen:
            print(test.name)
        return 0
    hosts.quiet_logging()
    started = time.monotonic()
    runner = Runner(options)
    await runner.all(chosen)
    for name in runner.failures:
        print(f"failed: {name}")
    print(f"in {time.monotonic() - started:.0f} s, logs in {os.path.relpath(runner.directory)}")
    print(f"{runner.passed} passed, {len(runner.failures)} failed")
    return 1 if runner.failures else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
