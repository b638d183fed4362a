"""Readings of sensors at a real MQTT broker: mosquitto."""

import asyncio
import contextlib
import json
import re
import shutil
import signal
import subprocess
from pathlib import Path

from harness import World, check_running, ended, environment, expect, free_ports, last_line, run, test, until

# What only messages for the broker have.
ORIGIN = re.compile(r'"boot": "[0-9a-f]{8}", "sequence": [0-9]+, ')
MOSQUITTO = shutil.which("mosquitto") or "/usr/sbin/mosquitto"


class Broker:
    """A mosquitto that can be stopped and started, and keeps the sessions of its subscribers."""

    def __init__(self, directory: Path, port: int, *settings: str):
        self.port = port
        self.file = directory / "mosquitto.conf"
        lines = [f"listener {port} 127.0.0.1", "persistence true", f"persistence_location {directory}/", *settings]
        if not any(line.startswith("allow_anonymous") for line in lines):
            lines.append("allow_anonymous true")
        if subprocess.run(["id", "-u"], capture_output=True, text=True).stdout.strip() == "0":
            lines.append("user root")
        self.file.write_text("\n".join(lines) + "\n")
        self.log = directory / "mosquitto.log"
        self.process = None

    async def __aenter__(self):
        try:
            await self.start()
        except BaseException:
            await self.stop()
            raise
        return self

    async def __aexit__(self, *_):
        await self.stop()

    async def start(self):
        log = self.log.open("ab")
        self.process = await asyncio.create_subprocess_exec(MOSQUITTO, "-c", self.file, stdout=log, stderr=log)
        await until(lambda: self.listens(), "the broker listens")

    def listens(self) -> bool:
        assert self.process.returncode is None, f"the broker ended: {self.log.read_text()[-500:]}"
        import socket

        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    async def stop(self):
        if self.process and self.process.returncode is None:
            self.process.terminate()
            await ended(self.process)


