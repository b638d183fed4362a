"""The command line tool `ble` in tests: with a capture of every call, and a deadline for every wait."""

import asyncio
import contextlib
import dataclasses
import itertools
import json
import os
import signal
from pathlib import Path

GRACE = 10.0


class Unexpected(AssertionError):
    """The awaited event did not occur."""


@dataclasses.dataclass
class Outcome:
    """A call that has ended."""

    arguments: tuple[str, ...]
    status: int
    output: str
    errors: str

    @property
    def events(self) -> list[dict]:
        """The lines of JSON on standard output."""
        return [json.loads(line) for line in self.output.splitlines()]

    @property
    def object(self) -> dict:
        """The one line of JSON on standard output."""
        (event,) = self.events
        return event

    @property
    def command(self) -> str:
        return "ble " + " ".join(each if len(each) < 60 else f"{each[:50]}...({len(each)})" for each in self.arguments)

    def succeeded(self) -> "Outcome":
        if self.status != 0:
            raise AssertionError(f"{self.command}: status {self.status}: {self.errors.strip() or self.output.strip()}")
        return self

    def failed(self, *mentions: str) -> str:
        """The message of a call that must fail: one line on standard error, with these words somewhere in it."""
        if self.status <= 0:
            raise AssertionError(
                f"{self.command}: status {self.status} instead of a failure; output {self.output[:200]!r}"
            )
        lines = [line for line in self.errors.splitlines() if line.strip()]
        if len(lines) != 1:
            raise AssertionError(
                f"{self.command}: {len(lines)} lines on standard error instead of one: {self.errors!r}"
            )
        for words in mentions:
            if words.lower() not in lines[0].lower():
                raise AssertionError(f"{self.command}: {words!r} is not mentioned in {lines[0]!r}")
        return lines[0]


class Tool:
    """Runs `ble`."""

    def __init__(self, binary: Path, directory: Path, label: str, recorded=lambda capture: None):
        """Captures are written to the directory, named after the label, and reported when they are complete."""
        self.binary = binary
        self.recorded = recorded
        self.captures = directory / "captures"
        self.state = directory / "state"
        self.captures.mkdir(parents=True, exist_ok=True)
        self.numbers = itertools.count(1)
        self.label = label

    def _command(self, arguments, adapter, capture, machine_readable, timeout):
        command = [str(self.binary), *arguments]
        if machine_readable:
            command.append("--json")
        if adapter is not None:
            command += ["--adapter", adapter]
            if capture:
                number = next(self.numbers)
                # Some captures use the other format, so that tshark reads both.
                format = "pcapng" if number % 4 == 0 else "btsnoop"
                name = f"{self.label}-{number:02}-{arguments[0]}.{format}"
                command += ["--capture", str(self.captures / name)]
        if timeout is not None:
            command += ["--timeout", str(timeout)]
        return command

    def _captured(self, command, status):
        """Passes on the capture of a call that has ended. A call that succeeded has opened its adapter, and so has
        written one."""
        if "--capture" not in command:
            return
        capture = Path(command[command.index("--capture") + 1])
        if capture.is_file():
            self.recorded(capture)
        elif status == 0:
            raise AssertionError(f"ble {command[1]} has succeeded without its capture {capture.name}")

    @contextlib.asynccontextmanager
    async def start(self, *arguments: str, adapter=None, capture=True, machine_readable=True, timeout=None, stdin=True):
        """A call that runs while the context is entered."""
        environment = {key: value for key, value in os.environ.items() if not key.startswith("BLE_")}
        environment["BLE_STATE_DIR"] = str(self.state / f"{self.label}-{next(self.numbers)}")
        command = self._command(arguments, adapter, capture, machine_readable, timeout)
        process = await asyncio.create_subprocess_exec(
            # SIGHUP is ignored if these tests were started by nohup.
            *("env", "--default-signal=HUP", *command),
            stdin=asyncio.subprocess.PIPE if stdin else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=environment,
            limit=1 << 24,
            start_new_session=True,
        )
        running = Running(arguments, process)
        try:
            yield running
        finally:
            await running.stop()
            if capture:
                self._captured(command, process.returncode)
            left = running.left_behind()
            if left:
                raise AssertionError(f"{running.command} left processes behind: {left}")

    async def run(self, *arguments: str, input: str | None = None, deadline: float = 30, **options) -> Outcome:
        """Runs a call to its end."""
        async with self.start(*arguments, stdin=input is not None, **options) as running:
            if input is not None:
                running.process.stdin.write(input.encode())
                await running.close_input()
            return await running.ended(deadline)


