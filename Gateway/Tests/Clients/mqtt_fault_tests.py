"""Faults between the gateway and its MQTT broker: SIGKILL, full disks, and brokers that misbehave."""

import asyncio
import contextlib
import fcntl
import glob
import itertools
import json
import os
import random
import resource
import signal
import sqlite3
import subprocess

from bumble.core import AdvertisingData
from bumble.device import AdvertisingType
from bumble.hci import OwnAddressType
from harness import World, check_running, environment, expect, free_ports, run, test, until
from mqtt_tests import Broker, Subscriber

# The rounds of the test with SIGKILL; see Docs/Gateway.md.
ROUNDS = int(os.environ.get("MQTT_KILL_ROUNDS", "10"))
# The broker keeps everything for a subscriber that is away.
UNBOUNDED = ("max_queued_messages 0", "max_inflight_messages 0")


class Sensors:
    """Sensors in range whose readings change all the time."""

    def __init__(self, world: World, count: int = 4):
        self.world = world
        self.count = count

    async def __aenter__(self):
        self.stack = contextlib.AsyncExitStack()
        self.tasks = []
        self.has_ended = False
        for index in range(self.count):
            sensor = await self.stack.enter_async_context(
                self.world.peripheral(name=f"Load {index}", address=f"F0:05:00:00:00:{index:02X}")
            )
            self.tasks.append(asyncio.create_task(self.change(sensor)))
        return self

    @staticmethod
    def data(number: int) -> bytes:
        """BTHome v2 without encryption: the number of the packet, and a count."""
        content = b"\xd2\xfc\x40\x00" + bytes([number % 256]) + b"\x3e" + number.to_bytes(4, "little")
        return bytes(AdvertisingData([(AdvertisingData.SERVICE_DATA_16_BIT_UUID, content)]))

    async def change(self, sensor):
        for number in itertools.count():
            if self.has_ended:
                return
            if sensor.device.is_advertising:
                await sensor.device.stop_advertising()
            await sensor.device.start_advertising(
                advertising_type=AdvertisingType.UNDIRECTED, own_address_type=OwnAddressType.RANDOM,
                advertising_data=self.data(number), advertising_interval_min=20, advertising_interval_max=20,
            )  # fmt: skip
            await asyncio.sleep(0.02)

    async def __aexit__(self, *details):
        # Bumble swallows a cancellation while it waits for a response.
        self.has_ended = True
        await asyncio.gather(*self.tasks)
        return await self.stack.__aexit__(*details)


