"""L2CAP credit-based channels: `ble channel` against Bumble, which opens and accepts them, with a megabyte each way."""

import asyncio
import dataclasses
from pathlib import Path

from bumble.l2cap import L2capError, LeCreditBasedChannelSpec

import profiles
from bumble_central import Central
from harness import BumblePeer, World, expect, test

PSM = 0x0080
MEGABYTE = 1 << 20
DEADLINE = 150


@dataclasses.dataclass(frozen=True)
class Shape:
    """The lengths of a channel: those of `ble channel`, as arguments, and those of Bumble."""

    name: str
    ours: tuple[str, ...] = ()
    theirs: dict = dataclasses.field(default_factory=dict)
    presets: tuple[str, ...] = ("DEFAULT", "LAIRD_BL654", "INTEL_BE200", "LEGACY", "OURS")

    @property
    def specification(self) -> LeCreditBasedChannelSpec:
        return LeCreditBasedChannelSpec(psm=PSM, **self.theirs)


# Our own virtual air is as slow as a real one: it transfers a megabyte in half a minute.
ONE = ("LAIRD_BL654",)
FEW = ("LAIRD_BL654", "OURS")
SHAPES = (
    Shape("as they are by default"),
    Shape("in short K-frames", ("--mtu", "300", "--mps", "64"), {"mtu": 300, "mps": 64}, ONE),
    Shape("in long K-frames", ("--mtu", "65535", "--mps", "4096"), {"mtu": 65535, "mps": 4096, "max_credits": 32}, ONE),
    Shape(
        "with hardly any credits",
        ("--mtu", "500", "--buffer", "0"),
        {"mtu": 500, "mps": 247, "max_credits": 1},
        ONE,
    ),
)


