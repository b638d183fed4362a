"""`ble` as a central, against Bumble's peripheral and against `ble serve`."""

import asyncio
import struct

import bumble_peripheral as bumble
import profiles
import tables
from harness import ALL, BumblePeer, ServedPeer, World, bulk, expect, stream_values, test, test_with_peripherals


@test_with_peripherals("scan finds * and all its advertising data", ALL)
async def scan(world: World, peer):
    async with world.start("scan", "--duration", "20") as process:
        event = await process.event("advertisement", address=peer.address, name=peer.name)
        outcome = await process.interrupt()
    expect(
        sorted(map(tables.long_uuid, event["serviceUUIDs"])), [tables.long_uuid(u) for u in ("180F", "FFF1")], "UUIDs"
    )
    expect(
        {
            "addressType": event["addressType"],
            "connectable": event["connectable"],
            "manufacturerData": event["manufacturerData"],
            "serviceData": event["serviceData"],
            "txPower": event["txPower"],
        },
        {
            "addressType": "random",
            "connectable": True,
            "manufacturerData": {"FFFF": bumble.MANUFACTURER_DATA.hex()},
        }
        | peer.advertised,
        "advertisement",
    )
    assert event["rssi"] is None or -127 <= event["rssi"] <= 20, f"rssi {event['rssi']}"
    # A scan with a duration that is interrupted before has the status of SIGINT, and nothing to complain about.
    expect((outcome.status, outcome.errors), (130, ""), "the status and the errors")
    async with world.start("scan") as process:
        await process.event("advertisement", address=peer.address)
        outcome = await process.interrupt()
    # Without a duration, that is the end of the scan.
    expect((outcome.status, outcome.errors), (0, ""), "the status and the errors of a scan without a duration")


@test_with_peripherals("explore finds every attribute of * by address, name and service", ALL)
async def explore(world: World, peer):
    expected = await peer.table()
    lowest = expected[0]["handle"]
    for target in (peer.address, peer.name, "service:180F"):
        found = (await world.ble("explore", target)).succeeded().object
        expect(found["address"], peer.address, "address")
        expect(found["mtu"], 517, "mtu")
        services = tables.normalized(found["services"])
        ours = [service for service in services if service["handle"] >= lowest]
        expect(ours, expected, "services")
        standard = {service["uuid"] for service in services if service["handle"] < 0x0100}
        assert tables.long_uuid("1800") in standard and tables.long_uuid("1801") in standard, "no GAP or GATT service"


@test_with_peripherals("read gets values of every length from *")
async def read(world: World, peer):
    for characteristic, value in (
        (bumble.LONG, bumble.LONG_VALUE),
        (bumble.EMPTY, b""),
        (bumble.SHORT, bytes(range(22))),
        (f"{bumble.VALUES}/{bumble.ODD}", bytes(range(253))),
        (f"180F/{bumble.BATTERY_LEVEL}", b"\x64"),
        ("0000180f-0000-1000-8000-00805f9b34fb/00002a19-0000-1000-8000-00805f9b34fb", b"\x64"),
    ):
        found = (await world.ble("read", peer.address, characteristic)).succeeded().object
        expect(found["value"], value.hex(), characteristic)


@test_with_peripherals("read distinguishes equal characteristics of * by handle only")
async def read_twins(world: World, peer):
    (await world.ble("read", peer.address, bumble.TWIN)).failed()
    (await world.ble("read", peer.address, f"{bumble.TWIN_SERVICE}/{bumble.TWIN}")).failed()
    handles = [
        characteristic["valueHandle"]
        for service in await peer.table()
        for characteristic in service["characteristics"]
        if characteristic["uuid"] == tables.long_uuid(bumble.TWIN)
    ]
    for handle, text in zip(handles, ("1a", "1b", "2a", "2b"), strict=True):
        found = (await world.ble("read", peer.address, f"#{handle}")).succeeded().object
        expect(found["value"], text.encode().hex(), f"#{handle}")


