"""Messages of a fleet of simulated gateways at mosquitto, combined by `ble-gateway fleet`."""

import asyncio
import collections
import json
import shutil
import signal
import subprocess
import urllib.request

from fleet import Consumer, Fleet, Publisher, address, reading
from harness import World, environment, expect, free_ports, run, test, until
from mqtt_tests import Broker, Subscriber

# The broker keeps everything for a consumer that is away.
UNBOUNDED = ("max_queued_messages 0",)


async def until_received(program: Consumer, count: int):
    """Waits until the program, which serves its metrics, has received this number of messages."""
    async with asyncio.timeout(30):
        while await asyncio.to_thread(program.metric, "ble_gateway_fleet_messages_received_total") < count:
            await asyncio.sleep(0.05)


def consumer(world: World, broker: Broker, *options: str) -> Consumer:
    return Consumer(world.gateway_binary, broker.port, world.directory, *options)


@test("fleet: each transmission is one line with all receivers, the strongest first, and repetitions are dropped")
async def combined(world: World):
    port, http = free_ports(2)
    # The window is longer than the publishing takes, so that nothing depends on the speed of the machine.
    options = ("--window", "60000", "--http", str(http))
    async with Broker(world.directory, port, *UNBOUNDED) as broker, consumer(world, broker, *options) as program:
        async with Fleet([port], gateways=10, tags=20, receivers=6) as fleet:
            for value in range(5):
                for tag in range(20):
                    fleet.transmit(tag, value)
            await fleet.until_confirmed()
            # Repetitions, as of a gateway that has lost the connection, and a gap of three numbers.
            hall = fleet.gateways[0]
            for sequence in range(1, 11):
                hall.publisher.publish(f"ble/sensors/{address(99)}/{hall.name}", reading(hall.boot, sequence, 99, -50))
            hall.sequence += 3
            last = hall.receive(0, 7, -50)
            fleet.transmissions[address(0), 7].origins.add(last)
            await fleet.until_confirmed()
            await until_received(program, fleet.confirmed_count)
            counters = await program.stop()
            found = {line.transmission: set(line.origins) for line in program.lines}
            expect(found, {key: each.origins for key, each in fleet.transmissions.items()}, "the observations")
            expect(len(program.lines), len(found), "the number of lines")
            expect(len({each["address"] for each in program.elections}), 20, "the number of elected gateways")
            for line in program.lines:
                strengths = [each["rssi"] for each in line.value["receivers"]]
                expect(strengths, sorted(strengths, reverse=True), "the order")
                assert line.value["connect"] in {name for name, _, _ in line.origins}, line
            expect((counters["duplicates"], counters["missing"], counters["late"]), (10, 3, 0), "the counters")


@test("fleet: what was confirmed is neither lost nor twice although the program is killed again and again", 120)
async def killed(world: World):
    (port,) = free_ports(1)
    async with Broker(world.directory, port, *UNBOUNDED) as broker:
        async with Fleet([port], gateways=5, tags=40, receivers=3) as fleet:
            async with consumer(world, broker, "--window", "300") as program:
                for value in range(6):
                    transmitting = asyncio.create_task(fleet.round(value, rate=200))
                    await asyncio.sleep(0.1 + 0.08 * value)
                    await program.kill()
                    # Messages wait at the broker meanwhile.
                    await transmitting
                    await program.start()
                await fleet.until_confirmed()
                wanted = set(fleet.transmissions)
                await until(lambda: wanted <= {line.transmission for line in program.lines}, "all transmissions", 30)
                counters = await program.stop()
                expect(counters["waiting"], 0, "the messages that wait")
                # Lines that were written just before a kill may come again, because their messages are finished after
                # that. If they were never finished, all lines of six rounds would come again.
                counts = collections.Counter(line.transmission for line in program.lines)
                repeated = [each for each, count in counts.items() if count > 1]
                assert len(repeated) <= 40, f"several lines for {len(repeated)} transmissions: {repeated[:5]}"
                expect(program.origins - fleet.origins, set(), "messages that nobody published")


