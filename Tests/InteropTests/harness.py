"""The functions that all tests share: the registry of tests, the world of a test, and its peripherals."""

import asyncio
import contextlib
import dataclasses
import itertools
import json
from pathlib import Path

import bumble_peripheral as bumble
import profiles
import tables
from bumble_central import Central
from controllers import PRESETS, Controllers, Preset
from tool import Tool, Unexpected

TESTS: list["Test"] = []
# The presets of a test that names none.
EVERY = tuple(preset.name for preset in PRESETS.values() if preset.by_hand_like is None)
# The presets of a test that also runs with the newer rootcanal each time.
ALL = tuple(PRESETS)


class Skipped(Exception):
    """The reason why a test cannot run here, which is a failure if CI is set."""


@dataclasses.dataclass(frozen=True)
class Test:
    name: str
    presets: tuple[str, ...]
    body: callable
    deadline: float

    def runs_on(self, preset: Preset, is_named: bool) -> bool:
        """Whether the test runs on a kind of controller, which `--preset` names or not."""
        return preset.name in self.presets or is_named and preset.by_hand_like in self.presets


def test(name: str, presets=EVERY, deadline: float = 60):
    """Registers a test for some presets. Without presets it runs once, without a controller."""

    def register(body):
        TESTS.append(Test(name, tuple(presets), body, deadline))
        return body

    return register


def test_with_peripherals(name: str, presets=EVERY, deadline: float = 60):
    """Registers a test for some presets twice: for Bumble's peripheral, and for ours."""

    def register(body):
        for kind in (BumblePeer, ServedPeer):

            async def run(world, kind=kind):
                async with kind(world) as peer:
                    await body(world, peer)

            TESTS.append(Test(name.replace("*", kind.title), tuple(presets), run, deadline))
        return body

    return register


@dataclasses.dataclass
class World:
    """One virtual air with controllers of one preset."""

    tool: Tool
    directory: Path
    controllers: Controllers | None = None

    @property
    def adapter(self) -> str:
        return f"tcp:127.0.0.1:{self.controllers.hci_port}"

    @property
    def preset(self):
        return self.controllers.preset

    async def ble(self, *arguments: str, **options):
        """Runs `ble` on a controller of this world to its end."""
        return await self.tool.run(*arguments, adapter=self.adapter, **options)

    def start(self, *arguments: str, **options):
        """Runs `ble` on a controller of this world while the context is entered."""
        return self.tool.start(*arguments, adapter=self.adapter, **options)

    def central(self, **options) -> Central:
        return Central(self.adapter, **options)

    def peripheral(self, **options) -> bumble.Peripheral:
        return bumble.Peripheral(self.adapter, **options)

    def file(self, name: str, content) -> str:
        """Writes a file, as JSON unless it is text, and returns its path."""
        path = self.directory / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return str(path)


def expect(found, expected, what: str):
    """Fails if the found value differs from the expected one."""
    lines = tables.differences(found, expected, what)
    if lines:
        raise AssertionError("; ".join(lines[:6]) + (f"; and {len(lines) - 6} more" if len(lines) > 6 else ""))


def brief(value: bytes | None) -> str:
    """A value as short text."""
    return (
        "nothing"
        if value is None
        else value.hex() if len(value) <= 20 else f"{value[:16].hex()}... ({len(value)} bytes)"
    )


def stream_values(count: int, length: int = 20) -> list[bytes]:
    """Values that contain their position in the sequence."""
    return [
        index.to_bytes(4, "little") + bytes((index + place) % 256 for place in range(length - 4))
        for index in range(count)
    ]


def bulk(total: int = 100_000) -> list[bytes]:
    """At least this number of bytes, in values of many lengths, each of which begins with its number."""
    values, size = [], 0
    for index, length in enumerate(itertools.cycle((20, 244, 512, 27, 251, 509, 4, 182))):
        values.append(index.to_bytes(4, "little") + bytes((index * 31 + place) % 256 for place in range(length - 4)))
        size += length
        if size >= total:
            return values