class Publisher:
    """`ble-gateway run` that publishes what the sensors report. The test fails if it ends by itself."""

    def __init__(self, world: World, port: int, file_size: int | None = None, **variables: str):
        self.world = world
        self.port = port
        self.file_size = file_size
        self.variables = variables
        self.state = world.directory / "state"
        self.log = world.directory / "publisher.log"
        self.line_count = 0
        # Whether the test has ended the process.
        self.was_ended = False

    def limit(self):
        """Makes writes beyond a size fail, as on a full disk."""
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (self.file_size, resource.RLIM_INFINITY))

    async def __aenter__(self):
        self.process = await asyncio.create_subprocess_exec(
            # libfaketime starts the first program that it is loaded into again, without its arguments.
            "/usr/bin/env", self.world.gateway_binary, "run", "--no-api", "--name", "hall", "--adapter", self.world.adapter,
            "--mqtt", f"mqtt://127.0.0.1:{self.port}", "--readings", "json", "--state-dir", str(self.state),
            stdout=subprocess.PIPE, stderr=self.log.open("ab"), env=environment() | self.variables,
            preexec_fn=self.limit if self.file_size else None,
        )  # fmt: skip
        self.reader = asyncio.create_task(self.read())
        return self

    async def read(self):
        while await self.process.stdout.readline():
            self.line_count += 1

    async def stop(self, number: int = signal.SIGTERM) -> int:
        self.begin_end(number)
        return await self.ended()

    def begin_end(self, number: int = signal.SIGTERM):
        """Sends the signal that ends the process."""
        check_running(self.process, "ble-gateway", self.log)
        self.was_ended = True
        self.process.send_signal(number)

    async def ended(self) -> int:
        """Waits for the end of the process. Returns its exit status."""
        try:
            async with asyncio.timeout(12):
                await self.process.wait()
        except TimeoutError:
            self.process.kill()
            raise AssertionError("the gateway did not end within 12 s") from None
        await self.reader
        return self.process.returncode

    async def __aexit__(self, *_):
        if not self.was_ended:
            await self.stop(signal.SIGKILL)
        elif self.process.returncode is None:
            self.process.kill()
            await self.ended()

    def has_lock(self) -> bool:
        """Whether the process has the lock of its state directory."""
        descriptor = os.open(self.state / "lock", os.O_RDWR)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
        return False

    async def broker(self) -> dict:
        """The status of the broker."""
        outcome = await run(self.world.gateway_binary, "status", "--json", "--state-dir", str(self.state))
        return json.loads(outcome.output)["broker"] if outcome.status == 0 else {}

    async def until(self, condition, what: str, deadline: float = 60):
        """Waits for a status of the broker."""
        status = {}
        try:
            async with asyncio.timeout(deadline):
                while not (status := await self.broker()) or not condition(status):
                    await asyncio.sleep(0.05)
        except TimeoutError:
            raise AssertionError(f"not within {deadline} s: {what}: {status}") from None

    def stored(self) -> list[tuple[str, int]]:
        """The boots and sequence numbers of the stored messages, in their order. The file must be intact."""
        path = self.state / "mqtt.sqlite"
        if not path.exists():
            return []
        with contextlib.closing(sqlite3.connect(path)) as database:
            expect(database.execute("PRAGMA integrity_check").fetchall(), [("ok",)], "the integrity of the store")
            exists = database.execute("SELECT count(*) FROM sqlite_master WHERE name = 'message'").fetchone()[0]
            rows = database.execute("SELECT payload FROM message ORDER BY number").fetchall() if exists else []
        return [(each["boot"], each["sequence"]) for each in (json.loads(text) for (text,) in rows)]


def check_order(found: list[tuple[str, int]], what: str):
    """The messages of each boot must be in the order of their numbers, apart from repetitions."""
    last: dict[str, int] = {}
    seen = set()
    for boot, sequence in found:
        if (boot, sequence) not in seen:
            assert sequence > last.get(boot, 0), f"{what}: {boot} {sequence} after {last[boot]}"
            last[boot] = sequence
            seen.add((boot, sequence))


def check_complete(found: list[tuple[str, int]], what: str):
    """No message of a boot may be missing."""
    for boot in {boot for boot, _ in found}:
        numbers = {sequence for other, sequence in found if other == boot}
        missing = set(range(1, max(numbers) + 1)) - numbers
        assert not missing, f"{what}: {len(missing)} of {max(numbers)} are missing, the first is {min(missing)}"


