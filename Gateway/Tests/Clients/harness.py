"""The functions that the tests of the gateway share: the registry of tests, the world of a test, the gateway."""

import asyncio
import contextlib
import dataclasses
import json
import os
import signal
from pathlib import Path

import aioesphomeapi
import bumble_peripheral as bumble
from aioesphomeapi import APIClient
from controllers import PRESETS, OurControllers, connect_when_listening, free_ports

TESTS: list["Test"] = []
GRACE = 10.0


@dataclasses.dataclass(frozen=True)
class Test:
    name: str
    body: callable
    deadline: float
    group: str | None = None
    program: str | None = None


def test(name: str, deadline: float = 60, group: str | None = None, program: str | None = None):
    """Registers a test. Tests of a group run one at a time. A test that needs a large program runs only on request."""

    def register(body):
        TESTS.append(Test(name, body, deadline, group, program))
        return body

    return register


def test_with_and_without_encryption(name: str, deadline: float = 60):
    """Registers a test twice: with an encrypted gateway, and with one that serves plaintext."""

    def register(body):
        for kind, is_encrypted in (("encrypted", True), ("plaintext", False)):

            async def run(world, is_encrypted=is_encrypted):
                async with world.gateway(encrypted=is_encrypted) as gateway:
                    await body(world, gateway)

            TESTS.append(Test(f"{name}, {kind}", run, deadline))
        return body

    return register


def expect(found, expected, what: str):
    """Fails if the found value differs from the expected one."""
    if found != expected:
        raise AssertionError(f"{what}: {found!r} instead of {expected!r}")


async def until(condition, what: str, deadline: float = GRACE):
    """Returns the first true result of a function that is called again and again."""
    try:
        async with asyncio.timeout(deadline):
            while not (result := condition()):
                await asyncio.sleep(0.01)
            return result
    except TimeoutError:
        raise AssertionError(f"not within {deadline} s: {what}") from None


async def ended(process: asyncio.subprocess.Process, deadline: float = 20) -> int:
    """The exit status of a process that was told to end. It is killed if it does not."""
    try:
        return await asyncio.wait_for(process.wait(), deadline)
    except TimeoutError:
        process.kill()
        await process.wait()
        raise AssertionError(f"the process has not ended within {deadline} s") from None


def last_line(log: Path) -> str:
    return (log.read_text(errors="replace").splitlines() or ["nothing in the log"])[-1]


def check_running(process: asyncio.subprocess.Process, name: str, log: Path):
    """Fails if a process that the test has not ended runs no more."""
    if process.returncode is not None:
        raise AssertionError(f"{name} has ended by itself with {process.returncode}: {last_line(log)}")


def number(address: str) -> int:
    """An address as clients of the native API write it."""
    return int(address.replace(":", ""), 16)


class World:
    """One virtual air, with its controllers and processes."""

    def __init__(self, ble: Path, gateway: Path, logs: Path, label: str, directory: Path):
        self.ble = ble
        self.gateway_binary = gateway
        self.logs = logs
        self.label = label
        self.directory = directory
        self.controllers = OurControllers(PRESETS["OURS"], logs / f"{label}-controller.log", ble)
        self.gateways = 0

    async def __aenter__(self):
        self.stack = contextlib.AsyncExitStack()
        await self.stack.enter_async_context(self.controllers)
        return self

    async def __aexit__(self, *details):
        return await self.stack.__aexit__(*details)

    @property
    def adapter(self) -> str:
        return f"tcp:127.0.0.1:{self.controllers.hci_port}"

    def peripheral(self, **options) -> bumble.Peripheral:
        """Bumble's peripheral on a controller of this world."""
        return bumble.Peripheral(self.adapter, **options)

    def gateway(self, *options: str, encrypted: bool = True, adapter: str | None = None) -> "Gateway":
        """A gateway on a controller of this world."""
        self.gateways += 1
        log = self.logs / f"{self.label}-gateway-{self.gateways}.log"
        return Gateway(self.gateway_binary, adapter or self.adapter, self.directory / "state", log, options, encrypted)