class Running:
    """A call that may still be running."""

    def __init__(self, arguments, process):
        self.arguments = arguments
        self.process = process
        self.events: list[dict] = []
        self.lines: list[str] = []
        self.errors = ""
        self.consumed = 0
        self.changed = asyncio.Condition()
        self.over = False
        self.tasks = [asyncio.ensure_future(self._read_output()), asyncio.ensure_future(self._read_errors())]

    @property
    def command(self) -> str:
        return "ble " + " ".join(self.arguments)

    async def _read_output(self):
        async for line in self.process.stdout:
            text = line.decode(errors="replace").rstrip("\n")
            async with self.changed:
                self.lines.append(text)
                with contextlib.suppress(ValueError):
                    self.events.append(json.loads(text))
                self.changed.notify_all()
        async with self.changed:
            self.over = True
            self.changed.notify_all()

    async def _read_errors(self):
        async for line in self.process.stderr:
            self.errors += line.decode(errors="replace")

    def send(self, text: str):
        """Writes to standard input, with the end of the line."""
        self.process.stdin.write(text.encode() + b"\n")

    async def close_input(self):
        with contextlib.suppress(ConnectionError):
            await self.process.stdin.drain()
            self.process.stdin.close()

    async def event(self, name: str | None = None, /, *, deadline: float = GRACE, **fields) -> dict:
        """The next event with this name and these fields. Each event is returned once; earlier ones are skipped."""

        def find():
            while self.consumed < len(self.events):
                event = self.events[self.consumed]
                self.consumed += 1
                if (name is None or event.get("event") == name) and all(event.get(k) == v for k, v in fields.items()):
                    return event
            return None

        wanted = " ".join([name or "event", *(f"{key}={value}" for key, value in fields.items())])
        try:
            async with asyncio.timeout(deadline), self.changed:
                while True:
                    if (event := find()) is not None:
                        return event
                    if self.over:
                        raise Unexpected(
                            f"{self.command} ended before {wanted}: {self.errors.strip() or self.lines[-3:]}"
                        )
                    await self.changed.wait()
        except TimeoutError:
            heard = [event.get("event") for event in self.events[-5:]]
            raise Unexpected(
                f"{self.command}: no {wanted} within {deadline} s; last events {heard}, errors {self.errors.strip()!r}"
            ) from None

    async def ended(self, deadline: float = GRACE) -> Outcome:
        """The outcome of the call, once it has ended."""
        try:
            async with asyncio.timeout(deadline):
                status = await self.process.wait()
                await asyncio.gather(*self.tasks)
        except TimeoutError:
            raise Unexpected(
                f"{self.command} did not end within {deadline} s; errors {self.errors.strip()!r}"
            ) from None
        return Outcome(self.arguments, status, "".join(line + "\n" for line in self.lines), self.errors)

    async def interrupt(self, with_signal=signal.SIGINT, deadline: float = GRACE) -> Outcome:
        """Ends the call as Ctrl-C does."""
        if self.process.returncode is None:
            self.process.send_signal(with_signal)
        return await self.ended(deadline)

    async def stop(self):
        """Ends everything that is left of the call, in any case."""
        if self.process.returncode is None:
            self.process.terminate()
            try:
                async with asyncio.timeout(3):
                    await self.process.wait()
            except TimeoutError:
                self.process.kill()
                await self.process.wait()
        await asyncio.wait(self.tasks, timeout=3)
        for task in self.tasks:
            task.cancel()
        self.process._transport.close()

    def left_behind(self) -> list[str]:
        """The processes of the call's session that still exist."""
        left = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with contextlib.suppress(OSError, IndexError):
                    fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
                    if int(fields[3]) == self.process.pid and fields[0] != "Z":
                        left.append((entry / "cmdline").read_text().replace("\0", " "))
        return left
