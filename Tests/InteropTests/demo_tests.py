"""`ble demo`: each end of each example with Bumble as the phone at the other end."""

import asyncio
import contextlib
import socket
import struct

from bumble import att
from bumble.core import UUID, AdvertisingData
from bumble.device import AdvertisingType
from bumble.gatt import Characteristic, Service

import hosts
from bumble_central import ATTError
from harness import World, expect, test

P = Characteristic.Properties
READ = att.Attribute.READABLE
WRITE = att.Attribute.WRITEABLE

PRESETS = ("DEFAULT", "LAIRD_BL654", "OURS")

DEVICE = "F59F037A-4992-42FD-8F0D-8B8D0594FF59"
INFORMATION = "908D66AF-2751-4483-BD8E-8E99A92CC2F3"
NAME = "06BBE1E1-100E-430D-A62B-7B2421810813"
MESSAGE = "B53D35B6-ADA0-42F7-8A75-C4433D81E729"
BRIGHTNESS = "70DE0751-1127-456C-AB03-D00E202E3754"
VALUE = "66D311CB-4AD7-4CD7-A8B7-D3225ACB779E"
GREETING = "Olá, periférico!"

TRANSFER = "C12B5848-1973-4AB6-8753-31C9585BCB29"
TRANSFERRED = "7926A327-37E3-49FA-865F-F3C582CB19CB"
TEXT = "".join("aéz€ 𝄞mßok—"[index % 97 % 11] for index in range(100_000))

WALKTHROUGH = "3655296F-96CE-44D4-912D-CD83F06E7E7E"
CHARACTER_1 = "C22D1ECA-0F78-463B-8C21-688A517D7D2B"
CHARACTER_2 = "632FB3C9-2078-419B-83AA-DBC64B5B685A"
LONG = bytes(index % 251 for index in range(512))

TITAN = "A56E51F3-AFFE-4E14-87A2-54927B22354C"
TITAN_VALUE = "8204A259-E49C-4510-8ABF-68D494396946"
TITAN_ENCRYPTED = "BA724148-D53B-460E-90F3-6BFFF0E183FA"

HEART_RATE, MEASUREMENT, LOCATION, CONTROL = "180D", "2A37", "2A38", "2A39"


# Bumble as the central


class Peer:
    """The peripheral of an example, as Bumble discovers it."""

    def __init__(self, link, services, handles):
        self.link, self.services, self.handles = link, services, handles

    def value(self, uuid: str) -> int:
        return self.handles[UUID(uuid)][0]

    def configuration(self, uuid: str) -> int:
        """The handle of the Client Characteristic Configuration."""
        return self.handles[UUID(uuid)][1]

    async def read(self, uuid: str) -> bytes:
        return await self.link.read(self.value(uuid))

    async def write(self, uuid: str, value: bytes):
        await self.link.write(self.value(uuid), value)

    @contextlib.asynccontextmanager
    async def subscription(self, uuid: str):
        """A queue of notifications. It ends with the link: the examples end when there is no subscriber, so a request
        to unsubscribe might get no answer."""
        async with self.link.subscription(self.value(uuid), self.configuration(uuid)) as queue:
            yield queue
            await self.link.disconnect()


@contextlib.asynccontextmanager
async def meeting(world: World, example: str, service: str, *options: str, mtu: int | None = 517):
    """`ble demo` as the peripheral of an example, found by its advertised service and explored. Checks that it ends
    with success."""
    async with world.start("demo", example, "--role", "peripheral", *options) as process, world.central() as central:
        wanted = UUID(service).to_bytes()
        async with asyncio.timeout(15), central.scan() as queue:
            while wanted not in bytes((advertisement := await queue.get()).data):
                pass
        link = await central.connect(str(advertisement.address), mtu=mtu)
        services, handles = {}, {}
        for each in await link.client.discover_services():
            services[each.uuid] = each
            for characteristic in await link.client.discover_characteristics((), each):
                configuration = [
                    descriptor.handle
                    for descriptor in await link.client.discover_descriptors(characteristic)
                    if descriptor.type == UUID("2902")
                ]
                handles[characteristic.uuid] = (characteristic.handle, *configuration)
        yield Peer(link, services, handles), process
        outcome = (await process.ended(20)).succeeded()
        expect(outcome.events[-1]["event"], "done", "the last event")