def octets(count: int, salt: int) -> bytes:
    """Bytes that depend on their position."""
    return b"".join((index ^ salt << 24).to_bytes(4, "little") for index in range(count // 4))


class End:
    """Bumble's end of a channel, which stores the received bytes."""

    def __init__(self, channel):
        self.channel = channel
        self.received = bytearray()
        self.arrived = asyncio.Condition()
        self.closed = asyncio.Event()
        channel.sink = self.take
        channel.on(channel.EVENT_CLOSE, self.closed.set)

    def take(self, data: bytes):
        self.received += data
        asyncio.ensure_future(self.tell())

    async def tell(self):
        async with self.arrived:
            self.arrived.notify_all()

    async def wait_for(self, count: int):
        async with self.arrived:
            await self.arrived.wait_for(lambda: len(self.received) >= count)

    async def send(self, data: bytes):
        self.channel.write(data)
        await self.channel.drain()


async def exchange(process, end: End, written: Path, ours: bytes, theirs: bytes):
    """Checks that a megabyte arrives on both sides. Then Bumble closes the channel."""
    await asyncio.gather(end.send(theirs), end.wait_for(len(ours)))
    assert bytes(end.received) == ours, "what Bumble received is not what ble was given"
    await end.channel.disconnect()
    closed = await process.event("closed", deadline=20)
    expect((closed["sent"], closed["received"]), (len(ours), len(theirs)), "bytes sent and received")
    (await process.ended()).succeeded()
    assert written.read_bytes() == theirs, "what ble wrote is not what Bumble has sent"


def register(shape: Shape):
    @test(f"ble channel open and Bumble exchange a megabyte, {shape.name}", presets=shape.presets, deadline=DEADLINE)
    async def opened(world: World):
        ours, theirs = octets(MEGABYTE, 1), octets(MEGABYTE, 2)
        source, target = world.directory / "source", world.directory / "target"
        source.write_bytes(ours)
        async with BumblePeer(world) as peer:
            ends: asyncio.Queue = asyncio.Queue()
            peer.peripheral.device.create_l2cap_server(
                shape.specification, lambda channel: ends.put_nowait(End(channel))
            )
            arguments = ("--input", str(source), "--output", str(target), *shape.ours)
            async with world.start("channel", "open", peer.address, str(PSM), *arguments) as process:
                await process.event("opened", deadline=20)
                await exchange(process, await ends.get(), target, ours, theirs)

    @test(f"ble channel listen and Bumble exchange a megabyte, {shape.name}", presets=shape.presets, deadline=DEADLINE)
    async def listened(world: World):
        ours, theirs = octets(MEGABYTE, 3), octets(MEGABYTE, 4)
        target = world.directory / "target"
        arguments = ("--psm", str(PSM), "--output", str(target), *shape.ours)
        async with world.start("channel", "listen", *arguments) as process, world.central() as central:
            ready = await process.event("ready")
            expect(ready["psm"], PSM, "PSM")
            link = await connect(central, ready["address"])
            end = End(await link.connection.create_l2cap_channel(shape.specification))
            await process.event("opened", deadline=20)
            # Not earlier, because Bumble drops data that arrives before the channel has a receiver.
            process.process.stdin.write(ours)
            await process.close_input()
            await exchange(process, end, target, ours, theirs)


for each in SHAPES:
    register(each)


async def connect(central: Central, address: str):
    """Connects to `ble`, whose address is public if its controller has a public address."""
    advertisement = await central.find(address)
    return await central.connect(address + ("/P" if advertisement.address.is_public else ""))


@test("ble channel open reports why Bumble refuses", presets=FEW)
async def refused(world: World):
    async with BumblePeer(world) as peer:
        arguments = ("--output", str(world.directory / "target"))
        (await world.ble("channel", "open", peer.address, "0x81", *arguments)).failed("SPSM not supported")


@test("ble channel listen refuses Bumble channels to another PSM or with invalid lengths", presets=FEW)
async def refuses(world: World):
    target = world.directory / "target"
    async with world.start("channel", "listen", "--output", str(target)) as process, world.central() as central:
        ready = await process.event("ready")
        assert 0x80 <= ready["psm"] <= 0xFF, f"PSM {ready['psm']}"
        link = await connect(central, ready["address"])
        try:
            await link.connection.create_l2cap_channel(LeCreditBasedChannelSpec(psm=ready["psm"] ^ 1))
        except L2capError as error:
            expect(error.error_code, 2, "result")
        else:
            raise AssertionError("a channel to a PSM that nobody has")
        end = End(await link.connection.create_l2cap_channel(LeCreditBasedChannelSpec(psm=ready["psm"])))
        await process.event("opened", deadline=20)
        await end.send(b"over")
        await link.disconnect()
        outcome = await process.ended()
        outcome.failed("disconnected")
        expect(target.read_bytes(), b"over", "what came before the link was lost")


@test("ble channel with itself: the input is the output, and the end of the input ends both", presets=FEW)
async def both(world: World):
    content = octets(100_000, 5)
    source, target = world.directory / "source", world.directory / "target"
    source.write_bytes(content)
    async with world.start("channel", "listen", "--output", str(target)) as listening:
        ready = await listening.event("ready")
        arguments = ("--input", str(source), "--output", "/dev/null", "--close")
        outcome = await world.ble("channel", "open", ready["address"], str(ready["psm"]), *arguments)
        expect(outcome.succeeded().events[-1]["sent"], len(content), "bytes sent")
        (await listening.ended()).succeeded()
        assert target.read_bytes() == content, "what came out is not what went in"


@test("ble channel with itself: a listener that closes the channel first sends its whole input", presets=FEW)
async def listener_closes(world: World):
    content = octets(100_000, 6)
    source, target = world.directory / "source", world.directory / "target"
    source.write_bytes(content)
    arguments = ("--input", str(source), "--output", "/dev/null", "--close")
    async with world.start("channel", "listen", *arguments) as listening:
        ready = await listening.event("ready")
        arguments = ("channel", "open", ready["address"], str(ready["psm"]), "--output", str(target))
        closed = (await world.ble(*arguments)).succeeded().events[-1]
        expect((closed["received"], closed["reason"]), (len(content), "the peer has closed the channel"), "the end")
        expect((await listening.event("closed"))["sent"], len(content), "bytes sent")
        (await listening.ended()).succeeded()
    assert target.read_bytes() == content, "what came out is not what went in"


@test("ble channel reports invalid arguments", presets=())
async def wrong(world: World):
    for arguments, words in (
        (("open", profiles.ADDRESS, "256", "--output", "x"), "PSM"),
        (("open", profiles.ADDRESS, "eighty", "--output", "x"), "PSM"),
        (("listen", "--mps", "22", "--output", "x"), "--mps"),
        (("listen", "--mtu", "22", "--output", "x"), "--mtu"),
        (("listen",), "--output"),
    ):
        (await world.tool.run("channel", *arguments)).failed(words)
    missing = str(world.directory / "missing" / "file")
    (await world.tool.run("channel", "listen", "--output", "/dev/null", "--input", missing)).failed("missing")
