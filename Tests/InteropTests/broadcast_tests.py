"""Broadcast isochronous streams: `ble iso broadcast` sends a file to `ble iso receive` and to Bumble, which sends one back."""

import asyncio
import struct

from bumble.device import AdvertisingSet, BigParameters, BigSync, BigSyncParameters, BisLink

from harness import World, expect, test
from iso_tests import CONTENT, LENGTH, Receiver, ended, send
from periodic_tests import received, train_of

# rootcanal 1.13.0 has the features of broadcast isochronous groups, but answers LE Create BIG with Unknown Advertising
# Identifier for a set with a running train.
PRESETS = ("OURS",)
CODES = (None, "secret")


class RepeatedFile(Receiver):
    """The parts of a file that is repeated. A later round has the parts that were sent before Bumble receives the first."""

    def __init__(self, link: BisLink):
        super().__init__(link)
        self.complete = asyncio.Event()

    def take(self, packet):
        super().take(packet)
        if self.count.done() and len(self.parts) == self.count.result():
            self.complete.set()


def bumble_code(code: str | None) -> bytes | None:
    return code.encode().ljust(16, b"\0") if code else None


def options(code: str | None) -> tuple[str, ...]:
    return ("--code", code) if code else ()


@test("ble iso broadcast with two receivers of ble: the file arrives at both, with and without a code", PRESETS)
async def both(world: World):
    source = world.directory / "source"
    source.write_bytes(CONTENT)
    for code, interval in ((None, "10"), ("secret", "10"), (None, "10.884")):  # the last one in framed PDUs
        arguments = ("iso", "broadcast", str(source), "--interval", interval, *options(code))
        async with world.start(*arguments) as process:
            ready = await process.event("ready")
            expect(ready["isEncrypted"], code is not None, "whether the broadcast is encrypted")
            targets = [world.directory / name for name in ("first", "second")]
            arguments = [("iso", "receive", ready["address"], str(target), *options(code)) for target in targets]
            async with world.start(*arguments[0]) as first, world.start(*arguments[1]) as second:
                for receiving, target in zip((first, second), targets):
                    await ended(receiving, target, CONTENT)
            (await process.interrupt()).succeeded()


@test("ble iso receive reports a wrong broadcast code, and a missing one", PRESETS)
async def wrong_code(world: World):
    source, target = world.directory / "source", world.directory / "target"
    source.write_bytes(CONTENT)
    async with world.start("iso", "broadcast", str(source), "--code", "secret") as process:
        ready = await process.event("ready")
        (await world.ble("iso", "receive", ready["address"], str(target), "--code", "guess")).failed("code is wrong")
        (await world.ble("iso", "receive", ready["address"], str(target))).failed("encrypted")
        (await process.interrupt()).succeeded()


@test("Bumble receives a file from ble iso broadcast, with and without a code, and detects its end", PRESETS)
async def to_bumble(world: World):
    source = world.directory / "source"
    source.write_bytes(CONTENT)
    for code in CODES:
        async with world.central() as central, world.start("iso", "broadcast", str(source), *options(code)) as process:
            address = (await process.event("ready"))["address"]
            sid = await train_of(central, address)
            async with received(central, f"{address}/P", sid) as train:
                parameters = BigSyncParameters(big_sync_timeout=100, bis=[1], broadcast_code=bumble_code(code))
                sync = await central.device.create_big_sync(train.sync, parameters)
                lost = asyncio.Event()
                sync.on(BigSync.Event.TERMINATION, lambda reason: lost.set())
                receiver = RepeatedFile(sync.bis_links[0])
                await sync.bis_links[0].setup_data_path(BisLink.Direction.CONTROLLER_TO_HOST)
                async with asyncio.timeout(30):
                    await receiver.complete.wait()
                assert await receiver.content() == CONTENT, "what Bumble received is not what ble was given"
                (await process.interrupt()).succeeded()
                await asyncio.wait_for(lost.wait(), 20)


@test("ble iso receive gets a file from a broadcast of Bumble, with and without a code", PRESETS)
async def from_bumble(world: World):
    target = world.directory / "target"
    for code in CODES:
        async with world.peripheral() as peripheral:
            advertising: AdvertisingSet = await peripheral.advertise_periodically(b"", interval=50)
            parameters = BigParameters(
                num_bis=2,
                sdu_interval=10_000,
                max_sdu=LENGTH,
                max_transport_latency=40,
                rtn=2,
                broadcast_code=bumble_code(code),
            )
            big = await peripheral.device.create_big(advertising, parameters)
            link = big.bis_links[1]
            await link.setup_data_path(BisLink.Direction.HOST_TO_CONTROLLER)
            arguments = ("iso", "receive", peripheral.address, str(target), "--stream", "2", *options(code))
            async with world.start(*arguments) as process:
                await process.event("opened", deadline=20)
                sending = asyncio.ensure_future(send(link, CONTENT))
                try:
                    await ended(process, target, CONTENT)
                finally:
                    sending.cancel()
            await big.terminate()
