"""A fleet of simulated gateways, their tags, and `ble-gateway fleet`, whose lines are read."""

import asyncio
import collections
import contextlib
import dataclasses
import datetime
import json
import os
import random
import signal
import struct
import time
import urllib.request
from pathlib import Path

Message = tuple[str, str]
Origin = tuple[str, str, int]


class Publisher:
    """A client of MQTT 3.1.1 that publishes with QoS 1. It sends messages that were not confirmed again."""

    def __init__(self, port: int, identifier: str, window: int = 16):
        self.port, self.identifier, self.window = port, identifier, window
        self.waiting: collections.deque[Message] = collections.deque()
        self.unconfirmed: dict[int, Message] = {}
        self.confirmed_count = 0
        self.connect_count = 0
        self.writer: asyncio.StreamWriter | None = None
        self.changed = asyncio.Event()

    async def __aenter__(self):
        self.task = asyncio.create_task(self.run())
        return self

    async def __aexit__(self, *_):
        self.task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self.task

    def publish(self, topic: str, payload: str):
        self.waiting.append((topic, payload))
        self.send()

    @property
    def is_done(self) -> bool:
        return not self.waiting and not self.unconfirmed

    async def run(self):
        while True:
            try:
                await self.connection()
            except (OSError, asyncio.IncompleteReadError, EOFError, TimeoutError):
                pass
            finally:
                if self.writer:
                    self.writer.close()
                self.writer = None
                self.waiting.extendleft(reversed(self.unconfirmed.values()))
                self.unconfirmed = {}
            await asyncio.sleep(0.2)

    async def connection(self):
        async with asyncio.timeout(10):
            reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
            name = self.identifier.encode()
            variable = b"\0\4MQTT\4\2" + struct.pack(">HH", 30, len(name)) + name
            writer.write(b"\x10" + length(len(variable)) + variable)
            answer = await reader.readexactly(4)
        if answer[:2] != b"\x20\x02" or answer[3] != 0:
            raise EOFError(f"refused: {answer.hex()}")
        self.writer, self.number = writer, 0
        self.connect_count += 1
        self.send()
        while True:
            # A broker whose cluster has no leader answers nothing for a while.
            async with asyncio.timeout(20):
                kind, size = await reader.readexactly(2)
                content = await reader.readexactly(size)
            if kind == 0x40:
                self.unconfirmed.pop(struct.unpack(">H", content)[0])
                self.confirmed_count += 1
                self.send()
                if self.is_done:
                    self.changed.set()
                if not self.unconfirmed and not self.waiting:
                    writer.write(b"\xc0\0")

    def send(self):
        while self.writer and self.waiting and len(self.unconfirmed) < self.window:
            topic, payload = self.waiting.popleft()
            self.number = self.number % 65_535 + 1
            self.unconfirmed[self.number] = (topic, payload)
            name = topic.encode()
            content = struct.pack(">H", len(name)) + name + struct.pack(">H", self.number) + payload.encode()
            self.writer.write(b"\x32" + length(len(content)) + content)

    async def until_done(self):
        """Waits until the broker has confirmed everything. Fails if the client has ended."""
        while not self.is_done:
            self.changed.clear()
            changed = asyncio.create_task(self.changed.wait())
            try:
                await asyncio.wait([changed, self.task], return_when=asyncio.FIRST_COMPLETED)
            finally:
                changed.cancel()
            if self.task.done():
                self.task.result()  # raises the error of the client
                raise AssertionError(f"the client {self.identifier} has ended")


def length(number: int) -> bytes:
    """The length of a packet of MQTT."""
    data = bytearray()
    while True:
        number, digit = divmod(number, 128)
        data.append(digit | (0x80 if number else 0))
        if not number:
            return bytes(data)