class Subscriber:
    """mosquitto_sub with a session of its own; every message is a line of its topic and payload."""

    def __init__(self, broker: Broker, *options: str):
        self.broker = broker
        self.options = options
        self.messages: list[tuple[str, str]] = []

    async def __aenter__(self):
        self.process = await asyncio.create_subprocess_exec(
            "mosquitto_sub", "-h", "127.0.0.1", "-p", str(self.broker.port), "-t", "#", "-q", "1", "-v", "-c",
            "-i", "test", *self.options, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        self.reader = asyncio.create_task(self.read())
        return self

    async def read(self):
        while line := await self.process.stdout.readline():
            topic, _, payload = line.decode(errors="replace").rstrip("\n").partition(" ")
            self.messages.append((topic, payload))

    async def __aexit__(self, *_):
        self.process.kill()
        await self.process.wait()
        self.reader.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self.reader

    def readings(self) -> list[str]:
        """The readings as the gateway writes them to its standard output."""
        return [ORIGIN.sub("", payload) for topic, payload in self.messages if topic.startswith("ble/sensors/")]

    def origins(self) -> list[tuple[str, int]]:
        """The boot and the sequence number of each reading."""
        found = [json.loads(payload) for topic, payload in self.messages if topic.startswith("ble/sensors/")]
        return [(each["boot"], each["sequence"]) for each in found]

    def status(self) -> list[str]:
        return [payload for topic, payload in self.messages if topic.endswith("/status")]


class Demo:
    """`ble-gateway demo` that publishes, and writes the same readings to its standard output.

    The test fails if the process ends by itself, or if it does not end cleanly at the end of the context.
    """

    def __init__(self, world: World, *options: str, **variables: str):
        self.world = world
        self.options = options
        self.variables = variables
        self.lines: list[str] = []
        self.errors = world.directory / "demo.log"
        # Whether the test has ended the process.
        self.was_ended = False

    async def __aenter__(self):
        self.process = await asyncio.create_subprocess_exec(
            self.world.gateway_binary, "demo", "--no-api", "--readings", "json", "--state-dir",
            str(self.world.directory / "state"), "--log-level", "info", *self.options,
            stdout=asyncio.subprocess.PIPE, stderr=self.errors.open("ab"), env=environment() | self.variables,
        )  # fmt: skip
        self.reader = asyncio.create_task(self.read())
        return self

    async def read(self):
        while line := await self.process.stdout.readline():
            self.lines.append(line.decode().rstrip("\n"))

    async def stop(self, number: int = signal.SIGTERM) -> int:
        check_running(self.process, "ble-gateway demo", self.errors)
        self.was_ended = True
        self.process.send_signal(number)
        status = await ended(self.process)
        await self.reader
        return status

    async def __aexit__(self, *_):
        if not self.was_ended and (status := await self.stop()) != 0:
            raise AssertionError(f"ble-gateway demo ended with {status}: {last_line(self.errors)}")


@test("mqtt: readings, announcements for Home Assistant and the state of the gateway reach the broker")
async def published(world: World):
    (port,) = free_ports(1)
    async with Broker(world.directory, port) as broker, Subscriber(broker) as subscriber:
        async with Demo(world, "--mqtt", f"mqtt://127.0.0.1:{port}", "--name", "hall") as demo:
            await until(lambda: len(subscriber.readings()) >= 2, "two readings", 30)
            expect(await demo.stop(), 0, "the exit status")
        await until(lambda: "offline" in subscriber.status(), "the end of the gateway")
        expect(subscriber.status(), ["online", "offline"], "the states")
        expect(subscriber.readings(), demo.lines[: len(subscriber.readings())], "the readings")
        expect([sequence for _, sequence in subscriber.origins()], list(range(1, len(subscriber.readings()) + 1)),
               "the sequence")  # fmt: skip
        expect(len({boot for boot, _ in subscriber.origins()}), 1, "the number of boots")
        topics = [topic for topic, _ in subscriber.messages]
        assert topics[0] == "ble/gateways/hall/status", topics
        assert "ble/sensors/C0DE00000002/hall" in topics, topics
        slots = [json.loads(text) for topic, text in subscriber.messages if topic == "ble/gateways/hall/connections"]
        # None before the adapter is open, and after it was closed.
        assert {"free": 20, "limit": 20} in slots and slots[-1]["free"] == 0, slots
        announced = [json.loads(text) for topic, text in subscriber.messages if topic.startswith("homeassistant/")]
        expect([each["unique_id"] for each in announced],
               ["ble_C0DE00000002_temperature", "ble_C0DE00000002_humidity"], "the announced readings")  # fmt: skip
        temperature = announced[0]
        expect(temperature["device_class"], "temperature", "the class")
        expect(temperature["unit_of_measurement"], "°C", "the unit")
        expect(temperature["state_topic"], "ble/sensors/C0DE00000002/+", "the topic")
        expect("availability_topic" in temperature, False, "whether the readings depend on one gateway")


@test("mqtt: what was received while the broker was away reaches it later, in order, also after SIGKILL")
async def broker_away(world: World):
    (port,) = free_ports(1)
    address = f"mqtt://127.0.0.1:{port}"
    async with Broker(world.directory, port) as broker, Subscriber(broker) as subscriber:
        async with Demo(world, "--mqtt", address) as demo:
            await until(lambda: len(subscriber.readings()) >= 1, "a reading", 30)
            await broker.stop()
            count = len(demo.lines)
            await until(lambda: len(demo.lines) >= count + 2, "readings without a broker", 30)
            text = (await run(world.gateway_binary, "status", "--state-dir", str(world.directory / "state"))).output
            assert f"broker {address}: not connected" in text, text
            # The line is written before the message is stored; the next reading is 5 seconds away.
            store = world.directory / "state" / "mqtt.sqlite-wal"
            await until(lambda: demo.lines[-1].split('"time": "')[1][:24].encode() in store.read_bytes(), "the store")
            await demo.stop(signal.SIGKILL)
        await broker.start()
        async with Demo(world, "--mqtt", address) as second:
            await until(lambda: len(second.lines) >= 1, "a reading after the restart", 30)
            expected = demo.lines + second.lines[:1]
            await until(lambda: len(set(subscriber.readings())) >= len(expected), "all readings", 30)
            # Delivery is at least once: a message that was not confirmed may come again.
            distinct = list(dict.fromkeys(subscriber.readings()))
            expect(distinct[: len(expected)], expected, "the readings")
            origins = list(dict.fromkeys(subscriber.origins()))[: len(expected)]
            sequences = list(range(1, len(demo.lines) + 1)) + [1]
            expect([sequence for _, sequence in origins], sequences, "the sequence, which begins with each boot")
            expect(len({boot for boot, _ in origins}), 2, "the number of boots")
        await until(lambda: subscriber.status()[-1] == "offline", "the end of the gateway")


@test("mqtt: the broker says that a gateway which was killed is offline")
async def will(world: World):
    (port,) = free_ports(1)
    async with Broker(world.directory, port) as broker, Subscriber(broker) as subscriber:
        async with Demo(world, "--mqtt", f"mqtt://127.0.0.1:{port}") as demo:
            await until(lambda: subscriber.status() == ["online"], "the gateway is online", 30)
            await demo.stop(signal.SIGKILL)
        await until(lambda: subscriber.status() == ["online", "offline"], "the gateway is offline")


@test("mqtt: a wrong password is named in the log, and the right one is accepted")
async def password(world: World):
    (port,) = free_ports(1)
    file = world.directory / "passwords"
    subprocess.run(["mosquitto_passwd", "-b", "-c", file, "me", "secret"], check=True, capture_output=True)
    settings = ("allow_anonymous false", f"password_file {file}")
    address = f"mqtt://me@127.0.0.1:{port}"
    async with Broker(world.directory, port, *settings) as broker:
        async with Demo(world, "--mqtt", address, BLE_GATEWAY_MQTT_PASSWORD="wrong") as demo:
            await until(lambda: "cannot be reached" in demo.errors.read_text(), "the refusal", 30)
            text = demo.errors.read_text()
            assert "not authorised" in text.lower() or "not authorized" in text.lower(), text
            assert "wrong" not in text, "the password is in the log"
        async with Demo(world, "--mqtt", address, BLE_GATEWAY_MQTT_PASSWORD="secret") as demo:
            async with Subscriber(broker, "-u", "me", "-P", "secret") as subscriber:
                await until(lambda: subscriber.readings(), "a reading", 30)


@test("mqtt: TLS is used, and a broker of another authority is refused")
async def tls(world: World):
    (port,) = free_ports(1)
    directory = world.directory

    async def openssl(*arguments: str):
        await asyncio.to_thread(
            subprocess.run, ["openssl", *arguments], check=True, capture_output=True, cwd=directory
        )

    for name in ("authority", "other"):
        await openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", f"/CN={name}",
                "-keyout", f"{name}.key", "-out", f"{name}.pem")  # fmt: skip
    await openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-keyout", "broker.key", "-out",
            "broker.csr")  # fmt: skip
    (directory / "names").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
    await openssl("x509", "-req", "-in", "broker.csr", "-CA", "authority.pem", "-CAkey", "authority.key", "-days", "1",
            "-extfile", "names", "-out", "broker.pem")  # fmt: skip
    settings = (f"certfile {directory}/broker.pem", f"keyfile {directory}/broker.key")
    async with Broker(directory, port, *settings) as broker:
        address = f"mqtts://127.0.0.1:{port}"
        async with Demo(world, "--mqtt", address, BLE_GATEWAY_MQTT_AUTHORITY=str(directory / "other.pem")) as demo:
            await until(lambda: "cannot be reached" in demo.errors.read_text(), "the refusal", 30)
        async with Demo(world, "--mqtt", address, BLE_GATEWAY_MQTT_AUTHORITY=str(directory / "authority.pem")):
            async with Subscriber(broker, "--cafile", str(directory / "authority.pem")) as subscriber:
                await until(lambda: subscriber.readings(), "a reading", 30)
