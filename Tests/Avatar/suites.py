"""Runs Avatar's LE suites: our device, behind pandora-server, against Bumble, both on rootcanal.

Prints one line for each case that did not pass, and a summary for each suite. The exit status is 1 if a case failed that
is not in exceptions.txt, or if a selected case was neither executed nor skipped. It is also 1 if a suite or pandora-server
ended with an error, or if a suite took too long.
"""

import argparse
import asyncio
import collections
import contextlib
import dataclasses
import fnmatch
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "InteropTests"))

# The longest time of a suite, in seconds.
LIMIT = 3600
SUITES = {
    "host": ("avatar.cases.le_host_test", "LeHostTest", "public"),
    "security": ("avatar.cases.le_security_test", "LeSecurityTest", "random"),
}


@dataclasses.dataclass
class Exceptions:
    """The cases that are not run, and those that may fail, as patterns of their names."""

    excluded: list[str] = dataclasses.field(default_factory=list)
    failing: list[str] = dataclasses.field(default_factory=list)

    @classmethod
    def read(cls, path: Path) -> "Exceptions":
        """Reads lines of `exclude PATTERN` or `fails PATTERN`, in which `*` is any text."""
        exceptions = cls()
        for line in path.read_text().splitlines():
            if line.strip() and not line.startswith("#"):
                kind, pattern = line.split(maxsplit=1)
                {"exclude": exceptions.excluded, "fails": exceptions.failing}[kind].append(pattern)
        return exceptions

    @staticmethod
    def contain(patterns: list[str], case: str) -> bool:
        return any(fnmatch.fnmatchcase(case, pattern) for pattern in patterns)


# MARK: The process that runs one suite


def keep_security_requests() -> None:
    """Corrects Bumble's Pandora server, which ignores a Security Request that arrives before the call of WaitSecurity.

    The test calls Secure on one device and WaitSecurity on the other at the same time, so either may be first. Here, an
    early request is kept until WaitSecurity has registered its listeners and checks the level.
    """
    from bumble.device import Connection
    from bumble.pandora.security import SecurityService

    emit, reached_security_level = Connection.emit, SecurityService.reached_security_level

    def emit_or_keep(connection, event, *arguments):
        is_handled = emit(connection, event, *arguments)
        if event == Connection.EVENT_SECURITY_REQUEST and not is_handled:
            connection.early_security_request = arguments
        return is_handled

    async def check_level(service, connection, level):
        is_reached = await reached_security_level(service, connection, level)
        request = connection.__dict__.pop("early_security_request", None)
        if request is not None and not is_reached:
            connection.emit(Connection.EVENT_SECURITY_REQUEST, *request)
        return is_reached

    Connection.emit, SecurityService.reached_security_level = emit_or_keep, check_level


def run_cases(suite: str, config: Path, logs: Path, filters: list[str]) -> None:
    """Runs the cases of a suite with Mobly in this process, and writes their results to results.json."""
    import importlib

    from mobly import config_parser, test_runner

    keep_security_requests()
    module, name, _ = SUITES[suite]
    test_class = getattr(importlib.import_module(module), name)
    (bed,) = config_parser.load_test_config_file(str(config))
    unconfigured = test_class(config_parser.TestRunConfig())
    unconfigured._pre_run()
    cases = unconfigured.tests or unconfigured.get_existing_test_names()
    unconfigured._clean_up()

    exceptions = Exceptions.read(HERE / "exceptions.txt")
    selected = [case for case in cases if not filters or any(part in case for part in filters)]
    is_reference = bed.testbed_name == "reference"
    run = [case for case in selected if is_reference or not Exceptions.contain(exceptions.excluded, case)]
    results = {"excluded": len(selected) - len(run), "selected": run, "reported": [], "cases": []}
    if run:
        runner = test_runner.TestRunner(str(logs), bed.testbed_name)
        with runner.mobly_logger(console_level=100):
            runner.add_test_class(bed, test_class, run)
            runner.run()
        results["reported"] = [record.test_name for record in [*runner.results.executed, *runner.results.skipped]]
        for record in [*runner.results.executed, *runner.results.skipped, *runner.results.error]:
            entry = {"name": record.test_name, "result": record.result, "details": record.details or ""}
            if entry not in results["cases"]:
                results["cases"].append(entry)
    (logs / "results.json").write_text(json.dumps(results, indent=1))


# MARK: The process that starts the others


