"""`ble serve` with Bumble's central."""

import asyncio
import contextlib
import signal
import struct

from bumble import att, crypto
from bumble.core import UUID, AdvertisingData

import bumble_peripheral as bumble
import profiles
import tables
from bumble_central import ATTError, Link
from harness import ALL, ServedPeer, World, bulk, expect, stream_values, test


@contextlib.asynccontextmanager
async def linked(world: World, mtu: int | None = 517):
    """A `ble serve`, and a link of Bumble's central to it."""
    async with ServedPeer(world) as peer, world.central() as central:
        link = await central.connect(peer.address, mtu=mtu)
        await peer.connected()
        yield peer, central, link
        if not link.disconnected.done():
            await link.disconnect()


async def refused(awaitable, *names: str):
    """Checks that a request is refused with one of the errors."""
    try:
        result = await awaitable
    except ATTError as error:
        assert error.name in names, f"{error.name} instead of {' or '.join(names)}"
    else:
        raise AssertionError(f"{result!r} instead of {' or '.join(names)}")


@test("ble serve advertises the data of its profile", ALL)
async def advertisement(world: World):
    async with ServedPeer(world) as peer, world.central() as central:
        expect(peer.ready["address"], peer.address, "ready.address")
        seen = await central.find(
            peer.address, accept=lambda each: each.data.get(AdvertisingData.COMPLETE_LOCAL_NAME) is not None
        )
        assert seen.is_connectable, "not connectable"
        data = seen.data
        expect(data.get(AdvertisingData.COMPLETE_LOCAL_NAME), peer.name, "name")
        expect(data.get(AdvertisingData.FLAGS, raw=True), b"\x06", "flags")
        expect(
            data.get(AdvertisingData.MANUFACTURER_SPECIFIC_DATA, raw=True),
            struct.pack("<H", bumble.COMPANY) + bumble.MANUFACTURER_DATA,
            "manufacturer data",
        )
        services = data.get(AdvertisingData.COMPLETE_LIST_OF_16_BIT_SERVICE_CLASS_UUIDS, raw=True)
        expect(services, struct.pack("<HH", 0x180F, 0xFFF1), "services")


@test("ble serve that is not connectable accepts no connections")
async def not_connectable(world: World):
    profile = profiles.profile()
    profile["advertise"]["connectable"] = False
    async with ServedPeer(world, profile) as peer, world.central() as central:
        seen = await central.find(peer.address)
        assert not seen.is_connectable, "connectable"


@test("Bumble discovers every attribute of the profile unchanged, with MTU 23, 64 and 517", ALL)
async def discovery(world: World):
    for mtu in (None, 64, 517):
        async with linked(world, mtu) as (peer, _, link):
            if mtu is not None:
                event = await peer.process.event("mtu")
                expect(event["mtu"], mtu, "mtu")
            expected = await peer.table()
            found = await link.table()
            expect([each for each in found if each["handle"] >= 0x0100], expected, f"services with MTU {mtu}")
            flat = [handle for handle, _ in await link.attributes()]
            assert flat == sorted(set(flat)), "handles that do not grow"
            named = {s["handle"] for s in expected} | {c["valueHandle"] for s in expected for c in s["characteristics"]}
            assert named <= set(flat), f"not found by Find Information: {named - set(flat)}"


@test("ble serve has the GAP and GATT services, and a correct Database Hash")
async def standard_services(world: World):
    async with linked(world) as (peer, _, link):
        table = {service["uuid"]: service for service in await link.table()}

        def value_of(service: str, characteristic: str) -> dict:
            for each in table[tables.long_uuid(service)]["characteristics"]:
                if each["uuid"] == tables.long_uuid(characteristic):
                    return each
            raise AssertionError(f"{service} has no {characteristic}")

        expect(value_of("1800", "2A00")["value"], peer.name.encode().hex(), "Device Name")
        expect(value_of("1800", "2A01")["value"], "8001", "Appearance")
        assert len(value_of("1800", "2A04")["value"]) == 16, "Peripheral Preferred Connection Parameters"
        assert value_of("1800", "2AA6")["value"] in ("00", "01"), "Central Address Resolution"
        expect(value_of("1801", "2A05")["properties"], ["indicate"], "Service Changed")
        expect(value_of("1801", "2B29")["value"], "00", "Client Supported Features")
        value_of("1801", "2B3A")
        expect(value_of("1801", "2B2A")["value"], (await database_hash(link)).hex(), "Database Hash")
        features = value_of("1801", "2B29")["valueHandle"]
        await link.write(features, b"\x01")
        expect(await link.read(features), b"\x01", "Client Supported Features")
        await refused(link.write(features, b"\x00"), "valueNotAllowed")


