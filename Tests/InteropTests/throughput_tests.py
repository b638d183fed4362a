"""`ble throughput`: its service with Bumble, and both ends of it."""

import asyncio
import struct

from bumble.core import UUID

from channel_tests import connect
from harness import World, expect, test

FEW = ("LAIRD_BL654", "OURS")
CHARACTERISTIC = "7E1F8EA{}-2C3A-4217-819D-FEE8E5F84A3B"
SOURCE, SINK, STREAM, REPORT = (CHARACTERISTIC.format(digit) for digit in "9ABC")


@test("ble throughput serve: Bumble reads, writes, is counted, and is notified until it unsubscribes", presets=FEW)
async def served(world: World):
    arguments = ("serve", "--json", "--read-length", "7", "--notify-length", "11")
    async with world.start("throughput", *arguments) as process, world.central() as central:
        ready = await process.event("ready")
        link = await connect(central, ready["address"])
        await link.exchange_mtu(100)
        found = {
            each.uuid: each
            for service in await link.client.discover_services()
            for each in await link.client.discover_characteristics((), service)
        }
        source, sink, stream, report = (found[UUID(each)] for each in (SOURCE, SINK, STREAM, REPORT))
        expect(await link.client.read_value(source), bytes(range(7)), "what is read")

        async def writes() -> int:
            return struct.unpack("<4Q", await link.client.read_value(report))[0]

        before = await writes()
        await link.client.write_value(sink, b"asked", with_response=True)
        await link.client.write_value(sink, b"told", with_response=False)
        # A read can be answered before the command ahead of it is counted.
        async with asyncio.timeout(10):
            while await writes() - before < 2:
                pass
        expect(await writes() - before, 2, "writes")

        values = asyncio.Queue()
        await link.client.subscribe(stream, values.put_nowait)
        for _ in range(100):
            expect(await values.get(), bytes(range(11)), "what is notified")
        await link.client.unsubscribe(stream, values.put_nowait)
        # Bumble no longer calls the handler of the subscription. This one takes whatever is still notified.
        link.client.notification_subscribers.setdefault(stream.handle, set()).add(values.put_nowait)
        await writes()
        # Notifications that were on their way have arrived before the answer to a later request.
        await writes()
        while not values.empty():
            values.get_nowait()
        await writes()
        assert values.empty(), "notified without being subscribed"
        await link.disconnect()


@test("ble throughput measures itself, on the loop and on threads", presets=FEW)
async def measured(world: World):
    async with world.start("throughput", "serve", "--json") as process:
        ready = await process.event("ready")
        for place in ((), ("--on-threads",)):
            arguments = ("run", ready["address"], "--json", "--duration", "2", *place)
            rows = (await world.ble("throughput", *arguments)).succeeded().events
            operations = [row["operation"] for row in rows]
            expect(operations, ["read", "write", "write-without-response", "notify"], "operations")
            for row in rows:
                assert row["count"] > 0, f"nothing came: {row}"
                expect(row["p50"] is None, row["operation"] not in ("read", "write"), "quantiles")


@test("ble throughput reports that a peer has nothing to measure", presets=FEW)
async def nothing(world: World):
    async with world.central(), world.start("channel", "listen", "--output", "/dev/null") as process:
        ready = await process.event("ready")
        (await world.ble("throughput", "run", ready["address"])).failed("does not have the service that is measured")