class BumblePeer:
    """Bumble as the peripheral that `ble` connects to."""

    title = "a Bumble peripheral"
    name = "Bumble"
    address = "F0:01:02:03:04:05"
    # Bumble answers as if it had a key; see `tables.reading` for the answer of the specification.
    encryption_error = "insufficientEncryption"
    advertised = {
        "serviceData": {"180F": "64"},
        "txPower": -4,
    }

    def __init__(self, world: World):
        self.world = world

    async def __aenter__(self):
        self.stack = contextlib.AsyncExitStack()
        self.peripheral = await self.stack.enter_async_context(
            self.world.peripheral(name=self.name, address=self.address)
        )
        await self.peripheral.advertise()
        return self

    async def __aexit__(self, *details):
        await self.stack.aclose()

    async def table(self):
        return await self.peripheral.table()

    async def has(self, uuid: str, value: bytes):
        """Checks that the characteristic has the value."""
        expect(self.peripheral.value(uuid), value, f"the value of {len(value)} bytes")

    async def bulk(self, total: int) -> list[bytes]:
        await self.peripheral.sink.wait_for(total)
        return self.peripheral.sink.writes

    async def subscribed(self) -> str:
        """Waits for a subscription and returns its kind."""
        while True:
            uuid, notify, indicate = await self.peripheral.subscriptions.get()
            if notify or indicate:
                return "indication" if indicate else "notification"

    async def send(self, uuid: str, values: list[bytes], indicate: bool = False):
        await self.peripheral.notify_all(uuid, values, indicate)

    async def connected(self):
        self.connection = await self.peripheral.connections.get()

    async def disconnected(self):
        await self.peripheral.disconnections.get()

    async def disconnect(self):
        await self.connection.disconnect()


class ServedPeer:
    """`ble serve` as the peripheral that a central connects to."""

    title = "ble serve"
    name = profiles.NAME
    address = profiles.ADDRESS
    encryption_error = "insufficientAuthentication"
    advertised = {"serviceData": {}, "txPower": None}

    def __init__(self, world: World, profile: dict | None = None):
        self.world = world
        self.profile = profile or profiles.profile()

    async def __aenter__(self):
        self.stack = contextlib.AsyncExitStack()
        path = self.world.file("profile.json", self.profile)
        self.process = await self.stack.enter_async_context(self.world.start("serve", path))
        try:
            self.ready = await self.process.event("ready")
        except BaseException:
            await self.stack.aclose()
            raise
        return self

    async def __aexit__(self, kind, *_):
        try:
            if kind is None:
                if self.process.process.returncode is None:
                    self.process.send("quit")
                # Also if the test has ended it, so that a crash is a failure.
                (await self.process.ended()).succeeded()
        finally:
            await self.stack.aclose()

    async def table(self):
        return tables.expected_of_profile(self.profile)

    def value_handle(self, uuid: str) -> int:
        return profiles.value_handle(uuid)

    async def has(self, uuid: str, value: bytes):
        """Checks that the events of writes contain the value, completely or in parts."""
        found = None
        while found != value:
            try:
                event = await self.process.event("write", handle=self.value_handle(uuid), deadline=5)
            except Unexpected:
                raise AssertionError(f"events tell of {brief(found)} instead of {brief(value)}") from None
            found = (found or b"")[: event["offset"]] + bytes.fromhex(event["value"])

    def writes(self, uuid: str) -> list[bytes]:
        """All values that were written to a characteristic."""
        return [
            bytes.fromhex(event["value"])
            for event in self.process.events
            if event["event"] == "write" and event["handle"] == self.value_handle(uuid)
        ]

    async def bulk(self, total: int) -> list[bytes]:
        count = 0
        while count < total:
            event = await self.process.event("write", deadline=20, handle=self.value_handle(bumble.SINK))
            count += len(event["value"]) // 2
        return self.writes(bumble.SINK)

    async def subscribed(self) -> str:
        return (await self.process.event("subscribed"))["kind"]

    async def send(self, uuid: str, values: list[bytes], indicate: bool = False):
        verb = "indicate" if indicate else "notify"
        for value in values:
            self.process.send(f"{verb} {uuid} {value.hex()}")

    async def settled(self):
        """Returns when all earlier commands were performed: an invalid command is answered with an event."""
        self.process.send("settled?")
        await self.process.event("error", deadline=20)

    async def connected(self):
        await self.process.event("connected", deadline=20)

    async def disconnected(self):
        await self.process.event("disconnected", deadline=20)

    async def disconnect(self):
        self.process.send("disconnect")
