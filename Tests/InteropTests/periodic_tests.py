"""Periodic advertising: `ble sync` receives trains of Bumble, and Bumble those of `ble serve`."""

import asyncio
import contextlib

from bumble.device import PeriodicAdvertisingSync
from bumble.hci import Address

import profiles
from bumble_central import Central
from harness import ServedPeer, World, expect, test

# rootcanal 1.10.0 reports trains only while the host scans.
PRESETS = ("OURS", "NEWER")
INTERVAL = 20
# The longest data that each kind of controller takes, a multiple of ten.
LONGEST = {"OURS": 1650, "NEWER": 510}


def structures(length: int, mark: int) -> bytes:
    """AD structures of a total length, which is a multiple of ten, with a mark and their numbers."""
    return b"".join(
        bytes([9, 0xFF, 0xFF, 0xFF, mark, *index.to_bytes(2, "big"), 1, 2, 3]) for index in range(length // 10)
    )


async def data_of(process, data: bytes):
    """Waits until `ble sync` reports the data, and nothing but whole data before."""
    while True:
        event = await process.event("periodicAdvertisement")
        assert not event["truncated"], f"{len(event['data']) // 2} bytes, and more is missing"
        if bytes.fromhex(event["data"]) == data:
            return


@test("ble sync receives a train of Bumble in fragments, follows its data, reports its end and finds it again", PRESETS)
async def bumble_train(world: World):
    for number, length in enumerate((0, 300, LONGEST[world.preset.name])):
        async with world.peripheral() as peripheral:
            first = structures(length, 1)
            advertising = await peripheral.advertise_periodically(first, sid=number + 3, interval=INTERVAL)
            async with world.start("sync", peripheral.address, "--lost-after", "1") as process:
                event = await process.event("synchronized")
                expect((event["sid"], event["intervalMilliseconds"]), (number + 3, INTERVAL), "set and interval")
                expect((event["address"], event["phy"]), (peripheral.address, "LE 1M"), "address and PHY")
                await data_of(process, first)
                # A running train takes data in one command only (Vol 4, Part E, 7.8.62).
                for mark in (2, 3):
                    await advertising.set_periodic_advertising_data(structures(20 * mark, mark))
                    await data_of(process, structures(20 * mark, mark))
                await advertising.stop_periodic()
                await process.event("lost")
                await advertising.start_periodic()
                await process.event("synchronized")
                await data_of(process, structures(60, 3))
                (await process.interrupt()).succeeded()


@test("ble sync ends after the wanted number of events, and reports a train that is not there", PRESETS)
async def limits(world: World):
    async with world.peripheral() as peripheral:
        await peripheral.advertise_periodically(structures(20, 1), sid=7, interval=INTERVAL)
        outcome = (await world.ble("sync", peripheral.address, "--sid", "7", "--count", "3")).succeeded()
        kinds = [event["event"] for event in outcome.events]
        expect(kinds, ["synchronized", *["periodicAdvertisement"] * 3], "events")
        outcome = await world.ble("sync", peripheral.address, "--sid", "8", timeout=1)
        outcome.failed(peripheral.address)


class Received:
    """A train that Bumble receives."""

    def __init__(self, sync: PeriodicAdvertisingSync):
        self.sync = sync
        self.reports: asyncio.Queue = asyncio.Queue()
        self.lost = asyncio.Event()
        sync.on(PeriodicAdvertisingSync.EVENT_PERIODIC_ADVERTISEMENT, self.reports.put_nowait)
        sync.on(PeriodicAdvertisingSync.EVENT_LOSS, self.lost.set)

    async def data(self, data: bytes):
        """Waits until the train has the data, and only whole data before."""
        while True:
            report = await self.reports.get()
            assert not report.is_truncated, f"{len(report.data_bytes)} bytes, and more is missing"
            if report.data_bytes == data:
                return


@contextlib.asynccontextmanager
async def received(central: Central, address: str, sid: int):
    """A train that Bumble has found, while the context is entered."""
    async with central.scan():
        sync = await central.device.create_periodic_advertising_sync(Address(address), sid=sid, sync_timeout=1)
        train = Received(sync)
        established = asyncio.Event()
        sync.on(PeriodicAdvertisingSync.EVENT_ESTABLISHMENT, established.set)
        if sync.state != PeriodicAdvertisingSync.State.ESTABLISHED:
            await established.wait()
    try:
        yield train
    finally:
        # Bumble keeps a lost train, and confuses it with the next one of the same handle.
        if train.lost.is_set():
            central.device.periodic_advertising_syncs.remove(sync)
        else:
            await sync.terminate()


def profile(data: bytes) -> dict:
    """A profile with a train."""
    profile = profiles.profile()
    profile["advertise"]["periodic"] = {"interval": INTERVAL, "data": data.hex()}
    return profile


async def train_of(central: Central, address: str) -> int:
    """Finds the advertising set that announces the train of `ble serve`: it accepts no connections."""
    return (await central.find(address, accept=lambda each: not each.is_connectable)).sid


@test("Bumble receives a train of ble serve in fragments, its changes of data, and detects its end", PRESETS)
async def served_train(world: World):
    for length in (0, 300, LONGEST[world.preset.name]):
        first = structures(length, 1)
        async with world.central() as central, ServedPeer(world, profile(first)) as peer:
            sid = await train_of(central, peer.address)
            async with received(central, peer.address, sid) as train:
                expect(train.sync.periodic_advertising_interval, INTERVAL, "the interval")
                await train.data(first)
                for mark in (2, 3):
                    peer.process.send(f"train {structures(20 * mark, mark).hex()}")
                    await train.data(structures(20 * mark, mark))
                # Data of several commands ends the train, and begins another one. rootcanal takes it for the same.
                peer.process.send(f"train {structures(400, 4).hex()}")
                if world.preset.name == "NEWER":
                    await train.data(structures(400, 4))
                else:
                    await train.lost.wait()
            async with received(central, peer.address, sid) as train:
                await train.data(structures(400, 4))
                peer.process.send("quit")
                await train.lost.wait()
                (await peer.process.ended()).succeeded()
