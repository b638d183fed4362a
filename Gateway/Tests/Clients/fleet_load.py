#!/usr/bin/env python3
"""A fleet of 50 simulated gateways and 2,000 tags, whose broker and consumer fail under load.

    fleet [mosquitto] [nats] [cost]        all, or only some

- mosquitto: one broker, which is stopped and started. `ble-gateway fleet` is killed and started.
- nats: three clustered nodes of nats-server with JetStream and MQTT. One that the consumer does not use is killed and
  started, then `ble-gateway fleet`, then the node that it uses.
- cost: CPU time per message and resident memory of `ble-gateway fleet` for 5, 10, 25 and 50 gateways, and the CPU time
  of messages that have waited at the broker.

Every message that the broker has confirmed to its gateway must be in one line, or counted as late.
"""

import argparse
import asyncio
import collections
import contextlib
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(1, str(ROOT / "Tests/InteropTests"))

from controllers import free_ports  # noqa: E402
from fleet import Consumer, Fleet  # noqa: E402
from fleet_brokers import Mosquitto, NatsCluster  # noqa: E402

WINDOW = 2.0
# How long ended windows are remembered; see Docs/Gateway.md.
MEMORY = 30.0
# How long the consumer may take for the messages that have waited, in seconds.
LIMIT = 600.0


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", default=["mosquitto", "nats", "cost"])
    parser.add_argument("--gateways", type=int, default=50)
    parser.add_argument("--tags", type=int, default=2000)
    parser.add_argument("--receivers", type=int, default=5, help="how many gateways receive each tag")
    parser.add_argument("--rounds", type=int, default=6, help="how often each tag transmits")
    parser.add_argument("--rate", type=float, default=1000, help="messages in a second")
    parser.add_argument("--seconds", type=float, default=20, help="how long each cost is measured")
    parser.add_argument("--keep", type=Path, help="where logs are left")
    return parser.parse_args()


def binary() -> Path:
    named = os.environ.get("BLE_GATEWAY")
    builds = [ROOT / f"Gateway/.build/{kind}/ble-gateway" for kind in ("release", "debug")]
    candidates = [Path(named)] if named else builds
    for candidate in candidates:
        if os.access(candidate, os.X_OK):
            return candidate.resolve()
    sys.exit(f"fleet: no ble-gateway at {' or '.join(map(str, candidates))}: build it, or name one in BLE_GATEWAY")


async def until_quiet(consumer: Consumer, fleet: Fleet):
    """Waits until all transmissions have a line, or until no line has come for some time."""
    while set(fleet.transmissions) - {line.transmission for line in consumer.lines}:
        consumer.check_running()
        count = len(consumer.lines)
        await asyncio.sleep(45)
        if len(consumer.lines) == count:
            break
    # Late messages, and repetitions, may follow.
    await asyncio.sleep(MEMORY + 5)


def check(consumer: Consumer, fleet: Fleet, late: int) -> list[str]:
    """What is wrong with the lines."""
    problems = []
    published, found = fleet.origins, consumer.origins
    lost = set(fleet.transmissions) - {line.transmission for line in consumer.lines}
    if lost:
        problems.append(f"{len(lost)} transmissions have no line, for example {sorted(lost)[:3]}")
    if unknown := found - published:
        problems.append(f"{len(unknown)} messages were not published, for example {sorted(unknown)[:3]}")
    missing = published - found
    if len(missing) > late:
        problems.append(f"{len(missing)} messages are in no line, but only {late} were late")
    times = collections.defaultdict(list)
    for line in consumer.lines:
        times[line.transmission].append(line.time)
    repeated = {key: each for key, each in times.items() if len(each) > 1}
    early = {key: each for key, each in repeated.items() if min(b - a for a, b in zip(each, each[1:])) < MEMORY}
    print(
        f"  {len(published)} messages, all confirmed; {len(consumer.lines)} lines for {len(fleet.transmissions)}"
        f" transmissions; {len(missing)} messages in no line, {late} late;"
        f" {len(consumer.repeated)} messages in several lines; {len(repeated)} transmissions with several lines,"
        f" {len(early)} of them within {MEMORY:g} s"
    )
    if early:
        problems.append(f"{len(early)} transmissions have lines within {MEMORY:g} s: {list(early.items())[:3]}")
    if consumer.repeated:
        problems.append(f"{len(consumer.repeated)} messages are in several lines")
    return problems


async def with_faults(name: str, broker, options, directory: Path, faults: list) -> list[str]:
    """Runs the rounds, each with a fault while the tags transmit."""
    print(f"{name}: {options.gateways} gateways, {options.tags} tags, {options.receivers} receivers of each tag")
    async with broker, contextlib.AsyncExitStack() as stack:
        settings = ("--window", str(round(WINDOW * 1000)), "--http", str(free_ports(1)[0]))
        consumer = await stack.enter_async_context(Consumer(binary(), broker.ports[0], directory, *settings))
        fleet = await stack.enter_async_context(
            Fleet(broker.ports, options.gateways, options.tags, options.receivers)
        )
        duration = options.tags * options.receivers / options.rate
        start = time.monotonic()
        for value in range(options.rounds):
            transmitting = asyncio.create_task(fleet.round(value, options.rate))
            await asyncio.sleep(duration / 3)
            if value < len(faults) and faults[value]:
                print(f"  {time.monotonic() - start:5.1f} s: {faults[value].__doc__}", flush=True)
                await faults[value](broker, consumer)
            await transmitting
        await fleet.until_confirmed()
        print(f"  {time.monotonic() - start:5.1f} s: the broker has confirmed {fleet.confirmed_count} messages")
        connects = sum(gateway.publisher.connect_count for gateway in fleet.gateways)
        await until_quiet(consumer, fleet)
        counters = await consumer.stop()
        print(f"  {connects} connections of gateways; the last counters: {counters}")
        late = consumer.late_count + counters["late"]
        return [f"{name}: {each}" for each in check(consumer, fleet, late)]


