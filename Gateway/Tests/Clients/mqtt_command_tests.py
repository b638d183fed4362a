"""Commands over MQTT: connections on demand, in order, with a result for each request."""

import asyncio
import contextlib
import json
import subprocess
import time

from connection_tests import Link
from harness import World, environment, expect, free_ports, test, until
from mqtt_tests import Broker, Demo, Subscriber

THERMOMETER = "C0:DE:00:00:00:01"
LAMP = "C0:DE:00:00:00:03"
ABSENT = "C0:DE:00:00:00:99"
LAMP_STATE = "B1E00101-5EED-4000-8000-C0FFEE000000"
# The error of the native API if another client has the device.
ALREADY_OPEN = 145
TOPIC = "ble/gateways/hall"


class Requester:
    """Publishes commands, and finds their results among what a subscriber receives."""

    def __init__(self, broker: Broker, subscriber: Subscriber):
        self.broker = broker
        self.subscriber = subscriber
        self.last = 0

    async def publish(self, payload: bytes, *options: str):
        process = await asyncio.create_subprocess_exec(
            "mosquitto_pub", "-h", "127.0.0.1", "-p", str(self.broker.port), "-t", f"{TOPIC}/commands", "-q", "1",
            "-s", *options, stdin=subprocess.PIPE,
        )  # fmt: skip
        await process.communicate(payload)
        assert process.returncode == 0

    async def send(self, command: str, address: str, **members) -> str:
        self.last += 1
        identifier = str(self.last)
        request = {"id": identifier, "command": command, "address": address, **members}
        await self.publish(json.dumps(request).encode())
        return identifier

    def messages(self, name: str) -> list[dict]:
        return [json.loads(text) for topic, text in self.subscriber.messages if topic == f"{TOPIC}/{name}"]

    def results(self, identifier: str | None) -> list[dict]:
        return [each for each in self.messages("results") if each["id"] == identifier]

    async def result(self, identifier: str | None, deadline: float = 20) -> dict:
        await until(lambda: self.results(identifier), f"the result of {identifier}", deadline)
        expect(len(self.results(identifier)), 1, f"the number of results of {identifier}")
        return self.results(identifier)[0]

    async def perform(self, command: str, address: str, **members) -> dict:
        return await self.result(await self.send(command, address, **members))

    async def code(self, command: str, address: str, **members) -> str | None:
        """The code of the error; None for success."""
        return (await self.perform(command, address, **members)).get("error", {}).get("code")


@contextlib.asynccontextmanager
async def commands(world: World, *options: str, **variables: str):
    """A broker, a gateway that takes commands, and a requester."""
    (port,) = free_ports(1)
    variables = {"BLE_GATEWAY_MQTT_COMMANDS": "true"} | variables
    async with Broker(world.directory, port) as broker, Subscriber(broker) as subscriber:
        async with Demo(world, "--mqtt", f"mqtt://127.0.0.1:{port}", "--name", "hall", *options, **variables) as demo:
            await until(lambda: subscriber.status() == ["online"], "the gateway is online", 30)
            yield broker, demo, Requester(broker, subscriber)


async def links(world: World) -> list[dict]:
    """The connections that the gateway reports."""
    process = await asyncio.create_subprocess_exec(
        world.gateway_binary, "status", "--json", "--state-dir", str(world.directory / "state"),
        stdout=subprocess.PIPE, env=environment(),
    )  # fmt: skip
    return json.loads((await process.communicate())[0])["connections"]


@test("mqtt commands: services, values, writes and notifications, in the order of the commands")
async def performed(world: World):
    async with commands(world) as (_, _, requester):
        result = await requester.perform("read", THERMOMETER, characteristic="2A6E")
        assert result["success"], result
        expect((result["command"], result["address"], result["gateway"]), ("read", THERMOMETER, "hall"), "the result")
        expect(result["decoded"], int.from_bytes(bytes.fromhex(result["value"]), "little") / 100, "the temperature")
        expect((result["reading"], result["unit"]), ("temperature", "°C"), "the reading")
        services = (await requester.perform("services", LAMP))["services"]
        found = [each for service in services for each in service["characteristics"]]
        state = next(each for each in found if each["characteristic"] == LAMP_STATE)
        assert "notify" in state["properties"] and "write" in state["properties"], state
        expect(await requester.code("subscribe", LAMP, characteristic=LAMP_STATE), None, "the error")
        # Results and values come in the order of the commands, although nothing waits for them.
        sent = [
            await requester.send(
                "write", LAMP, characteristic=LAMP_STATE, value=f"01{percent:02x}", response=percent % 2 == 0
            )
            for percent in range(1, 13)
        ]
        for identifier in sent:
            assert (await requester.result(identifier))["success"], requester.results(identifier)
        await until(lambda: len(requester.messages("notifications")) >= 12, "the values")
        found = requester.messages("notifications")
        expect([each["value"] for each in found][-12:], [f"01{percent:02x}" for percent in range(1, 13)], "the values")
        expect([each["sequence"] for each in found], list(range(1, len(found) + 1)), "the sequence")
        expect({each["address"] for each in found}, {LAMP}, "the addresses")
        order = [each["id"] for each in requester.messages("results") if each["id"] in sent]
        expect(order, sent, "the order of the results")
        expect(await requester.code("unsubscribe", LAMP, characteristic=LAMP_STATE), None, "the error")
        expect(await requester.code("write", LAMP, characteristic=LAMP_STATE, value="0164"), None, "the error")
        expect(await requester.code("disconnect", LAMP), None, "the error")
        expect(len(requester.messages("notifications")), len(found), "the number of values after the subscription")
        expect(await requester.code("read", LAMP, characteristic="2A00", service="1801"), "not_found", "the error")