@test(f"mqtt faults: no stored message is lost by SIGKILL, and the order is kept ({ROUNDS} rounds)", 120 + 6 * ROUNDS)
async def kills(world: World):
    (port,) = free_ports(1)
    choice = random.Random(ROUNDS)
    must_arrive: set[tuple[str, int]] = set()
    async with Broker(world.directory, port, *UNBOUNDED) as broker, Subscriber(broker) as subscriber, Sensors(world):
        for _ in range(ROUNDS):
            is_away = choice.random() < 0.5
            if is_away:
                await broker.stop()
            async with Publisher(world, port) as publisher:
                await until(lambda: publisher.line_count > 5, "readings", 30)
                await asyncio.sleep(choice.uniform(0, 0.5))
                if not is_away and choice.random() < 0.5:
                    # The broker goes and comes while messages are on their way.
                    await broker.stop()
                    await asyncio.sleep(choice.uniform(0, 0.3))
                elif is_away and choice.random() < 0.5:
                    await broker.start()
                    await asyncio.sleep(choice.uniform(0, 1.5))
                await publisher.stop(signal.SIGKILL)
            stored = publisher.stored()
            check_order(stored, "the store")
            must_arrive.update(stored)
            if broker.process.returncode is not None:
                await broker.start()
        async with Publisher(world, port) as publisher:
            await publisher.until(
                lambda status: status["isConnected"] and status["deliveredCount"] > 0 and status["waitingCount"] < 64,
                "everything is delivered",
            )
            expect(await publisher.stop(), 0, "the exit status")
            must_arrive.update(publisher.stored())
        assert len(must_arrive) > ROUNDS, "too few messages were stored"
        remaining = set(publisher.stored())
        await until(lambda: must_arrive - remaining <= set(subscriber.origins()), "the stored messages", 30)
        check_order(subscriber.origins(), "the broker")
        print(f"      {ROUNDS} kills, {len(must_arrive)} messages were stored, {len(subscriber.origins())} received")


@test("mqtt faults: every message reaches the broker, in order, though it goes again and again", 120)
async def losses(world: World):
    (port,) = free_ports(1)
    async with Broker(world.directory, port, *UNBOUNDED) as broker, Subscriber(broker) as subscriber, Sensors(world):
        async with Publisher(world, port) as publisher:
            for number in range(4):
                count = publisher.line_count
                await until(lambda: publisher.line_count > count + 50, "readings", 30)
                await broker.stop()
                count = publisher.line_count
                await until(lambda: publisher.line_count > count + 50, "readings without a broker", 30)
                await broker.start()
                await publisher.until(lambda status: status["isConnected"], "the broker is back")
            expect(await publisher.stop(), 0, "the exit status")
            last = publisher.line_count
        remaining = publisher.stored()
        await until(lambda: len(set(subscriber.origins() + remaining)) >= last, "all messages", 30)
        check_order(subscriber.origins() + remaining, "the broker")
        check_complete(subscriber.origins() + remaining, "the broker")


@contextlib.asynccontextmanager
async def without_broker(world: World, **options):
    """A publisher whose broker was there, has gone, and has a subscriber that it knows."""
    (port,) = free_ports(1)
    async with Broker(world.directory, port, *UNBOUNDED) as broker, Subscriber(broker) as subscriber, Sensors(world):
        async with Publisher(world, port, **options) as publisher:
            await until(lambda: subscriber.origins(), "a reading at the subscriber", 30)
            await broker.stop()
            yield broker, subscriber, publisher


async def check_delivery(broker: Broker, subscriber: Subscriber, publisher: Publisher):
    """Starts the broker again. Every message must reach it or be in the store, in order."""
    await broker.start()
    await publisher.until(lambda status: status["isConnected"] and status["waitingCount"] < 64, "the delivery")
    expect(await publisher.stop(), 0, "the exit status")
    remaining = publisher.stored()
    count = publisher.line_count
    await until(lambda: len(set(subscriber.origins() + remaining)) >= count, f"{count} messages", 30)
    check_order(subscriber.origins() + remaining, "the broker")
    check_complete(subscriber.origins() + remaining, "the broker")


@test("mqtt faults: with a full disk, readings go on, and messages wait in memory until it has room", 120)
async def full_disk(world: World):
    async with without_broker(world, file_size=200_000) as (broker, subscriber, publisher):
        await publisher.until(lambda status: status.get("storeFailure"), "the failure in the status")
        count = publisher.line_count
        await until(lambda: publisher.line_count > count + 100, "readings with a full disk", 30)
        expect(publisher.log.read_text().count("cannot be stored"), 1, "the number of errors in the log")
        text = (await run(world.gateway_binary, "status", "--state-dir", str(publisher.state))).output
        assert "messages cannot be stored: " in text, text
        subprocess.run(["prlimit", "--pid", str(publisher.process.pid), "--fsize=unlimited"], check=True)
        await publisher.until(lambda status: not status.get("storeFailure"), "the end of the failure")
        expect(publisher.log.read_text().count("stored again"), 1, "the number of notices in the log")
        await check_delivery(broker, subscriber, publisher)