@test_with_peripherals("read and write report why * refuses")
async def refusals(world: World, peer):
    def words(name: str) -> str:
        return "".join(" " + letter if letter.isupper() else letter for letter in name)

    alone = ("--no-pair",)
    (await world.ble("read", peer.address, bumble.ENCRYPTED, *alone)).failed(words(peer.encryption_error))
    (await world.ble("read", peer.address, bumble.AUTHENTICATED, *alone)).failed("insufficient authentication")
    (await world.ble("read", peer.address, bumble.AUTHORIZED)).failed("insufficient authorization")
    (await world.ble("write", peer.address, bumble.ENCRYPTED, "00", *alone)).failed(words(peer.encryption_error))
    (await world.ble("read", peer.address, "#65535")).failed("invalid handle")
    (await world.ble("read", peer.address, bumble.vendor(0xDEAD))).failed()
    (await world.ble("read", peer.address, f"180F/{bumble.LONG}")).failed()
    if isinstance(peer, BumblePeer):
        (await world.ble("read", peer.address, bumble.FAILING)).failed("0x80")
        (await world.ble("write", peer.address, bumble.FAILING, "00")).failed("0x9F")
    else:
        (await world.ble("write", peer.address, profiles.READ_ONLY, "00")).failed("write not permitted")
        (await world.ble("read", peer.address, profiles.WRITE_ONLY)).failed("read not permitted")
        (await world.ble("write", peer.address, profiles.BOUNDED, "00" * 21)).failed("invalid attribute value length")


@test_with_peripherals("write stores exactly the written value in *")
async def write(world: World, peer):
    for value in (b"\x00", bytes(range(200)), bytes(range(256)) * 2, b""):
        arguments = ("write", peer.address, bumble.STORE, value.hex()) if value else (
            "write", peer.address, bumble.STORE, "--text", ""
        )  # fmt: skip
        (await world.ble(*arguments)).succeeded()
        await peer.has(bumble.STORE, value)
    (await world.ble("write", peer.address, bumble.STORE, "--text", "grüß")).succeeded()
    await peer.has(bumble.STORE, "grüß".encode())
    for value in (b"reliable", bytes(range(255, -1, -1)) * 2):
        (await world.ble("write", peer.address, bumble.RELIABLE, value.hex(), "--reliable")).succeeded()
        await peer.has(bumble.RELIABLE, value)
    (await world.ble("write", peer.address, bumble.SINK, "c0ffee", "--without-response")).succeeded()
    expect(await peer.bulk(3), [b"\xc0\xff\xee"], "without response")
    (await world.ble("write", peer.address, bumble.STORE, "00" * 513)).failed()


@test_with_peripherals("100 kB of writes without response reach * completely and in order", ALL)
async def write_bulk(world: World, peer):
    values = bulk()
    lines = "".join(value.hex() + "\n" for value in values)
    (await world.ble("write", peer.address, bumble.SINK, "-", "--without-response", input=lines)).succeeded()
    arrived = await peer.bulk(sum(map(len, values)))
    assert arrived == values, f"{len(arrived)} writes of {len(values)}, or others, or in another order"


@test_with_peripherals("subscribe gets 1,000 notifications of * in order", ALL)
async def notifications(world: World, peer):
    values = stream_values(1000)
    async with world.start("subscribe", peer.address, bumble.NOTIFY, "--count", "1000") as process:
        await peer.connected()
        expect(await peer.subscribed(), "notification", "kind")
        await peer.send(bumble.NOTIFY, values)
        outcome = (await process.ended(30)).succeeded()
    assert all(event["event"] == "notification" for event in outcome.events), "not all are notifications"
    assert [bytes.fromhex(event["value"]) for event in outcome.events] == values, "other values, or in another order"
    expect(tables.long_uuid(outcome.events[0]["characteristic"]), tables.long_uuid(bumble.NOTIFY), "characteristic")
    times = [event["time"] for event in outcome.events]
    assert times == sorted(times), "times that go backwards"
    await peer.disconnected()


