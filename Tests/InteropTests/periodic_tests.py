"""Periodic advertising: `ble sync` receives trains of Bumble, and Bumble those of `ble serve`. Trains are found, or
their synchronizations are transferred over a connection. `ble advertise` and `ble sync` exchange responses."""

import asyncio
import contextlib

from bumble.device import PeriodicAdvertisingSync
from bumble.hci import Address, HCI_LE_Set_Default_Periodic_Advertising_Sync_Transfer_Parameters_Command

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


@test("ble sync searches for the trains of three devices at the same time, and receives them", PRESETS)
async def several_trains(world: World):
    async with contextlib.AsyncExitStack() as stack:
        addresses, trains = [], []
        for number in range(1, 4):
            host = world.peripheral(name=f"Sender {number}", address=f"F0:00:00:00:00:{number:02}")
            peripheral = await stack.enter_async_context(host)
            addresses.append(peripheral.address)
            data = structures(20, number)
            trains.append(await peripheral.advertise_periodically(data, sid=number, interval=INTERVAL))
        async with world.start("sync", *addresses, "--lost-after", "1") as process:
            found = [await process.event("synchronized") for _ in range(3)]
            expect(sorted((each["address"], each["sid"]) for each in found), list(zip(addresses, (1, 2, 3))), "trains")
            for number in range(1, 4):
                await data_of(process, structures(20, number))
            # Two are lost and searched for again, while the third is received.
            for train in trains[:2]:
                await train.stop_periodic()
            for _ in range(2):
                await process.event("lost")
            for train in trains[:2]:
                await train.start_periodic()
            for _ in range(2):
                await process.event("synchronized")
            for number in range(1, 4):
                await data_of(process, structures(20, number))
            (await process.interrupt()).succeeded()


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


# Transfers


async def accept_transfers(host):
    """Has Bumble's controller accept the synchronizations that peers transfer on later connections."""
    await host.device.send_sync_command(
        HCI_LE_Set_Default_Periodic_Advertising_Sync_Transfer_Parameters_Command(
            mode=2, skip=0, sync_timeout=100, cte_type=0
        )
    )


def transfers(host) -> asyncio.Queue:
    """The trains that Bumble gets from its peers."""
    queue: asyncio.Queue = asyncio.Queue()
    host.device.on(
        host.device.EVENT_PERIODIC_ADVERTISING_SYNC_TRANSFER,
        lambda sync, _: queue.put_nowait(Received(sync)),
    )
    return queue


@test("ble serve transfers its train, and Bumble receives it without a scan", PRESETS)
async def served_transfer(world: World):
    async with world.central() as central, ServedPeer(world, profile(structures(300, 1))) as peer:
        await accept_transfers(central)
        queue = transfers(central)
        link = await central.connect(peer.address)
        await peer.process.event("connected")
        peer.process.send("transfer 4660")
        event = await peer.process.event("transferred")
        expect(event["serviceData"], 4660, "the service data that ble tells")
        train = await queue.get()
        expect(str(train.sync.advertiser_address).split("/")[0], peer.address, "the address")
        await train.data(structures(300, 1))
        await link.disconnect()
        # The train does not depend on the connection.
        peer.process.send(f"train {structures(40, 2).hex()}")
        await train.data(structures(40, 2))


@test("Bumble transfers its train, and ble sync receives it without a scan until it is lost", PRESETS)
async def bumble_transfer(world: World):
    async with world.peripheral() as peripheral:
        advertising = await peripheral.advertise_periodically(structures(300, 1), sid=6, interval=INTERVAL)
        await peripheral.advertise()
        async with world.start("sync", peripheral.address, "--transferred", "--lost-after", "1") as process:
            connection = await peripheral.connections.get()
            await process.event("ready")
            # A controller transfers nothing before the peer's features are known (Vol 4, Part E, 7.8.89).
            await peripheral.device.get_remote_le_features(connection)
            await advertising.transfer_periodic_info(connection, 0x1234)
            event = await process.event("transferReceived")
            expect(
                (event["from"], event["serviceData"], event["address"], event["sid"], event["intervalMilliseconds"]),
                (peripheral.address, 0x1234, peripheral.address, 6, INTERVAL),
                "the transfer",
            )
            await data_of(process, structures(300, 1))
            await advertising.stop_periodic()
            await process.event("lost")
            await advertising.start_periodic()
            await advertising.transfer_periodic_info(connection, 1)
            await process.event("transferReceived", serviceData=1)
            await data_of(process, structures(300, 1))
            (await process.interrupt()).succeeded()