@test("ble serve disconnects its clients when its terminal is closed")
async def hangup(world: World):
    async with linked(world) as (peer, _, link):
        (await peer.process.interrupt(signal.SIGHUP)).succeeded()
        async with asyncio.timeout(5):
            expect(await link.disconnected, 0x13, "the reason: Remote User Terminated Connection")


async def database_hash(link: Link) -> bytes:
    """The Database Hash of the attributes that are found over the air (Vol 3, Part G, 7.3.1)."""
    with_value = {UUID.from_16_bits(kind) for kind in (0x2800, 0x2801, 0x2802, 0x2803, 0x2900)}
    without = {UUID.from_16_bits(kind) for kind in (0x2901, 0x2902, 0x2903, 0x2904, 0x2905)}
    message = b""
    for handle, kind in await link.attributes():
        if kind in with_value or kind in without:
            message += struct.pack("<H", handle) + kind.to_pdu_bytes()
        if kind in with_value:
            message += await link.read(handle)
    return crypto.aes_cmac(message, bytes(16))[::-1]


@test("Bumble reads from ble serve: long, by type, several at once")
async def reading(world: World):
    for mtu in (None, 100, 517):
        async with linked(world, mtu) as (peer, _, link):
            expect(await link.read(peer.value_handle(bumble.LONG)), bumble.LONG_VALUE, f"512 bytes with MTU {mtu}")
            expect(await link.read(peer.value_handle(bumble.SHORT)), bytes(range(22)), f"22 bytes with MTU {mtu}")
            expect(await link.read(peer.value_handle(bumble.EMPTY)), b"", "no bytes")
            event = await peer.process.event("read", handle=peer.value_handle(bumble.LONG))
            expect(event["offset"], 0, "offset")
            found = await link.by_type(UUID(bumble.TWIN))
            expect([value for _, value in found], [b"1a", b"1b", b"2a", b"2b"], "by type")
            handles = [handle for handle, _ in found]
            response = await link.request(att.ATT_Read_Multiple_Request(set_of_handles=handles))
            expect(response.set_of_values, b"1a1b2a2b", "Read Multiple")
            handles[1:2] = [peer.value_handle(bumble.EMPTY)]
            response = await link.request(att.ATT_Read_Multiple_Variable_Request(set_of_handles=handles))
            expect(
                [(length, value) for length, value in response.length_value_tuple_list],
                [(2, b"1a"), (0, b""), (2, b"2a"), (2, b"2b")],
                "Read Multiple Variable",
            )
            response = await link.request(
                att.ATT_Find_By_Type_Value_Request(
                    starting_handle=1,
                    ending_handle=0xFFFF,
                    attribute_type=UUID.from_16_bits(0x2800),
                    attribute_value=UUID(bumble.TWIN_SERVICE).to_pdu_bytes(),
                )
            )
            expect([handle for handle, _ in response.handles_information], [0x0500, 0x0510], "Find By Type Value")


@test("Bumble writes to ble serve: short and long values, and values that the command set changes")
async def writing(world: World):
    async with linked(world) as (peer, _, link):
        store = peer.value_handle(bumble.STORE)
        for value in (b"\x01", bytes(range(256)) * 2, b"", bytes(range(250))):
            await link.write(store, value)
            expect(await link.read(store), value, f"{len(value)} bytes")
            await peer.has(bumble.STORE, value)
        peer.process.send(f"set {bumble.STORE} 0badcafe")
        peer.process.send(f"set {bumble.TWIN} 00")  # ambiguous, which an event reports
        await peer.process.event("error")
        expect(await link.read(store), bytes.fromhex("0badcafe"), "set by the owner")
        descriptor = 0x0206
        await link.write(descriptor, b"described")
        expect(await link.read(descriptor), b"described", "a descriptor")


@test("Bumble writes reliably to ble serve: all or nothing")
async def reliable(world: World):
    for mtu in (None, 517):
        async with linked(world, mtu) as (peer, _, link):
            store, target = peer.value_handle(bumble.STORE), peer.value_handle(bumble.RELIABLE)
            await link.prepare([(store, bytes(range(100))), (target, bytes(range(50)))])
            expect(await link.read(store), b"stored", "before the execution")
            await link.execute()
            expect(await link.read(store), bytes(range(100)), "the first value")
            expect(await link.read(target), bytes(range(50)), "the second value")
            await link.prepare([(store, b"dropped"), (target, b"dropped")])
            await link.execute(commit=False)
            expect(await link.read(store), bytes(range(100)), "after the cancellation")
            bounded = peer.value_handle(profiles.BOUNDED)
            await link.prepare([(store, b"half"), (bounded, bytes(21))])
            await refused(link.execute(), "invalidAttributeValueLength")
            expect(await link.read(store), bytes(range(100)), "after a queue with a fault")
            await link.prepare([(store, b"gap")], start=200)
            await refused(link.execute(), "invalidOffset")
            await refused(link.prepare([(peer.value_handle(profiles.READ_ONLY), b"x")]), "writeNotPermitted")
            await link.execute()