@test_with_peripherals("subscribe gets indications of *, and confirms each")
async def indications(world: World, peer):
    values = [value[:17] for value in stream_values(60)] + [bytes(512)]
    for characteristic, options in ((bumble.INDICATE, ()), (bumble.BOTH, ("--indications",))):
        async with world.start("subscribe", peer.address, characteristic, "--count", "61", *options) as process:
            await peer.connected()
            expect(await peer.subscribed(), "indication", "kind")
            await peer.send(characteristic, values, indicate=True)
            outcome = (await process.ended(30)).succeeded()
        assert all(event["event"] == "indication" for event in outcome.events), "not all are indications"
        assert [
            bytes.fromhex(event["value"]) for event in outcome.events
        ] == values, "other values, or in another order"
        await peer.disconnected()


@test_with_peripherals("subscribe ends with an error when * disconnects")
async def peripheral_disconnects(world: World, peer):
    async with world.start("subscribe", peer.address, bumble.NOTIFY) as process:
        await peer.connected()
        await peer.subscribed()
        await peer.send(bumble.NOTIFY, [b"last words"])
        await process.event("notification")
        await peer.disconnect()
        (await process.ended()).failed("disconnected")
    await peer.disconnected()
    (await world.ble("read", peer.address, bumble.SHORT)).succeeded()


@test_with_peripherals("write of lines ends with an error when * disconnects")
async def peripheral_disconnects_from_writer(world: World, peer):
    async with world.start("write", peer.address, bumble.SINK, "-", "--without-response") as process:
        process.send("c0ffee")
        await peer.connected()
        expect(await peer.bulk(3), [b"\xc0\xff\xee"], "the first value")
        await peer.disconnect()
        (await process.ended()).failed("disconnected")
    await peer.disconnected()


@test("pair prints the pairing although the peer has no key for advertising data", presets=("LAIRD_BL654", "OURS"))
async def pairing_without_key(world: World):
    async with ServedPeer(world) as peer:
        outcome = await world.ble("pair", peer.address, "--advertising-key")
        outcome.failed()
        expect([(event["event"], event["bonded"]) for event in outcome.events], [("paired", True)], "the pairing")


@test_with_peripherals("a central that is stopped disconnects *")
async def central_disconnects(world: World, peer):
    async with world.start("subscribe", peer.address, bumble.NOTIFY) as process:
        await peer.connected()
        await peer.subscribed()
        outcome = await process.interrupt()
        assert not outcome.errors.strip(), f"an error where none was: {outcome.errors}"
    await peer.disconnected()
    async with world.start("subscribe", peer.address, bumble.NOTIFY, "--duration", "1") as process:
        await peer.connected()
        (await process.ended()).succeeded()
    await peer.disconnected()


@test_with_peripherals("20 connections to *, one after the other", deadline=180)
async def reconnections(world: World, peer):
    for number in range(20):
        found = (await world.ble("read", peer.address, bumble.SHORT)).succeeded().object
        expect(found["value"], bytes(range(22)).hex(), f"connection {number + 1}")
        await peer.connected()
        await peer.disconnected()


@test("explore and read reach a Bumble peripheral with a public address")
async def public_address(world: World):
    async with world.peripheral(public=True) as peripheral:
        await peripheral.advertise()
        async with world.start("scan", "--duration", "20") as process:
            event = await process.event("advertisement", address=peripheral.address)
            expect(event["addressType"], "public", "addressType")
        found = (await world.ble("explore", peripheral.address)).succeeded().object
        expect(tables.normalized(found["services"]), await peripheral.table(), "services")
        found = (
            (await world.ble("read", peripheral.address, bumble.SHORT, "--address-type", "public")).succeeded().object
        )
        expect(found["value"], bytes(range(22)).hex(), "value")