async def refusal(awaitable) -> str | None:
    """The error in the answer to a request."""
    try:
        await awaitable
    except ATTError as error:
        return error.name
    return None


@test("demo brightness: Bumble reads the name, sends a message and follows the brightness", presets=PRESETS)
async def brightness_peripheral(world: World):
    async with meeting(world, "brightness", DEVICE) as (peer, process):
        expect((await peer.read(NAME)).decode(), socket.gethostname(), "the name")
        expect(await peer.read(VALUE), struct.pack("<f", 0.5), "the brightness")
        async with peer.subscription(VALUE) as queue:
            expect(await queue.get(), struct.pack("<f", 0.5), "the brightness at first")
            await peer.link.write_command(peer.value(MESSAGE), GREETING.encode())
            expect(await queue.get(), struct.pack("<f", 0.8), "the brightness after the message")
        await process.event("shown", text=f"Message: {GREETING}")


@test("demo texttransfer: a text of 100,000 characters reaches Bumble completely", presets=PRESETS, deadline=120)
async def text_peripheral(world: World):
    path = world.file("text.txt", TEXT)
    async with meeting(world, "texttransfer", TRANSFER, "--text", path) as (peer, _):
        chunks = []
        async with asyncio.timeout(90), peer.subscription(TRANSFERRED) as queue:
            while (chunk := await queue.get()) != b"EOM":
                chunks.append(chunk)
        assert all(len(chunk) == 20 for chunk in chunks[:-1]), "chunks that are not full"
        assert b"".join(chunks) == TEXT.encode(), "another text"


@test("demo walkthrough: Bumble performs each step, including those that must fail", presets=PRESETS)
async def walkthrough_peripheral(world: World):
    async with meeting(world, "walkthrough", WALKTHROUGH, mtu=None) as (peer, _):
        link, first, second = peer.link, peer.value(CHARACTER_1), peer.value(CHARACTER_2)
        assert UUID(HEART_RATE) not in peer.services, "a secondary service among the primary ones"
        secondary = await link.groups(UUID("2801"))
        expect([bytes(value) for _, _, value in secondary], [struct.pack("<H", 0x180D)], "secondary services")
        service = peer.services[UUID(WALKTHROUGH)]
        (include,) = await link.by_type(UUID("2802"), service.handle, service.end_group_handle)
        expect(struct.unpack_from("<H", include[1])[0], secondary[0][0], "the included service")

        async def part(offset: int) -> bytes:
            request = att.ATT_Read_Blob_Request(attribute_handle=first, value_offset=offset)
            return (await link.request(request)).part_attribute_value

        expect(await peer.read(CHARACTER_1), b"character 1", "the value")
        expect(await part(10), b"1", "its end")
        expect(await part(11), b"", "what is behind it")
        expect(await refusal(part(12)), "invalidOffset", "beyond it")

        await peer.write(CHARACTER_1, b"test")
        expect(await peer.read(CHARACTER_1), b"test", "what was written")
        written = bytes(index % 256 for index in range(300))
        await peer.write(CHARACTER_1, written)
        expect(await peer.read(CHARACTER_1), written, "what was written in parts")
        await link.prepare([(first, b"late")], start=301)
        expect(await refusal(link.execute()), "invalidOffset", "writing beyond the end")
        expect(await peer.read(CHARACTER_1), written, "what was written before")
        expect(await refusal(peer.write(CHARACTER_2, b"test")), "writeNotPermitted", "writing what is read-only")

        expect(len(peer.handles[UUID(CHARACTER_1)]), 1, "handles of what cannot notify")
        async with peer.subscription(CHARACTER_2) as queue:
            expect(await queue.get(), LONG[:20], "the notification")
            expect(await link.read(second), LONG, "the whole value")