class Gateway:
    """A process `ble-gateway run` while the context is entered. It can be stopped and started again.

    The test fails if the process ends before the test or the end of the context ends it.
    """

    def __init__(self, binary: Path, adapter: str, state: Path, log: Path, options, encrypted: bool):
        self.binary = binary
        self.adapter = adapter
        self.state = state
        self.log = log
        self.options = options
        self.encrypted = encrypted
        self.key: str | None = None
        self.process: asyncio.subprocess.Process | None = None
        # Whether the test has ended the process.
        self.was_ended = False
        (self.port,) = free_ports(1)

    async def __aenter__(self):
        if self.encrypted:
            self.key = (await self.command("key")).output.strip()
        try:
            await self.start()
        except BaseException:
            await self.end()
            raise
        return self

    async def __aexit__(self, *_):
        try:
            if not self.was_ended:
                await self.stop()
        finally:
            await self.end()

    async def start(self):
        """Starts the process, and waits until clients can connect."""
        arguments = [
            "run", "--adapter", self.adapter, "--host", "127.0.0.1", "--port", str(self.port), "--name", "test-gateway",
            "--state-dir", str(self.state), "--log-level", "debug", *self.options,
        ]  # fmt: skip
        if not self.encrypted:
            arguments.append("--plaintext")
        with open(self.log, "ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                # SIGHUP is ignored if these tests were started by nohup.
                *("env", "--default-signal=HUP", self.binary, *arguments),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment(),
            )
        self.was_ended = False
        listening = asyncio.ensure_future(connect_when_listening(self.port))
        ended = asyncio.ensure_future(self.process.wait())
        await asyncio.wait([listening, ended], return_when=asyncio.FIRST_COMPLETED)
        ended.cancel()
        if self.process.returncode is not None:
            listening.cancel()
            raise AssertionError(f"ble-gateway ended with {self.process.returncode}: {self.last_line}")
        (await listening)[1].close()

    async def stop(self, with_signal=signal.SIGTERM):
        """Ends the process as systemd does. It must end cleanly."""
        check_running(self.process, "ble-gateway", self.log)
        self.was_ended = True
        self.process.send_signal(with_signal)
        try:
            async with asyncio.timeout(GRACE):
                status = await self.process.wait()
        except TimeoutError:
            raise AssertionError(f"ble-gateway did not end within {GRACE} s; see {self.log}") from None
        if status != 0:
            raise AssertionError(f"ble-gateway ended with {status}: {self.last_line}")

    async def kill(self):
        """Ends the process at once."""
        check_running(self.process, "ble-gateway", self.log)
        self.was_ended = True
        await self.end()

    async def end(self):
        """Ends the process if it still runs."""
        if self.process is not None and self.process.returncode is None:
            self.process.kill()
            await self.process.wait()

    @property
    def last_line(self) -> str:
        return last_line(self.log)

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.returncode is None

    async def command(self, *arguments: str) -> "Outcome":
        """Runs another command on the same state directory."""
        return await run(self.binary, *arguments, "--state-dir", str(self.state))

    async def status(self) -> dict:
        """The status that the process reports on its socket."""
        return json.loads((await self.command("status", "--json")).succeeded().output)

    async def status_with(self, condition, what: str, deadline: float = GRACE, pause: float = 0.2) -> dict:
        """Returns the first status that fulfills a condition. `pause` is the time between two requests in seconds."""
        status = {}
        try:
            async with asyncio.timeout(deadline):
                while not condition(status := await self.status()):
                    await asyncio.sleep(pause)
        except TimeoutError:
            raise AssertionError(f"not within {deadline} s: {what}: {status}") from None
        return status

    def client(self, **options) -> APIClient:
        """A client, not connected yet."""
        options.setdefault("noise_psk", self.key)
        return APIClient("127.0.0.1", self.port, None, client_info="test", **options)

    @contextlib.asynccontextmanager
    async def connected(self, **options):
        """A connected client."""
        client = self.client(**options)
        await client.connect(login=True)
        try:
            yield client
        finally:
            with contextlib.suppress(aioesphomeapi.APIConnectionError):
                await client.disconnect(force=True)


@dataclasses.dataclass
class Outcome:
    """A command that has ended."""

    arguments: tuple[str, ...]
    status: int
    output: str
    errors: str

    def succeeded(self) -> "Outcome":
        if self.status != 0:
            raise AssertionError(f"{' '.join(self.arguments)}: status {self.status}: {self.errors.strip()}")
        return self

    def failed(self, *mentions: str) -> str:
        """The message of a command that must fail: one line on standard error, with these words in it."""
        lines = self.errors.splitlines()
        if self.status <= 0 or len(lines) != 1:
            raise AssertionError(f"{' '.join(self.arguments)}: status {self.status}, errors {self.errors!r}")
        for words in mentions:
            if words not in lines[0]:
                raise AssertionError(f"{' '.join(self.arguments)}: {words!r} is not mentioned in {lines[0]!r}")
        return lines[0]


async def run(binary: Path, *arguments: str, **variables: str) -> Outcome:
    """Runs a command to its end."""
    process = await asyncio.create_subprocess_exec(
        binary,
        *arguments,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=environment() | variables,
    )
    try:
        async with asyncio.timeout(GRACE):
            output, errors = await process.communicate()
    except TimeoutError:
        process.kill()
        raise AssertionError(f"{' '.join(arguments)} did not end within {GRACE} s") from None
    return Outcome(arguments, process.returncode, output.decode(), errors.decode())


def environment() -> dict[str, str]:
    """The environment without the settings of this stack."""
    return {key: value for key, value in os.environ.items() if not key.startswith(("BLE_", "STATE_DIRECTORY"))}