@test("scan reports by service, by name, passively and with duplicates, as requested")
async def scan_options(world: World):
    async with (
        world.peripheral(name="Alpha One", address="F0:00:00:00:00:01") as first,
        world.peripheral(name="Beta", address="F0:00:00:00:00:02") as second,
    ):
        await first.advertise()
        await second.advertise(connectable=False)

        async def addresses(*options: str) -> tuple[set, list]:
            outcome = (await world.ble("scan", "--duration", "3", *options)).succeeded()
            return {event["address"] for event in outcome.events}, outcome.events

        both = {first.address, second.address}
        found, events = await addresses()
        assert found == both, f"found {found}"
        assert all(event["connectable"] == (event["address"] == first.address) for event in events), "connectable"
        once = len(events)
        found, _ = await addresses("--name", "alpha")
        assert found == {first.address}, f"by name {found}"
        found, _ = await addresses("--service", "FFF1")
        assert found == both, f"by service {found}"
        found, _ = await addresses("--service", "180D")
        assert found == set(), f"by a service that nobody has {found}"
        found, events = await addresses("--passive")
        assert found == both, f"passively {found}"
        assert all(event["name"] is None for event in events), "a name that only a scan response has"
        found, events = await addresses("--duplicates")
        assert found == both and len(events) > 2 * once, f"{len(events)} events with duplicates, {once} without"


@test(
    "scan joins extended advertising data up to the maximum length",
    presets=("DEFAULT", "LAIRD_BL654", "INTEL_BE200", "OURS", "NEWER"),
)
async def scan_extended(world: World):
    async with world.peripheral() as peripheral:
        limit = await peripheral.maximum_advertising_data_length()
        contents = {
            f"{0xFF00 + index:04X}": bytes((index + place) % 256 for place in range(96))
            for index in range(limit // 100)
        }
        assert len(contents) > 1, f"the controller sends {limit} bytes only"
        entries = (struct.pack("<BBH", 99, 0xFF, int(company, 16)) + data for company, data in contents.items())
        await peripheral.advertise_extended(b"".join(entries))
        async with world.start("scan", "--duration", "20") as process:
            event = await process.event("advertisement", address=peripheral.address)
    expect(event["manufacturerData"], {company: data.hex() for company, data in contents.items()}, "manufacturerData")
    expect(event["connectable"], False, "connectable")


@test("an absent peer is reported in time, and nothing is left of the attempt")
async def absent_peer(world: World):
    for target in ("F0:DE:AD:00:00:01", "Nobody", "service:180D"):
        (await world.ble("explore", target, timeout=0.5, deadline=10)).failed()
    arguments = ("explore", "F0:DE:AD:00:00:01", "--address-type", "random")
    (await world.ble(*arguments, timeout=0.5, deadline=10)).failed()
    async with BumblePeer(world) as peer:
        (await world.ble("read", peer.address, bumble.SHORT)).succeeded()


@test("a peer that disconnects in the middle ends the call with an error")
async def peer_vanishes(world: World):
    async with BumblePeer(world) as peer:
        async with world.start("subscribe", peer.address, bumble.NOTIFY) as process:
            await peer.connected()
            await peer.subscribed()
            await peer.peripheral.transport.close()
            (await process.ended()).failed("disconnected")


@test("info describes the controller")
async def info(world: World):
    information = (await world.ble("info")).succeeded().object
    assert information, "nothing said"
    text = (await world.ble("info", machine_readable=False)).succeeded().output
    assert text.count("\n") >= 5, f"few words: {text!r}"


@test("two centrals hold links to one ble serve at once", presets=("LAIRD_BL654", "OURS"))
async def two_centrals(world: World):
    async with ServedPeer(world) as peer:
        async with world.start("subscribe", peer.address, bumble.NOTIFY, "--count", "200") as first:
            await peer.subscribed()
            async with world.central() as central:
                link = await central.connect(peer.address)
                handle = peer.value_handle(bumble.NOTIFY)
                values = stream_values(200)
                async with link.subscription(handle, handle + 1) as queue:
                    await peer.subscribed()
                    await peer.send(bumble.NOTIFY, values)
                    async with asyncio.timeout(20):
                        assert [await queue.get() for _ in values] == values, "the second central got other values"
                    outcome = (await first.ended()).succeeded()
                await link.disconnect()
        assert [
            bytes.fromhex(event["value"]) for event in outcome.events
        ] == values, "the first central got other values"
