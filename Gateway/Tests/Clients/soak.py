"""A long run: 20 links with notifications, and 1,000 advertisements a second. Nothing is lost or out of order, and the
memory of the gateway stays flat."""

import asyncio
import contextlib
import os
import time
from pathlib import Path

import bumble_peripheral as bumble
from api_tests import Advertisements, advertise_value, values
from connection_tests import Link
from harness import Gateway, World, expect

LINKS = 20
# Each advertiser sends an advertisement every 20 ms and at most 10 ms more: almost 40 a second.
ADVERTISERS = 28
# How much the resident memory may grow after the first fifth of the run, in KiB.
GREATEST_GROWTH = 2048


class Meter:
    """The resources of a process."""

    def __init__(self, identifier: int):
        self.directory = Path(f"/proc/{identifier}")

    @property
    def resident(self) -> int:
        """Resident memory in KiB."""
        lines = (self.directory / "status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))

    @property
    def descriptors(self) -> int:
        return len(os.listdir(self.directory / "fd"))

    @property
    def processor_time(self) -> float:
        """Seconds of CPU time."""
        fields = (self.directory / "stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def soak(world: World, minutes: float):
    """Runs for a number of minutes and prints a line for each."""
    async with contextlib.AsyncExitStack() as stack:
        gateway = await stack.enter_async_context(world.gateway("--connection-limit", str(LINKS), "--log-level", "info"))
        client = await stack.enter_async_context(gateway.connected())
        peers = [await stack.enter_async_context(peripheral(world, 3, index)) for index in range(LINKS)]
        sensors = [await stack.enter_async_context(peripheral(world, 4, index)) for index in range(ADVERTISERS)]
        await asyncio.gather(*(peer.advertise() for peer in peers))
        streams = []
        for peer in peers:
            link = await stack.enter_async_context(Link(client, peer.address))
            await link.discover()
            streams.append((peer, link, await link.subscribe(bumble.NOTIFY)))
            await peer.subscriptions.get()
        found = Advertisements(client)
        await run(world, gateway, streams, sensors, found, minutes)


def peripheral(world: World, group: int, index: int):
    return world.peripheral(name=f"Device {index}", address=f"F0:{group:02X}:00:00:00:{index:02X}")


async def run(world: World, gateway: Gateway, streams, sensors, found: Advertisements, minutes: float):
    meter = Meter(gateway.process.pid)
    started, processor_time = time.monotonic(), meter.processor_time
    samples: list[tuple[float, int]] = []
    total, round_number, latest = 0, 0, {}
    next_report = started + 60
    while (now := time.monotonic()) < started + minutes * 60:
        round_number += 1
        await asyncio.gather(*(advertise_value(sensor, round_number) for sensor in sensors))
        await asyncio.gather(*(notify(*stream, round_number) for stream in streams))
        for sensor in sensors:
            for value in values(found, sensor.address):
                if value < latest.get(sensor.address, 0):
                    raise AssertionError(f"{sensor.address}: {value} after {latest[sensor.address]}")
                latest[sensor.address] = value
        total += len(found.received)
        found.received.clear()
        found.batches.clear()
        samples.append((now - started, meter.resident))
        if now >= next_report:
            next_report += 60
            used = 100 * (meter.processor_time - processor_time) / (now - started)
            print(
                f"{(now - started) / 60:5.0f} min  {meter.resident / 1024:6.1f} MiB  {used:5.1f} % CPU  "
                f"{total / (now - started):6.0f} advertisements/s  {meter.descriptors} descriptors",
                flush=True,
            )
        # Rounds are a second apart, so that each value is advertised many times.
        await asyncio.sleep(max(0, 1 - (time.monotonic() - now)))
    duration = time.monotonic() - started
    settled = [resident for age, resident in samples if age > duration / 5]
    growth = max(settled[len(settled) // 2 :]) - max(settled[: len(settled) // 2])
    rate = total / duration
    used = 1e6 * (meter.processor_time - processor_time) / max(total, 1)
    (status,) = (await gateway.status())["clients"]
    print(
        f"{total} advertisements, {rate:.0f} a second, {used:.1f} us of CPU each with everything; "
        f"{round_number * len(streams)} notifications; memory {settled[0] / 1024:.1f} to {settled[-1] / 1024:.1f} MiB; "
        f"{status['droppedAdvertisementCount']} dropped",
        flush=True,
    )
    expect(status["droppedAdvertisementCount"], 0, "the dropped advertisements")
    missing = [sensor.address for sensor in sensors if latest.get(sensor.address, 0) < round_number - 1]
    expect(missing, [], "the sensors whose last values did not arrive")
    assert growth <= GREATEST_GROWTH, f"the memory has grown by {growth} KiB"
    assert rate >= 1000, f"only {rate:.0f} advertisements a second arrived"


async def notify(peer, link: Link, received: asyncio.Queue, value: int):
    """Sends a notification and waits for it. It must be the next one."""
    assert link.is_connected, f"the connection to {peer.name} has ended"
    sent = value.to_bytes(4, "big")
    await peer.notify_all(bumble.NOTIFY, [sent])
    async with asyncio.timeout(30):
        expect(await received.get(), sent, f"the notification of {peer.name}")