@test("mqtt commands: an idle connection ends, one with a subscription does not, and its end is reported")
async def idle(world: World):
    async with commands(world, BLE_GATEWAY_MQTT_IDLE_TIMEOUT="1") as (_, _, requester):
        expect(await requester.code("connect", LAMP), None, "the error")
        expect(await requester.code("subscribe", THERMOMETER, characteristic="2A6E"), None, "the error")
        connected = [each["address"] for each in await links(world)]
        assert THERMOMETER in connected, connected
        async with asyncio.timeout(20):
            while LAMP in [each["address"] for each in await links(world)]:
                await asyncio.sleep(0.1)
        count = len(requester.messages("notifications"))
        await until(lambda: len(requester.messages("notifications")) >= count + 3, "values while the other is idle", 20)
        assert all("decoded" in each for each in requester.messages("notifications"))
        expect(await requester.code("disconnect", THERMOMETER), None, "the error")
        await until(lambda: "ended" in requester.messages("notifications")[-1], "the end of the subscription")
        expect(await links(world), [], "the connections")


@test("mqtt commands: errors have a code and a text, and a request that is no command has a result too")
async def errors(world: World):
    async with commands(world) as (_, demo, requester):
        started = time.monotonic()
        expect(await requester.code("connect", ABSENT, timeout=1), "timeout", "a device that is absent")
        assert time.monotonic() - started < 20, "the time limit of the command has no effect"
        expect(await requester.code("read", LAMP, characteristic="FFFF"), "not_found", "an absent characteristic")
        expect(await requester.code("write", THERMOMETER, characteristic="2A19", value="00"), "attribute", "a refusal")
        expect(await requester.code("subscribe", LAMP, characteristic="2A00"), "not_supported", "no notifications")
        expect(await requester.code("reboot", LAMP), "invalid", "an unknown command")
        expect(await requester.code("write", LAMP, characteristic=LAMP_STATE, value="0"), "invalid", "a bad value")
        malformed = [b"{", b"[]", b"\xff\xfe", b"null", b'{"id": {}}', b"[" * 10_000, b"\0" * 100]
        for payload in malformed:
            await requester.publish(payload)
        await requester.publish(b"{" + b" " * 20_000 + b"}")
        await until(lambda: len(requester.results(None)) == len(malformed) + 1, "a result for each")
        expect([each["error"]["code"] for each in requester.results(None)],
               ["invalid"] * len(malformed) + ["too_large"], "the codes")  # fmt: skip
        for result in requester.messages("results"):
            assert result["success"] or "\n" not in result["error"]["text"], result
        result = await requester.perform("read", LAMP, characteristic="2A00")
        assert result["success"], f"a command after the errors fails: {result}"
        expect(demo.process.returncode, None, "the exit status")


@test("mqtt commands: too many are refused, and each has one result", deadline=90)
async def bounded(world: World):
    async with commands(world) as (_, _, requester):
        requests = [
            {"id": f"{device}-{number}", "command": "connect", "address": f"C0:DE:00:00:01:{device:02X}", "timeout": 10}
            for number in range(20) for device in range(20)
        ]  # fmt: skip
        process = await asyncio.create_subprocess_exec(
            "mosquitto_pub", "-p", str(requester.broker.port), "-t", f"{TOPIC}/commands", "-q", "1", "-l",
            stdin=subprocess.PIPE,
        )  # fmt: skip
        await process.communicate("".join(json.dumps(each) + "\n" for each in requests).encode())
        await until(lambda: len(requester.messages("results")) >= len(requests), "all results", 60)
        found = requester.messages("results")
        expect(sorted(each["id"] for each in found), sorted(each["id"] for each in requests), "the identifiers")
        codes = [each["error"]["code"] for each in found]
        # 256 commands wait, and 20 devices are connected to at one time.
        expect(set(codes), {"timeout", "full"}, "the codes")
        assert 400 - 256 <= codes.count("full") < 400, codes
        expect(await requester.code("connect", LAMP), None, "the error afterwards")