def reading(boot: str, sequence: int, value: int, rssi: int) -> str:
    """A message as `ble-gateway run` publishes it."""
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return json.dumps({
        "time": now, "gateway": "any", "boot": boot, "sequence": sequence, "address": "C0:DE:00:00:00:01", "rssi": rssi,
        "format": "ruuvi_5", "readings": {
            "temperature": {"value": value, "unit": "°C"}, "humidity": {"value": 54.5, "unit": "%"},
            "pressure": {"value": 1002.6, "unit": "hPa"}, "voltage": {"value": 2.977, "unit": "V"}},
    }, ensure_ascii=False)  # fmt: skip


class SimulatedGateway:
    """A gateway that publishes what it receives from tags."""

    def __init__(self, name: str, port: int, boot: int, prefix: str = "ble"):
        self.name, self.boot, self.prefix = name, f"{boot:08x}", prefix
        self.sequence = 0
        self.publisher = Publisher(port, name)

    def receive(self, tag: int, value: int, rssi: int) -> Origin:
        self.sequence += 1
        topic = f"{self.prefix}/sensors/{address(tag)}/{self.name}"
        self.publisher.publish(topic, reading(self.boot, self.sequence, value, rssi))
        return (self.name, self.boot, self.sequence)


def address(tag: int) -> str:
    return f"C0DE{tag:08X}"


@dataclasses.dataclass
class Transmission:
    """What a tag sent once, and the messages of the gateways that received it."""

    origins: set[Origin] = dataclasses.field(default_factory=set)


class Fleet:
    """Gateways and tags. Each tag is in range of some of the gateways."""

    def __init__(self, ports: list[int], gateways: int, tags: int, receivers: int, seed: int = 1):
        choice = random.Random(seed)
        self.choice = choice
        self.gateways = [
            SimulatedGateway(f"gateway-{number:02}", ports[number % len(ports)], choice.getrandbits(32))
            for number in range(gateways)
        ]
        self.in_range = [
            [(self.gateways[index], choice.randrange(-90, -40)) for index in choice.sample(range(gateways), receivers)]
            for _ in range(tags)
        ]
        self.transmissions: dict[tuple[str, int], Transmission] = collections.defaultdict(Transmission)

    async def __aenter__(self):
        self.stack = contextlib.AsyncExitStack()
        for gateway in self.gateways:
            await self.stack.enter_async_context(gateway.publisher)
        return self

    async def __aexit__(self, *details):
        return await self.stack.__aexit__(*details)

    def transmit(self, tag: int, value: int):
        transmission = self.transmissions[address(tag), value]
        for gateway, rssi in self.in_range[tag]:
            transmission.origins.add(gateway.receive(tag, value, max(-127, rssi + self.choice.randrange(-3, 4))))

    async def round(self, value: int, rate: float):
        """Lets each tag transmit once, with this number of messages in a second."""
        start, count = time.monotonic(), 0
        for tag, receivers in enumerate(self.in_range):
            self.transmit(tag, value)
            count += len(receivers)
            if (delay := start + count / rate - time.monotonic()) > 0.01:
                await asyncio.sleep(delay)

    async def until_confirmed(self, deadline: float = 600):
        """Waits until the broker has confirmed all messages. Fails after the deadline in seconds."""
        try:
            async with asyncio.timeout(deadline):
                for gateway in self.gateways:
                    await gateway.publisher.until_done()
        except TimeoutError:
            left = sum(not gateway.publisher.is_done for gateway in self.gateways)
            text = f"not within {deadline:g} s: the broker confirms the messages of all gateways; {left} wait"
            raise AssertionError(text) from None

    @property
    def confirmed_count(self) -> int:
        return sum(gateway.publisher.confirmed_count for gateway in self.gateways)

    @property
    def origins(self) -> set[Origin]:
        return {origin for transmission in self.transmissions.values() for origin in transmission.origins}


@dataclasses.dataclass
class Line:
    """A line of an observation, with the time at which it was read."""

    time: float
    value: dict

    @property
    def transmission(self) -> tuple[str, int]:
        return self.value["address"].replace(":", ""), self.value["readings"]["temperature"]["value"]

    @property
    def origins(self) -> list[Origin]:
        return [(each["gateway"], each["boot"], each["sequence"]) for each in self.value["receivers"]]