async def kill_consumer(broker, consumer):
    """`ble-gateway fleet` is killed, and started after 3 seconds"""
    await consumer.kill()
    await asyncio.sleep(3)
    await consumer.start()


async def restart_broker(broker, consumer):
    """the broker is stopped, and started after 5 seconds"""
    await broker.stop()
    await asyncio.sleep(5)
    await broker.start()


async def kill_other_node(broker, consumer):
    """a node that the consumer does not use is killed, and started after 8 seconds"""
    await broker.kill(1)
    await asyncio.sleep(8)
    await broker.start_node(1)


async def kill_own_node(broker, consumer):
    """the node that the consumer uses is killed, and started after 8 seconds"""
    await broker.kill(0)
    await asyncio.sleep(8)
    await broker.start_node(0)


async def nothing(broker, consumer):
    """no fault"""


async def cost(options, directory: Path):
    """Measures the program with fleets of several sizes, at the same number of messages of each gateway."""
    each_gateway = options.rate / options.gateways
    print(f"cost: {options.tags} tags, {each_gateway:g} messages in a second of each gateway, {binary()}")
    print("| gateways | messages in a second | CPU per message | of a core | resident memory |\n|---|---|---|---|---|")
    for count in (5, 10, 25, 50):
        place = directory / f"cost-{count}"
        place.mkdir()
        async with Mosquitto(place) as broker, Consumer(binary(), broker.ports[0], place) as consumer:
            async with Fleet(broker.ports, count, options.tags, min(options.receivers, count)) as fleet:
                rate = each_gateway * count
                samples = []
                transmitting = asyncio.create_task(transmit_forever(fleet, rate))
                # Windows, journal and memory have their usual size after the time that ended windows are remembered.
                await asyncio.sleep(MEMORY + WINDOW + 3)
                for _ in range(3):
                    before, start, messages = cpu(consumer), time.monotonic(), fleet.confirmed_count
                    await asyncio.sleep(options.seconds / 3)
                    spent, elapsed = cpu(consumer) - before, time.monotonic() - start
                    samples.append((spent / (fleet.confirmed_count - messages), spent / elapsed, resident(consumer),
                                    (fleet.confirmed_count - messages) / elapsed))  # fmt: skip
                transmitting.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await transmitting
                each, share, memory, actual = (statistics.median(values) for values in zip(*samples))
                print(f"| {count} | {actual:.0f} | {each * 1e6:.0f} µs | {share:.1%} | {memory:.1f} MiB |", flush=True)
                await fleet.until_confirmed()
                await consumer.stop()


async def catch_up(options, directory: Path):
    """Measures the program with messages that have waited at the broker, which it takes one after the other."""
    async with Mosquitto(directory) as broker:
        consumer = Consumer(binary(), broker.ports[0], directory)
        await consumer.start()
        await consumer.stop()
        async with Fleet(broker.ports, options.gateways, options.tags, options.receivers) as fleet:
            for value in range(options.rounds):
                await fleet.round(value, 20 * options.rate)
            await fleet.until_confirmed()
        async with consumer:
            start = time.monotonic()
            while len(consumer.lines) < len(fleet.transmissions):
                consumer.check_running()
                assert time.monotonic() - start < LIMIT, f"only {len(consumer.lines)} lines within {LIMIT:g} s"
                await asyncio.sleep(0.05)
            each, elapsed = cpu(consumer) / fleet.confirmed_count, time.monotonic() - start - WINDOW
            print(f"{fleet.confirmed_count} messages that have waited: {each * 1e6:.0f} µs of CPU per message, with the"
                  f" start of the program; {fleet.confirmed_count / elapsed:.0f} messages in a second")  # fmt: skip
            await consumer.stop()


async def transmit_forever(fleet: Fleet, rate: float):
    value = 0
    while True:
        await fleet.round(value, rate)
        value += 1


def cpu(consumer: Consumer) -> float:
    """The CPU time of all threads in seconds, in user and kernel mode: fields 14 and 15 of /proc/PID/stat."""
    fields = Path(f"/proc/{consumer.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident(consumer: Consumer) -> float:
    """The resident memory in MiB: field 24 of /proc/PID/stat."""
    fields = Path(f"/proc/{consumer.process.pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[21]) * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


async def main() -> int:
    options = arguments()
    problems: list[str] = []
    with contextlib.ExitStack() as stack:
        base = options.keep or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for part in options.parts:
            directory = base / part
            directory.mkdir(parents=True)
            if part == "mosquitto":
                faults = [nothing, restart_broker, nothing, kill_consumer]
                problems += await with_faults(part, Mosquitto(directory), options, directory, faults)
            elif part == "nats":
                faults = [nothing, kill_other_node, kill_consumer, kill_own_node]
                problems += await with_faults(part, NatsCluster(directory), options, directory, faults)
            elif part == "cost":
                await cost(options, directory)
                await catch_up(options, directory)
            else:
                sys.exit(f"fleet: there is no part {part}")
    for problem in problems:
        print(f"FAILED: {problem}")
    print("failed" if problems else "passed")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