@test("mqtt faults: when the clock is set back, messages keep their order, and the gateway connects again", 120)
async def clock(world: World):
    (library,) = glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1")
    offset = world.directory / "offset"
    offset.write_text("+0")
    # The monotonic clock is not set back, as on a real machine.
    variables = {"LD_PRELOAD": library, "FAKETIME_TIMESTAMP_FILE": str(offset), "FAKETIME_NO_CACHE": "1",
                 "FAKETIME_DONT_FAKE_MONOTONIC": "1"}  # fmt: skip
    async with without_broker(world, **variables) as (broker, subscriber, publisher):
        count = publisher.line_count
        await until(lambda: publisher.line_count > count + 50, "readings", 30)
        offset.write_text("-1d")
        count = publisher.line_count
        await until(lambda: publisher.line_count > count + 50, "readings with a clock that was set back", 30)
        await check_delivery(broker, subscriber, publisher)
        times = [json.loads(text)["time"] for text in subscriber.readings()]
        assert times[0] > min(times[count:], default="~"), "the clock was not set back"


@test("mqtt faults: a broker that accepts messages and confirms none does not hold up readings or the end", 120)
async def silent_broker(world: World):
    connections = []

    async def accept(reader, writer):
        connections.append(writer)
        await reader.read(2048)
        writer.write(bytes.fromhex("20020000"))
        # Nothing is read any more.
        reader._transport.pause_reading()

    (port,) = free_ports(1)
    server = await asyncio.start_server(accept, "127.0.0.1", port)
    async with Sensors(world), Publisher(world, port) as publisher:
        await publisher.until(lambda status: status["isConnected"], "the connection")
        await until(lambda: publisher.line_count > 500, "readings", 60)
        await publisher.until(lambda status: status["waitingCount"] >= 400, "messages that wait")
        publisher.begin_end()
        # The gateway waits a few seconds for the broker. Until its end, it answers, and no other one can use its
        # directory. No program is started for these checks, because that could take longer.
        assert publisher.has_lock(), "the gateway has released its directory"
        reader, writer = await asyncio.open_unix_connection(publisher.state / "status.sock")
        status = json.loads(await reader.read())["broker"]
        writer.close()
        assert status.get("waitingCount", 0) >= 400, f"the status at the end: {status}"
        expect(await publisher.ended(), 0, "the exit status")
        check_complete(publisher.stored(), "the store")
        check_order(publisher.stored(), "the store")
        assert len(publisher.stored()) >= 500
    for writer in connections:
        writer.close()
    server.close()


@test("mqtt faults: a broker that answers nothing, or garbage, does not hold up the end of the gateway")
async def hostile_broker(world: World):
    accepted = bytes.fromhex("20020000")
    answers = [b"", os.urandom(1000), accepted + os.urandom(1000), b"\xff" * 1000]
    connections = []

    async def accept(reader, writer):
        connections.append(writer)
        await reader.read(2048)
        writer.write(answers[0])

    (port,) = free_ports(1)
    server = await asyncio.start_server(accept, "127.0.0.1", port)
    async with Sensors(world, 1):
        while answers:
            connections.clear()
            async with Publisher(world, port) as publisher:
                await until(lambda: connections and publisher.line_count > 10, f"readings with {answers[0][:8]}", 10)
                expect(await publisher.stop(), 0, "the exit status")
            answers.pop(0)
        check_order(publisher.stored(), "the store")
        check_complete(publisher.stored(), "the store")
    for writer in connections:
        writer.close()
    server.close()