@test("demo titan: Bumble reads, writes, is notified, and pairs for encrypted values", presets=PRESETS)
async def titan_peripheral(world: World):
    async with meeting(world, "titan", TITAN) as (peer, _):
        expect(await peer.read(TITAN_VALUE), b"TiTan dice hola", "the value")
        refused = await refusal(peer.link.write(peer.configuration(TITAN_ENCRYPTED), b"\1\0"))
        assert refused in ("insufficientAuthentication", "insufficientEncryption"), f"subscribing led to {refused}"
        await peer.link.connection.pair()
        await peer.link.write(peer.configuration(TITAN_ENCRYPTED), b"\1\0")
        async with peer.subscription(TITAN_VALUE) as queue:
            await peer.write(TITAN_VALUE, b"Hola, TiTan")
            expect(await queue.get(), b"Hola, TiTan", "the notification")
            expect(await peer.read(TITAN_VALUE), b"Hola, TiTan", "what was written")


@test("demo practical: Bumble follows the sensor, which is then invisible to others", presets=PRESETS)
async def practical_peripheral(world: World):
    async with meeting(world, "practical", HEART_RATE) as (peer, process):
        expect(await peer.read(LOCATION), b"\2", "the location")
        async with peer.subscription(MEASUREMENT) as queue:
            expect([await queue.get() for _ in range(3)], [b"\0\x3d", b"\0\x40", b"\0\x43"], "the heart rates")
            await peer.write(CONTROL, b"\1")
            await process.event("shown", text="Сброс")


# Bumble as the peripheral


class Phone(hosts.BumbleHost):
    """A phone with the peripheral of an example."""

    def __init__(self, world: World, name: str, service: str, services: list[Service]):
        super().__init__(world.adapter, name)
        self.service, self.services = UUID(service), services
        self.disconnected = asyncio.Event()
        self.tasks = set()

    def prepare(self):
        self.device.add_services(self.services)
        self.device.on(
            "connection", lambda link: link.on(link.EVENT_DISCONNECTION, lambda _: self.disconnected.set())
        )

    def when_subscribed(self, characteristic: Characteristic, body):
        """Runs `body` whenever the central subscribes to notifications."""

        def changed(_, notify, __):
            if notify:
                self.tasks.add(asyncio.ensure_future(body()))

        characteristic.on(Characteristic.EVENT_SUBSCRIPTION, changed)

    async def notify(self, characteristic: Characteristic, value: bytes):
        await self.device.gatt_server.notify_subscribers(characteristic, value)

    async def advertise(self):
        long = len(self.service.to_bytes()) > 2
        kind = (
            AdvertisingData.COMPLETE_LIST_OF_128_BIT_SERVICE_CLASS_UUIDS
            if long
            else AdvertisingData.COMPLETE_LIST_OF_16_BIT_SERVICE_CLASS_UUIDS
        )
        await self.device.start_advertising(
            advertising_type=AdvertisingType.UNDIRECTED_CONNECTABLE_SCANNABLE,
            auto_restart=False,
            advertising_data=bytes(
                AdvertisingData([(AdvertisingData.FLAGS, b"\x06"), (kind, self.service.to_bytes())])
            ),
            scan_response_data=bytes(AdvertisingData([(AdvertisingData.COMPLETE_LOCAL_NAME, self.name.encode())])),
            advertising_interval_min=20,
            advertising_interval_max=20,
        )

    async def meet(self, world: World, example: str, deadline: float = 20) -> list[str]:
        """Runs `ble demo` as the central of the example, checks that it ends with success, and returns its output."""
        async with self:
            await self.advertise()
            outcome = (await world.ble("demo", example, "--role", "central", deadline=deadline)).succeeded()
            async with asyncio.timeout(10):
                await self.disconnected.wait()
            await asyncio.gather(*self.tasks)
        expect(outcome.events[-1]["event"], "done", "the last event")
        return [event["text"] for event in outcome.events if event["event"] == "shown"]


@test("demo brightness: a Bumble peripheral is read, written to and followed", presets=PRESETS)
async def brightness_central(world: World):
    messages = []
    greeted = asyncio.Event()

    def take(_, value):
        messages.append(bytes(value).decode())
        if messages[-1] == GREETING:
            greeted.set()

    name = Characteristic(NAME, P.READ, READ, b"Bumble's phone")
    message = Characteristic(MESSAGE, P.WRITE_WITHOUT_RESPONSE, WRITE, att.AttributeValue(lambda _: b"", take))
    value = Characteristic(VALUE, P.READ | P.NOTIFY, READ, struct.pack("<f", 0.5))
    phone = Phone(
        world, "Peripheral Device", DEVICE, [Service(INFORMATION, [name, message]), Service(BRIGHTNESS, [value])]
    )

    async def follow():
        await phone.notify(value, struct.pack("<f", 0.5))
        await greeted.wait()
        await phone.notify(value, struct.pack("<f", 0.8))

    phone.when_subscribed(value, follow)
    lines = await phone.meet(world, "brightness")
    assert "Device name: Bumble's phone" in lines, "the name was not read"
    expect(messages, ["", GREETING], "the messages")