@test("fleet: lines are published, and the gateway of a tag is replaced when it is offline, when it has no free connection, and when another one is stronger")
async def published(world: World):
    (port,) = free_ports(1)
    options = ("--window", "100", "--publish", "home")
    async with Broker(world.directory, port) as broker, Subscriber(broker) as subscriber:
        async with consumer(world, broker, *options) as program, Publisher(port, "gateways") as publisher:

            def publish(gateway: str, sequence: int, rssi: int):
                publisher.publish(f"ble/sensors/{address(1)}/{gateway}", reading("0000000a", sequence, sequence, rssi))

            # The first choice is that of the stronger one, whose message arrives later.
            publish("b", 1, -60)
            publish("a", 2, -50)
            await until(lambda: len(program.lines) == 2, "two observations")
            publisher.publish("ble/gateways/a/status", "offline")
            await until(lambda: len(program.elections) == 2, "another election")
            publish("c", 3, -43)
            await until(lambda: len(program.elections) == 3, "a third election")
            publish("b", 4, -60)
            await until(lambda: len(program.lines) == 4, "four observations")
            publisher.publish("ble/gateways/c/connections", '{"free": 0, "limit": 3}')
            await until(lambda: len(program.elections) == 4, "a fourth election")
            expect([each["connect"] for each in program.elections], ["a", "b", "c", "b"], "the gateways")
            expect([line.value["connect"] for line in program.lines], ["a", "a", "c", "c"], "the elected gateways")

            def messages(topic: str) -> list[dict | None]:
                # mosquitto_sub writes (null) for an empty message.
                found = [text for place, text in subscriber.messages if place == topic]
                return [None if text == "(null)" else json.loads(text) for text in found]

            await until(lambda: len(messages(f"home/fleet/sensors/{address(1)}")) == 4, "the observations")
            # A line is written first, and published afterwards.
            elections = f"home/fleet/gateways/{address(1)}"
            await until(lambda: len(messages(elections)) >= len(program.elections), "the elections at the broker")
            expect(messages(elections), program.elections, "the elections")
            expect(messages(f"home/fleet/sensors/{address(1)}"), [line.value for line in program.lines], "the lines")
            publisher.publish("ble/gateways/b/status", "offline")
            await until(lambda: messages(f"home/fleet/gateways/{address(1)}")[-1] is None, "the end of the election")
            expect((program.elections[-1]["connect"], program.elections[-1]["previous"]), (None, "b"), "the last election")
            # The broker has kept nothing.
            async with Subscriber(broker, "-i", "later") as later:
                # A message that it receives has followed the retained ones. One that is earlier than its subscription is lost.
                async with asyncio.timeout(20):
                    while ("ble/gateways/d/status", "online") not in later.messages:
                        publisher.publish("ble/gateways/d/status", "online")
                        await asyncio.sleep(0.1)
                expect([topic for topic, _ in later.messages if topic.startswith("home/")], [], "the retained messages")
            expect((await program.stop())["waiting"], 0, "the messages that wait")


@test("fleet: lines wait for a broker that is away, and follow when it is back")
async def broker_away(world: World):
    port, http = free_ports(2)
    options = ("--window", "5000", "--publish", "home", "--http", str(http))
    async with Broker(world.directory, port, *UNBOUNDED) as broker, Subscriber(broker) as subscriber:
        async with consumer(world, broker, *options) as program:
            async with Publisher(port, "a") as publisher:
                for number in range(1, 101):
                    publisher.publish(f"ble/sensors/{address(number)}/a", reading("0000000a", number, number, -50))
                await publisher.until_done()
            await until_received(program, 100)
            await broker.stop()
            await until(lambda: len(program.lines) == 100, "the lines")
            await program.kill()
            await broker.start()
            # What was not confirmed by the broker is written again by the next process.
            await program.start()
            topic = "home/fleet/sensors/"

            def numbers() -> set[int]:
                found = [json.loads(text) for place, text in subscriber.messages if place.startswith(topic)]
                return {each["readings"]["temperature"]["value"] for each in found}

            await until(lambda: numbers() == set(range(1, 101)), "the published lines", 30)
            expect((await program.stop())["waiting"], 0, "the messages that wait")


@test("fleet: a line that is too long for the broker is left out, and those after it are published", 120)
async def too_long(world: World):
    (port,) = free_ports(1)
    async with Broker(world.directory, port, "max_packet_size 2000") as broker, Subscriber(broker) as subscriber:
        async with consumer(world, broker, "--window", "2000", "--publish", "home") as program:
            async with Publisher(port, "gateways") as publisher:
                for number in range(20):
                    topic = f"ble/sensors/{address(1)}/gateway-{number}"
                    publisher.publish(topic, reading("0000000a", 1, 1, -50 - number))
                await until(lambda: program.lines, "the long line", 30)
                assert len(json.dumps(program.lines[0].value)) > 2000, program.lines[0]
                publisher.publish(f"ble/sensors/{address(2)}/a", reading("0000000a", 1, 2, -50))
                topic = f"home/fleet/sensors/{address(2)}"
                await until(lambda: any(place == topic for place, _ in subscriber.messages), "the next line", 60)
            expect(program.log.count("so the line is left out"), 1, "the number of errors")
            expect([place for place, _ in subscriber.messages if place.startswith("home/fleet/sensors/")], [topic], "the topics")
            expect((await program.stop())["waiting"], 0, "the messages that wait")