@test("mqtt commands: a request that the broker has kept is not performed")
async def retained(world: World):
    async with commands(world) as (_, demo, requester):
        request = {"id": "kept", "command": "connect", "address": LAMP}
        await requester.publish(json.dumps(request).encode(), "-r")
        assert (await requester.result("kept"))["success"]
        expect(await requester.code("disconnect", LAMP), None, "the error")
        expect(await demo.stop(), 0, "the exit status")
        async with Demo(world, "--mqtt", f"mqtt://127.0.0.1:{requester.broker.port}", "--name", "hall",
                        BLE_GATEWAY_MQTT_COMMANDS="true"):  # fmt: skip
            await until(lambda: len(requester.results("kept")) == 2, "the result of the kept request", 30)
            expect(requester.results("kept")[1]["error"]["code"], "retained", "the code")
            expect(await links(world), [], "the connections")


@test("mqtt commands: a lost broker and the end of the gateway end commands and connections, with results")
async def ends(world: World):
    async with commands(world) as (broker, demo, requester):
        expect(await requester.code("subscribe", THERMOMETER, characteristic="2A6E"), None, "the error")
        waiting = await requester.send("connect", ABSENT, timeout=100)
        await until(lambda: requester.messages("notifications"), "a value")
        await broker.stop()
        async with asyncio.timeout(20):
            while await links(world):
                await asyncio.sleep(0.1)
        await broker.start()
        expect((await requester.result(waiting, 30))["error"]["code"], "broker_lost", "the code")
        await until(lambda: "ended" in requester.messages("notifications")[-1], "the end of the subscription")
        # The gateway takes commands again.
        assert (await requester.perform("read", THERMOMETER, characteristic="2A6E"))["success"]
        waiting = await requester.send("connect", ABSENT, timeout=100)
        async with asyncio.timeout(20):
            while ABSENT not in [each["address"] for each in await links(world)]:
                await asyncio.sleep(0.1)
        expect(await demo.stop(), 0, "the exit status")
        expect((await requester.result(waiting))["error"]["code"], "stopped", "the code")


@test("mqtt commands: a device has one client, of the native API or of the broker, and slots are shared")
async def busy(world: World):
    (port,) = free_ports(1)
    settings = world.directory / "gateway.json"
    settings.write_text(json.dumps({"mqtt": f"mqtt://127.0.0.1:{port}", "mqttCommands": True, "connectionLimit": 1}))
    async with Broker(world.directory, port) as broker, Subscriber(broker) as subscriber:
        async with world.peripheral(name="Peer") as peer, world.gateway("--config", str(settings), "--name", "hall") as gateway:
            requester = Requester(broker, subscriber)
            await peer.advertise()
            await until(lambda: subscriber.status() == ["online"], "the gateway is online", 30)
            address = peer.address
            async with gateway.connected() as client:
                async with Link(client, address) as link:
                    assert link.is_connected
                    expect(await requester.code("connect", address, timeout=10), "busy", "the code")
                    expect(await requester.code("connect", ABSENT, timeout=10), "no_slot", "the code")
                async with asyncio.timeout(20):
                    while await requester.code("connect", address, timeout=10):
                        await asyncio.sleep(0.1)
                status = await gateway.status()
                expect([each["client"] for each in status["connections"]], ["MQTT"], "the clients of connections")
                async with Link(client, address, timeout=10) as link:
                    expect(link.states[-1][0], False, "whether the native API has the device of a command")
                    expect(link.states[-1][2], ALREADY_OPEN, "the error of the native API")
                expect(await requester.code("disconnect", address), None, "the error")
                async with Link(client, address) as link:
                    assert link.is_connected


@test("mqtt commands: without the setting, nothing is performed")
async def off(world: World):
    async with commands(world, BLE_GATEWAY_MQTT_COMMANDS="false") as (_, _, requester):
        await requester.send("read", THERMOMETER, characteristic="2A6E")
        await until(lambda: len(requester.subscriber.readings()) >= 2, "two readings", 30)
        expect(requester.messages("results"), [], "the results")
        expect(await links(world), [], "the connections")