@test("demo texttransfer: a text of 100,000 characters from Bumble arrives completely", presets=PRESETS, deadline=120)
async def text_central(world: World):
    text = Characteristic(TRANSFERRED, P.NOTIFY, READ, b"")
    phone = Phone(world, "Bumble", TRANSFER, [Service(TRANSFER, [text])])

    async def stream():
        octets = TEXT.encode()
        for start in range(0, len(octets), 20):
            await phone.notify(text, octets[start : start + 20])
        await phone.notify(text, b"EOM")

    phone.when_subscribed(text, stream)
    lines = await phone.meet(world, "texttransfer", deadline=90)
    assert f"Texte: {TEXT}" in lines, "another text"


@test("demo walkthrough: each step has its expected outcome with a Bumble peripheral", presets=PRESETS)
async def walkthrough_central(world: World):
    values = {CHARACTER_1: b"character 1"}

    def write(_, value):
        values[CHARACTER_1] = bytes(value)

    def refuse(*_):
        raise att.ATT_Error(error_code=att.ATT_WRITE_NOT_PERMITTED_ERROR)

    location = Characteristic(LOCATION, P.READ, READ, b"\1")
    heart_rate = Service(HEART_RATE, [location], primary=False)
    first = Characteristic(
        CHARACTER_1, P.READ | P.WRITE, READ | WRITE, att.AttributeValue(lambda _: values[CHARACTER_1], write)
    )
    second = Characteristic(
        CHARACTER_2, P.READ | P.NOTIFY, READ | WRITE, att.AttributeValue(lambda _: LONG, refuse)
    )
    service = Service(WALKTHROUGH, [first, second], included_services=[heart_rate])
    phone = Phone(world, "Walkthrough", WALKTHROUGH, [heart_rate, service])
    phone.when_subscribed(second, lambda: phone.notify(second, LONG))
    await phone.meet(world, "walkthrough")
    expect(values[CHARACTER_1], bytes(index % 256 for index in range(300)), "what was written last")


@test("demo titan: a Bumble tablet is listed, selected, read, written to and followed", presets=PRESETS)
async def titan_central(world: World):
    values = [b"TiTan dice hola"]
    value = Characteristic(
        TITAN_VALUE,
        P.READ | P.WRITE | P.NOTIFY,
        READ | WRITE,
        att.AttributeValue(lambda _: values[-1], lambda _, value: values.append(bytes(value))),
    )
    encrypted = Characteristic(TITAN_ENCRYPTED, P.READ | P.NOTIFY, READ, b"")
    phone = Phone(world, "TiTan", TITAN, [Service(TITAN, [value, encrypted])])

    async def follow():
        while len(values) < 2:
            await asyncio.sleep(0.01)
        await phone.notify(value, values[-1])

    phone.when_subscribed(value, follow)
    await phone.meet(world, "titan")
    expect(values, [b"TiTan dice hola", b"Hola, TiTan"], "the values")


@test("demo practical: a Bumble sensor is followed, disconnected, and given up when it is gone", presets=PRESETS)
async def practical_central(world: World):
    resets = []
    measurement = Characteristic(MEASUREMENT, P.NOTIFY, READ, b"")
    location = Characteristic(LOCATION, P.READ, READ, b"\2")
    control = Characteristic(
        CONTROL, P.WRITE, WRITE, att.AttributeValue(lambda _: b"", lambda _, value: resets.append(bytes(value)))
    )
    phone = Phone(world, "Датчик ЧСС", HEART_RATE, [Service(HEART_RATE, [measurement, location, control])])

    async def beat():
        for rate in (61, 64, 67):
            await phone.notify(measurement, bytes((0, rate)))

    phone.when_subscribed(measurement, beat)
    lines = await phone.meet(world, "practical")
    expect(resets, [b"\1"], "the resets")
    assert "Время вышло" in lines, "who is gone was not given up"