class Consumer:
    """`ble-gateway fleet`. It can be stopped, killed and started again. The test fails if it ends by itself."""

    def __init__(self, binary: Path, port: int, directory: Path, *options: str):
        self.binary, self.port, self.directory, self.options = binary, port, directory, options
        self.errors = directory / "fleet.log"
        self.lines: list[Line] = []
        self.elections: list[dict] = []
        self.process: asyncio.subprocess.Process | None = None
        # Whether the test has ended the process.
        self.was_ended = False
        # The port of the metrics, if they are served, and the late messages of the programs that were killed.
        self.http = options[options.index("--http") + 1] if "--http" in options else None
        self.late_count = 0

    async def __aenter__(self):
        try:
            await self.start()
        except BaseException:
            if self.process is not None and self.process.returncode is None:
                self.process.kill()
                await self.process.wait()
            raise
        return self

    async def __aexit__(self, *_):
        try:
            if not self.was_ended:
                await self.kill()
        finally:
            await self.end()

    def check_running(self):
        """Fails if the program has ended although the test has not ended it."""
        status = self.process.returncode
        assert status is None, f"ble-gateway fleet has ended by itself with {status}: {self.log[-500:]}"

    def metric(self, name: str) -> int:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.http}/metrics", timeout=20) as response:
            return int(response.read().decode().partition(f"\n{name} ")[2].split()[0])

    @property
    def log(self) -> str:
        return self.errors.read_text() if self.errors.exists() else ""

    async def start(self):
        count = self.log.count("subscribed to the topics")
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("BLE_", "STATE_DIR"))}
        self.process = await asyncio.create_subprocess_exec(
            self.binary, "fleet", "--mqtt", f"mqtt://127.0.0.1:{self.port}", "--state-dir",
            str(self.directory / "state"), *self.options, stdout=asyncio.subprocess.PIPE,
            stderr=self.errors.open("ab"), env=environment, limit=1 << 22,
            # A limit of the size of files makes writes fail, as on a full disk.
            preexec_fn=lambda: signal.signal(signal.SIGXFSZ, signal.SIG_IGN),
        )  # fmt: skip
        self.was_ended = False
        self.reader = asyncio.create_task(self.read(self.process.stdout))
        async with asyncio.timeout(30):
            while self.log.count("subscribed to the topics") == count:
                assert self.process.returncode is None, self.log
                await asyncio.sleep(0.02)

    async def read(self, stream: asyncio.StreamReader):
        while line := await stream.readline():
            # A program that is killed may leave a part of a line.
            if line.endswith(b"\n"):
                value = json.loads(line)
                if "readings" in value:
                    self.lines.append(Line(time.monotonic(), value))
                else:
                    self.elections.append(value)

    async def stop(self) -> dict[str, int]:
        """Ends the program, which must end cleanly. Returns the counters that it reports."""
        self.check_running()
        self.was_ended = True
        self.process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(20):
            status = await self.process.wait()
        await self.reader
        assert status == 0, f"the exit status is {status}: {self.log[-500:]}"
        words = self.log.splitlines()[-1].partition(" stopped ")[2].split()
        return {name: int(number) for name, _, number in (word.partition("=") for word in words)}

    async def kill(self):
        """Ends the program at once."""
        self.check_running()
        try:
            if self.http:
                name = 'ble_gateway_fleet_messages_unused_total{reason="late"}'
                self.late_count += await asyncio.to_thread(self.metric, name)
        finally:
            self.was_ended = True
            await self.end()

    async def end(self):
        """Ends the program if it still runs."""
        if self.process.returncode is None:
            self.process.kill()
            await self.process.wait()
            await self.reader

    @property
    def repeated(self) -> list[Origin]:
        """The messages that are in more than one line."""
        counts = collections.Counter(origin for line in self.lines for origin in line.origins)
        return [origin for origin, count in counts.items() if count > 1]

    @property
    def origins(self) -> set[Origin]:
        return {origin for line in self.lines for origin in line.origins}