async def start_server(binary: Path, adapter: str, identity: str, io_capability: str, logs: Path):
    """Starts pandora-server, and returns its process and its address."""
    from controllers import connect_when_listening, free_ports

    (port,) = free_ports(1)
    with open(logs / "server.log", "wb") as log:
        process = await asyncio.create_subprocess_exec(
            binary,
            *("--adapter", adapter, "--port", str(port), "--identity", identity, "--io-capability", io_capability),
            *("--capture", str(logs / "device.pcapng")),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        _, writer = await connect_when_listening(port)
    except BaseException as error:
        if process.returncode is None:
            process.kill()
        await process.wait()
        if isinstance(error, OSError):
            raise RuntimeError(f"pandora-server does not listen; see {logs / 'server.log'}") from error
        raise
    writer.close()
    return process, f"127.0.0.1:{port}"


async def run_suite(suite: str, arguments: argparse.Namespace, logs: Path) -> dict:
    """Runs a suite in a process of its own, and returns its results.

    If the suite or pandora-server ended with an error, the results that exist contain the error as `problem`.
    """
    from controllers import PRESETS, Rootcanal

    logs.mkdir(parents=True)
    problems = []
    async with Rootcanal(PRESETS["DEFAULT"], logs / "rootcanal.log") as rootcanal, contextlib.AsyncExitStack() as stack:
        bumble = {"transport": f"tcp-client:127.0.0.1:{rootcanal.hci_port}"}
        controllers: dict = {"BumbleDevice": [bumble]}
        server = None
        if arguments.reference:
            controllers["BumbleDevice"].append(dict(bumble))
        else:
            server, address = await start_server(
                arguments.server,
                f"tcp:127.0.0.1:{rootcanal.hci_port}",
                SUITES[suite][2],
                arguments.io_capability,
                logs,
            )
            stack.callback(lambda: server.returncode is None and server.kill())
            # The first controller of the first kind is the device under test.
            controllers = {"PandoraDevice": [{"grpc_target": address, "name": "swift-ble"}], **controllers}
        config = logs / "config.json"
        bed = {"Name": "reference" if arguments.reference else "device", "Controllers": controllers}
        config.write_text(json.dumps({"TestBeds": [bed], "MoblyParams": {"LogPath": str(logs)}}))
        environment = {**os.environ, "GRPC_VERBOSITY": "NONE"}
        with open(logs / "suite.log", "wb") as log:
            run = await asyncio.create_subprocess_exec(
                *(sys.executable, __file__, "--cases", suite, str(config), str(logs), *arguments.filter),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
            )
            try:
                async with asyncio.timeout(LIMIT):
                    await run.wait()
            except TimeoutError:
                raise RuntimeError(f"the suite did not end within {LIMIT} s; see {logs / 'suite.log'}") from None
            finally:
                if run.returncode is None:
                    run.kill()
                    await run.wait()
        if server is not None and server.returncode is not None:
            problems.append(f"pandora-server ended with {server.returncode}; see {logs / 'server.log'}")
    # Cases that fail do not change the status of the suite's process.
    if run.returncode != 0:
        problems.append(f"the suite ended with {run.returncode}; see {logs / 'suite.log'}")
    file = logs / "results.json"
    if problems and not file.exists():
        raise RuntimeError("; ".join(problems))
    results = json.loads(file.read_text())
    if problems:
        results["problem"] = "; ".join(problems)
    return results


def lost_cases(selected: list[str], reported: list[str]) -> list[tuple[str, str]]:
    """Returns the cases that were not reported exactly as often as they were selected, with the difference."""
    selections, reports = collections.Counter(selected), collections.Counter(reported)
    return [
        (name, f"selected {selections[name]} times, but executed or skipped {reports[name]} times")
        for name in sorted(selections | reports)
        if selections[name] != reports[name]
    ]


def report(suite: str, results: dict, is_reference: bool) -> bool:
    """Prints the results of a suite, and returns whether no case failed that may not and there was no problem."""
    exceptions = Exceptions() if is_reference else Exceptions.read(HERE / "exceptions.txt")
    counts = {"PASS": 0, "FAIL": 0, "SKIP": 0, "ERROR": 0}
    is_good = True
    for case in results["cases"]:
        counts[case["result"]] += 1
        if case["result"] in ("FAIL", "ERROR"):
            is_listed = Exceptions.contain(exceptions.failing, case["name"])
            is_good = is_good and is_listed
            first = (case["details"].splitlines() or [""])[0]
            print(f"{'listed' if is_listed else 'FAILED'}: {case['name']}: {first}")
    for name, difference in lost_cases(results["selected"], results["reported"]):
        is_good = False
        print(f"FAILED: {name}: {difference}")
    if "problem" in results:
        is_good = False
        print(f"FAILED: {suite}: {results['problem']}")
    failed = counts["FAIL"] + counts["ERROR"]
    print(
        f"{suite}: {counts['PASS'] + failed} executed, {counts['PASS']} passed, {failed} failed, "
        f"{counts['SKIP']} skipped, {results['excluded']} excluded",
        flush=True,
    )
    return is_good and counts["PASS"] > 0


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", type=Path, default=HERE / ".build/debug/pandora-server", help="pandora-server")
    parser.add_argument("--suite", choices=SUITES, action="append", help="the suites to run; all by default")
    parser.add_argument("--io-capability", default="keyboard-display", help="the input and output of our device")
    parser.add_argument("--reference", action="store_true", help="test Bumble in place of our device")
    parser.add_argument("--logs", type=Path, help="a new directory for the logs; by default, kept after a failure")
    parser.add_argument("filter", nargs="*", help="run only the cases whose names contain one of these texts")
    arguments = parser.parse_args()
    logs = (arguments.logs or Path(tempfile.mkdtemp(prefix="avatar-"))).resolve()
    is_good = True
    for suite in arguments.suite or SUITES:
        results = await run_suite(suite, arguments, logs / suite)
        is_good = report(suite, results, arguments.reference) and is_good
    if not is_good:
        print(f"the logs are in {logs}")
    elif arguments.logs is None:
        shutil.rmtree(logs)
    sys.exit(not is_good)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--cases"]:
        run_cases(sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4]), sys.argv[5:])
    else:
        asyncio.run(main())