@test("ble serve bounds the queue of prepared writes")
async def queue_bound(world: World):
    async with linked(world, 23) as (peer, _, link):
        store = peer.value_handle(bumble.STORE)
        for count in range(1, 3000):
            try:
                await link.prepare([(store, bytes(18))])
            except ATTError as error:
                expect(error.name, "prepareQueueFull", "error")
                break
        else:
            raise AssertionError(f"{count} prepared writes, and no end")
        assert count > 40, f"only {count - 1} prepared writes: too few for a long value"
        await link.execute(commit=False)
        expect(await link.read(store), b"stored", "value")


@test("100 kB of writes without response from Bumble reach ble serve completely and in order", ALL)
async def write_bulk(world: World):
    async with linked(world) as (peer, _, link):
        values = bulk()
        for value in values:
            await link.write_command(peer.value_handle(bumble.SINK), value)
        arrived = await peer.bulk(sum(map(len, values)))
        assert arrived == values, f"{len(arrived)} writes of {len(values)}, or others, or in another order"
        expect(await link.read(peer.value_handle(bumble.SHORT)), bytes(range(22)), "a value afterwards")


@test("Bumble gets 1,000 notifications of ble serve in order, and none once it has unsubscribed")
async def notifications(world: World):
    async with linked(world) as (peer, _, link):
        handle, values = peer.value_handle(bumble.NOTIFY), stream_values(1000)
        configuration = profiles.configuration_handle(bumble.NOTIFY)
        await peer.send(bumble.NOTIFY, [b"nobody hears this"])
        await peer.settled()
        async with link.subscription(handle, configuration) as queue:
            expect((await peer.process.event("subscribed"))["handle"], handle, "subscribed.handle")
            expect(await link.read(configuration), b"\x01\x00", "configuration")
            await peer.send(bumble.NOTIFY, values)
            async with asyncio.timeout(30):
                assert [await queue.get() for _ in values] == values, "other values, or in another order"
            await peer.send(bumble.NOTIFY, [bytes(512)])
            async with asyncio.timeout(10):
                expect(len(await queue.get()), 512, "the length of a long one")
            assert queue.empty(), "more notifications than were sent"
        await peer.process.event("unsubscribed")
        expect(await link.read(configuration), b"\x00\x00", "configuration")
        # The handler of the subscription is gone. This one takes whatever is still notified.
        link.client.notification_subscribers[handle] = {queue.put_nowait}
        await peer.send(bumble.NOTIFY, [b"nobody hears this"])
        await peer.settled()
        # A notification would have arrived before the answer to this request.
        await link.read(configuration)
        assert queue.empty(), "notified without being subscribed"


@test("Bumble gets and confirms indications of ble serve, one after the other")
async def indications(world: World):
    async with linked(world) as (peer, _, link):
        for characteristic in (bumble.INDICATE, bumble.BOTH):
            handle, values = peer.value_handle(characteristic), stream_values(60)
            async with link.subscription(handle, profiles.configuration_handle(characteristic), bits=2) as queue:
                expect((await peer.process.event("subscribed"))["kind"], "indication", "kind")
                await peer.send(characteristic, values, indicate=True)
                async with asyncio.timeout(30):
                    assert [await queue.get() for _ in values] == values, "other values, or in another order"
        await refused(link.write(profiles.configuration_handle(bumble.NOTIFY), b"\x00"), "invalidAttributeValueLength")


@test("ble serve refuses what its permissions do not allow")
async def permissions(world: World):
    async with linked(world) as (peer, _, link):
        at = peer.value_handle
        await refused(link.read(at(bumble.ENCRYPTED)), peer.encryption_error)
        await refused(link.write(at(bumble.ENCRYPTED), b"x"), peer.encryption_error)
        await refused(link.read(0x0303), peer.encryption_error)
        await refused(link.read(at(bumble.AUTHENTICATED)), "insufficientAuthentication")
        await refused(link.read(at(bumble.AUTHORIZED)), "insufficientAuthorization")
        await refused(link.read(at(profiles.WRITE_ONLY)), "readNotPermitted")
        await refused(link.read(at(bumble.NOTIFY)), "readNotPermitted")
        await refused(link.write(at(profiles.READ_ONLY), b"x"), "writeNotPermitted")
        await refused(link.write(0x0200, b"x"), "writeNotPermitted")
        await refused(link.write(at(profiles.BOUNDED), bytes(21)), "invalidAttributeValueLength")
        await refused(link.read(0x00FF), "invalidHandle")
        await refused(link.write(0x00FF, b"x"), "invalidHandle")
        await refused(
            link.request(att.ATT_Read_Blob_Request(attribute_handle=at(bumble.STORE), value_offset=7)), "invalidOffset"
        )
        await refused(
            link.request(
                att.ATT_Read_By_Group_Type_Request(
                    starting_handle=1, ending_handle=0xFFFF, attribute_group_type=UUID.from_16_bits(0x2803)
                )
            ),
            "unsupportedGroupType",
        )
        await link.write_command(at(profiles.READ_ONLY), b"x")
        expect(await link.read(at(profiles.READ_ONLY)), b"look, do not touch", "after a command that is not permitted")