@test("ble sync transfers the train of a third device to Bumble, which receives it without a scan", PRESETS)
async def transferred_on(world: World):
    async with (
        world.peripheral(name="Sender", address="F0:00:00:00:00:01") as sender,
        world.peripheral(name="Receiver", address="F0:00:00:00:00:02") as receiver,
    ):
        await accept_transfers(receiver)
        queue = transfers(receiver)
        await sender.advertise_periodically(structures(200, 3), sid=4, interval=INTERVAL)
        await receiver.advertise()
        arguments = ("sync", sender.address, "--transfer-to", receiver.address, "--service-data", "65535")
        async with world.start(*arguments) as process:
            await process.event("synchronized")
            event = await process.event("transferred")
            expect((event["to"], event["serviceData"]), (receiver.address, 65535), "the transfer")
            train = await queue.get()
            expect(str(train.sync.advertiser_address).split("/")[0], sender.address, "the address")
            expect(train.sync.sid, 4, "the advertising set")
            await train.data(structures(200, 3))
            (await process.interrupt()).succeeded()


@test("Bumble transfers the train of a third device, and ble sync receives it without a scan", PRESETS)
async def bumble_transferred_on(world: World):
    async with (
        world.peripheral(name="Sender", address="F0:00:00:00:00:01") as sender,
        world.peripheral(name="Forwarder", address="F0:00:00:00:00:02") as forwarder,
    ):
        await sender.advertise_periodically(structures(200, 3), sid=4, interval=INTERVAL)
        await forwarder.advertise()
        async with world.start("sync", forwarder.address, "--transferred", "--count", "5") as process:
            connection = await forwarder.connections.get()
            await process.event("ready")
            await forwarder.device.get_remote_le_features(connection)
            await forwarder.device.start_scanning(active=False)
            sync = await forwarder.device.create_periodic_advertising_sync(Address(sender.address), sid=4)
            while sync.state != PeriodicAdvertisingSync.State.ESTABLISHED:
                changed = asyncio.Event()
                sync.once(PeriodicAdvertisingSync.EVENT_STATE_CHANGE, changed.set)
                await changed.wait()
            await sync.transfer(connection, 9)
            event = await process.event("transferReceived")
            expect(
                (event["from"], event["address"], event["sid"], event["serviceData"]),
                (forwarder.address, sender.address, 4, 9),
                "the transfer",
            )
            (await process.ended()).succeeded()


@test("ble advertise sends subevents, and each ble sync answers its own in a response slot", ("OURS",))
async def subevents(world: World):
    data = ("05FFFFFF0102", "05FFFFFF0304")
    slots = ("--subevents", "2", "--response-slots", "3", "--subevent-data", data[0], "--subevent-data", data[1])
    async with contextlib.AsyncExitStack() as stack:
        advertiser = await stack.enter_async_context(world.start("advertise", *slots, "--include-tx-power"))
        address = (await advertiser.event("ready"))["address"]
        responders, responses = [], {(0, 2): "05ffffff0a00", (1, 0): "05ffffff0a01"}
        for (subevent, slot), response in responses.items():
            options = ("--subevent", str(subevent), "--respond", f"{slot}:{response}")
            responders.append(await stack.enter_async_context(world.start("sync", address, *options)))
        for subevent, responder in enumerate(responders):
            expect((await responder.event("synchronized"))["subevents"], 2, "number of subevents")
            event = await responder.event("periodicAdvertisement")
            expect((event["subevent"], event["data"].upper()), (subevent, data[subevent]), "subevent and data")
        missing = set(responses)
        while missing:
            event = await advertiser.event("response")
            if event["outcome"] == "received":
                place = (event["subevent"], event["slot"])
                expect(event["data"], responses.get(place), f"the response in subevent and slot {place}")
                missing.discard(place)
        for process in (*responders, advertiser):
            (await process.interrupt()).succeeded()