@test("fleet: malformed messages are counted, the metrics satisfy promtool, and a second program is refused")
async def observed(world: World):
    (port, http) = free_ports(2)
    promtool = shutil.which("promtool")
    assert promtool, "promtool is missing: run `.ci/setup prometheus`"
    async with Broker(world.directory, port) as broker, consumer(world, broker, "--http", str(http)) as program:
        payloads = ["", "{", "[]", "\x00", '{"time": "x"}', "x" * 16_385, '{"rssi": 1000}', "{" * 5000]
        async with Publisher(port, "a") as publisher:
            for payload in payloads:
                publisher.publish(f"ble/sensors/{address(1)}/a", payload)
            publisher.publish("ble/sensors/nonsense/a", "{}")
            publisher.publish(f"ble/sensors/{address(1)}/a", reading("0000000a", 1, 1, -50))
            await publisher.until_done()
        await until(lambda: program.lines, "the observation")

        def get(path: str) -> str:
            with urllib.request.urlopen(f"http://127.0.0.1:{http}{path}") as response:
                return response.read().decode()

        metrics = await asyncio.to_thread(get, "/metrics")
        assert f'\nble_gateway_fleet_messages_unused_total{{reason="malformed"}} {len(payloads)}\n' in metrics, metrics
        assert "\nble_gateway_fleet_messages_received_total 1\n" in metrics, metrics
        checked = await asyncio.to_thread(
            subprocess.run, [promtool, "check", "metrics"], input=metrics, capture_output=True, text=True
        )
        expect((checked.returncode, checked.stdout + checked.stderr), (0, ""), "promtool")
        expect(json.loads(await asyncio.to_thread(get, "/health")), {"status": "ok", "reasons": []}, "the health")
        expect(program.log.count("a message is not used"), 1, "the number of warnings")
        second = await run(
            world.gateway_binary, "fleet", "--mqtt", f"mqtt://127.0.0.1:{port}", "--state-dir",
            str(world.directory / "state"),
        )  # fmt: skip
        second.failed("another `ble-gateway fleet` uses this directory; stop it, or name another directory")
        (await run(world.gateway_binary, "fleet", "--state-dir", str(world.directory))).failed("there is no broker")
        await program.stop()


@test("fleet: messages that cannot be stored wait at the broker, and a reader that has gone ends the program", 120)
async def full_disk(world: World):
    (port,) = free_ports(1)
    async with Broker(world.directory, port, *UNBOUNDED) as broker:
        async with consumer(world, broker, "--window", "100") as program, Publisher(port, "a") as publisher:

            def publish(first: int, last: int):
                for number in range(first, last + 1):
                    publisher.publish(f"ble/sensors/{address(number)}/a", reading("0000000a", number, number, -50))

            limit = ["prlimit", "--pid", str(program.process.pid)]
            subprocess.run([*limit, "--fsize=20000:"], check=True)
            publish(1, 200)
            await until(lambda: "messages cannot be stored, and wait at the broker" in program.log, "the failure", 30)
            assert program.process.returncode is None, program.log
            subprocess.run([*limit, "--fsize=unlimited:"], check=True)
            await until(lambda: "messages are stored again" in program.log, "the end of the failure", 60)
            await until(lambda: len(program.lines) >= 200, "all observations", 30)
            expect(sorted(line.transmission[1] for line in program.lines), list(range(1, 201)), "the observations")
            expect((await program.stop())["waiting"], 0, "the messages that wait")
        # The reader of the lines goes.
        process = await asyncio.create_subprocess_exec(
            world.gateway_binary, "fleet", "--mqtt", f"mqtt://127.0.0.1:{port}", "--window", "100", "--state-dir",
            str(world.directory / "state"), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            env=environment(),
        )  # fmt: skip
        process._transport.get_pipe_transport(1).close()
        try:
            async with Publisher(port, "a") as publisher:
                publisher.publish(f"ble/sensors/{address(1)}/a", reading("0000000b", 1, 1, -50))
                async with asyncio.timeout(20):
                    status = await process.wait()
            errors = (await process.stderr.read()).decode()
            expect(status, 1, "the exit status")
            assert "standard output cannot be written: Broken pipe" in errors.splitlines()[-1], errors
        finally:
            if process.returncode is None:
                process.send_signal(signal.SIGKILL)
                await process.wait()
        # The line that could not be written is that of the next process.
        async with consumer(world, broker, "--window", "100") as program:
            await until(lambda: program.lines, "the observation")
            expect(program.lines[0].origins, [("a", "0000000b", 1)], "its messages")
            await program.stop()


@test("fleet: a subscription that the broker refuses is named in the log")
async def refused(world: World):
    connections = []

    async def accept(reader, writer):
        connections.append(writer)
        await reader.read(2048)
        writer.write(bytes.fromhex("20020000"))
        while data := await reader.read(2048):
            # Each subscription is one packet of less than 128 bytes; the first one is granted.
            while data:
                size = data[1] + 2
                if data[0] == 0x82:
                    writer.write(bytes([0x90, 3, data[2], data[3], 0x80 if b"/sensors/" in data[:size] else 1]))
                data = data[size:]

    (port,) = free_ports(1)
    server = await asyncio.start_server(accept, "127.0.0.1", port)
    async with Consumer(world.gateway_binary, port, world.directory) as program:
        expect(program.log.count("the broker refuses the subscription to"), 1, "the number of errors")
        assert "refuses the subscription to ble/sensors/+/+; allow this user to read" in program.log, program.log
        await program.stop()
    for writer in connections:
        writer.close()
    server.close()