@test("ble serve answers malformed and unknown PDUs as the specification requires, and continues", ALL)
async def hostile(world: World):
    world.tool.label += "-malformed"  # see captures.py
    async with linked(world) as (peer, _, link):
        answers: asyncio.Queue = asyncio.Queue()
        link.client.on_gatt_pdu = lambda pdu, original=link.client.on_gatt_pdu: (
            answers.put_nowait(bytes(pdu)) if link.client.pending_request is None else original(pdu)
        )

        async def error(pdu: bytes, *codes: int):
            link.send_pdu(pdu)
            async with asyncio.timeout(5):
                answer = await answers.get()
            assert answer[0] == 0x01 and answer[1] == pdu[0] and answer[4] in codes, f"{answer.hex()} to {pdu.hex()}"

        for length in range(1, 7):  # Read By Type Request has 7 bytes or 21
            await error(bytes.fromhex("080100ffff0328")[:length], 0x04)
        for pdu in ("0a", "0a03", "0c0102", "0401", "06", "1201", "1601", "18", "0e01", "2001"):
            await error(bytes.fromhex(pdu), 0x04)
        await error(b"\x0a\x00\x00", 0x01)
        await error(bytes.fromhex("0805000100ffff"), 0x01, 0x04)
        for opcode in (0x3E, 0x24, 0x2A):
            await error(bytes([opcode, 1, 2, 3]), 0x06)
        for pdu in (b"\x7e", b"\xd2", b"\xd2\x01", b"\x52", b"\x1e", b"\x1b\x01", b"\x09\x00", b""):
            link.send_pdu(pdu)  # commands, confirmations, responses: nothing is answered
        link.send_pdu(b"\x01\x02\x03", channel=0x003F)
        link.send_pdu(b"\xff" * 300, channel=0x1234)
        link.send_pdu(b"\x01\x07\x00", channel=0x0006)
        link.send_pdu(b"\xee\x01\x00\x00", channel=0x0005)  # an unknown signaling command
        expect(await link.read(peer.value_handle(bumble.SHORT)), bytes(range(22)), "a value afterwards")
        assert answers.empty(), f"answered: {answers.get_nowait().hex()}"


@test("ble serve and Bumble disconnect and reconnect 20 times, whoever disconnects")
async def reconnections(world: World):
    async with ServedPeer(world) as peer, world.central() as central:
        for number in range(20):
            link = await central.connect(peer.address)
            event = await peer.process.event("connected")
            expect(event["address"], central.static_address, "address")
            expect(await link.read(peer.value_handle(bumble.SHORT)), bytes(range(22)), f"connection {number + 1}")
            await link.write(profiles.configuration_handle(bumble.NOTIFY), b"\x01\x00")
            if number % 2:
                await link.disconnect()
            else:
                await peer.disconnect()
                async with asyncio.timeout(10):
                    expect(int(await link.disconnected), 0x13, "reason")
            await peer.process.event("disconnected")
        link = await central.connect(peer.address)
        expect(
            await link.read(profiles.configuration_handle(bumble.NOTIFY)), b"\x00\x00", "a client without a bond is new"
        )
        await link.disconnect()


@test("ble serve that is stopped disconnects its client and stops advertising")
async def stopping(world: World):
    for way in ("quit", "signal"):
        async with linked(world) as (peer, central, link):
            if way == "quit":
                peer.process.send("quit")
                outcome = await peer.process.ended()
            else:
                outcome = await peer.process.interrupt()
            outcome.succeeded()
            async with asyncio.timeout(10):
                await link.disconnected
            # The scan finds another device 20 times, and nothing of `ble serve` in the same time.
            beacon = world.peripheral(name="Beacon", address="F0:01:02:03:04:07")
            async with beacon, central.scan(active=False) as queue, asyncio.timeout(30):
                await beacon.advertise(connectable=False)
                for _ in range(20):
                    seen = str((await queue.get()).address).split("/")[0].upper()
                    expect(seen, beacon.address, "the device on the air")


@test("ble serve keeps a link whose parameters Bumble changes")
async def parameters(world: World):
    async with linked(world) as (peer, _, link):
        await link.connection.update_parameters(30, 50, 0, 2000)
        expect(await link.read(peer.value_handle(bumble.LONG)), bumble.LONG_VALUE, "a value afterwards")
