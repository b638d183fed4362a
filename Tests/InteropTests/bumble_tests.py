"""Bumble with Bumble on our controllers: a failure here is caused by the controllers."""

import asyncio
import contextlib

from bumble.device import (
    AdvertisingEventProperties,
    AdvertisingParameters,
    ConnectionParametersPreferences,
    PeriodicAdvertisingSync,
)
from bumble.hci import (
    Address,
    HCI_Error,
    HCI_LE_Extended_Advertising_Report_Event,
    HCI_LE_Set_Resolvable_Private_Address_Timeout_Command,
    OwnAddressType,
)
from bumble.keys import PairingKeys

import bumble_pairing as pairing
import bumble_peripheral as bumble
from bumble_central import ATTError, Central, Link
from harness import World, expect, test
from meeting import CENTRAL, PERIPHERAL, converse, two_hosts

OURS = ("OURS",)

# Reasons of a Disconnection Complete event, and statuses (Vol 1, Part F).
PIN_OR_KEY_MISSING, CONNECTION_TIMEOUT, MIC_FAILURE = 0x06, 0x08, 0x3D


@test("Bumble discovers all attributes of Bumble, and exchanges values of every length", presets=OURS)
async def conversation(world: World):
    async with two_hosts(world.adapter) as (central, peripheral):
        for mtu in (None, 517):
            link = await central.connect(PERIPHERAL, mtu=mtu)
            expect(await link.table(), await peripheral.table(), f"table with MTU {mtu or 23}")
            if mtu:
                await converse(link, peripheral, 1000)
            await link.disconnect()
            await peripheral.disconnections.get()


def pairs(method: pairing.Method):
    @test(f"Bumble and Bumble pair by {method.name}, and reconnect with the key", presets=OURS)
    async def paired(world: World):
        async with two_hosts(world.adapter) as (central, peripheral):
            person = pairing.make_ready(method, central, peripheral)
            secret = peripheral.characteristics[bumble.ENCRYPTED].handle
            link = await central.connect(PERIPHERAL)
            connection = await peripheral.connections.get()
            assert not link.connection.is_encrypted and not connection.is_encrypted, "encrypted before it was asked for"
            await refuses(link, secret)
            await pairing.pair(link.connection, connection)
            assert len(set(person.compared)) == len(person.compared) // 2, f"numbers {person.compared} are not the same"
            await use_encrypted(link, connection, peripheral)
            for host, peer in ((central, peripheral), (peripheral, central)):
                key = await pairing.keys(host, peer)
                expect((key.ltk or key.ltk_central).authenticated, method.is_authenticated, "authenticated")
            await link.disconnect()
            await peripheral.disconnections.get()

            link = await central.connect(PERIPHERAL)
            connection = await peripheral.connections.get()
            assert not link.connection.is_encrypted, "encrypted before it was asked for"
            await refuses(link, secret)
            await link.connection.encrypt()
            await use_encrypted(link, connection, peripheral)
            await link.disconnect()


for each in pairing.METHODS:
    pairs(each)


async def refuses(link: Link, handle: int):
    try:
        await link.read(handle)
    except ATTError as error:
        assert error.name in ("insufficientEncryption", "insufficientAuthentication"), error
    else:
        raise AssertionError("a value that needs encryption was read without")


async def use_encrypted(link: Link, connection, peripheral: bumble.Peripheral):
    """Checks that both ends report encryption, and that data flows in both directions."""
    async with asyncio.timeout(5):
        while not connection.is_encrypted:
            await pairing.encryption_of(connection)
    assert link.connection.is_encrypted, "the central's end is not encrypted"
    handles = {uuid: each.handle for uuid, each in peripheral.characteristics.items()}
    expect(await link.read(handles[bumble.ENCRYPTED]), b"secret", "the encrypted value")
    await link.write(handles[bumble.ENCRYPTED], b"secret")
    await converse(link, peripheral)


@contextlib.asynccontextmanager
async def bonded_hosts(world: World):
    """Two hosts that have paired and are connected again: central, peripheral, and the link at each end."""
    async with two_hosts(world.adapter) as (central, peripheral):
        pairing.make_ready(pairing.METHODS[0], central, peripheral)
        link = await central.connect(PERIPHERAL)
        await pairing.pair(link.connection, await peripheral.connections.get())
        await link.disconnect()
        await peripheral.disconnections.get()
        link = await central.connect(PERIPHERAL)
        yield central, peripheral, link, await peripheral.connections.get()


@test("a link whose ends have different keys ends with a MIC failure", presets=OURS)
async def wrong_key(world: World):
    async with bonded_hosts(world) as (central, peripheral, link, _):
        (await pairing.keys(central, peripheral)).ltk = PairingKeys.Key(bytes(16))
        attempt = asyncio.ensure_future(link.connection.encrypt())
        # A receiver that cannot authenticate a packet ends the link at once without a message; its peer waits in vain
        # (Vol 6, Part B, 5.1.3.1).
        expect(await peripheral.disconnections.get(), MIC_FAILURE, "the peripheral's reason")
        assert await link.disconnected in (MIC_FAILURE, CONNECTION_TIMEOUT), "the central's reason"
        with contextlib.suppress(asyncio.CancelledError, HCI_Error):
            await attempt
            raise AssertionError("the link was encrypted")
        link = await central.connect(PERIPHERAL)
        expect(await link.read(peripheral.characteristics[bumble.LONG].handle), bumble.LONG_VALUE, "a value")


@test("a link is not encrypted if the peripheral has no key, and continues", presets=OURS)
async def no_key(world: World):
    async with bonded_hosts(world) as (central, peripheral, link, connection):
        await peripheral.device.keystore.delete(str(central.device.static_address))
        try:
            await link.connection.encrypt()
        except HCI_Error as error:
            expect(error.error_code, PIN_OR_KEY_MISSING, "the status")
        else:
            raise AssertionError("the link was encrypted")
        assert not link.connection.is_encrypted and not connection.is_encrypted, "the link is encrypted"
        await converse(link, peripheral)


@test("the peer of a host that vanishes detects it at the supervision timeout", presets=OURS)
async def vanishing(world: World):
    async with two_hosts(world.adapter) as (central, peripheral), Central(world.adapter) as bystander:
        await central.connect(PERIPHERAL)
        connection = await peripheral.connections.get()
        timeout = connection.parameters.supervision_timeout / 1000
        await peripheral.advertise()
        other = await bystander.connect(PERIPHERAL)
        started = asyncio.get_running_loop().time()
        central.transport.sink.transport.abort()
        expect(await peripheral.disconnections.get(), CONNECTION_TIMEOUT, "the reason")
        taken = asyncio.get_running_loop().time() - started
        assert taken >= timeout / 2, f"after {taken:.3f} s; the timeout is {timeout} s"
        await converse(other, peripheral)


@test("Bumble and ble scan get extended advertising data of 1,650 bytes completely", presets=OURS)
async def extended_data(world: World):
    async with bumble.Peripheral(world.adapter) as peripheral, Central(world.adapter) as central:
        expect(await peripheral.maximum_advertising_data_length(), 1650, "the maximum")
        data = b"".join(
            bytes([length - 1, 0xFF, index, 0xFF]) + bytes((index + place) % 256 for place in range(length - 4))
            for index, length in enumerate([250] * 6 + [150])
        )
        expect(len(data), 1650, "the length of the data")
        await peripheral.advertise_extended(data)
        async with joined_reports(central, peripheral) as queue:
            for _ in range(3):
                expect(await queue.get(), data, "the data that Bumble got")
        async with world.start("scan", "--duration", "20") as process:
            event = await process.event("advertisement", address=peripheral.address)
        found = b"".join(
            bytes([3 + len(value) // 2, 0xFF]) + bytes.fromhex(company)[::-1] + bytes.fromhex(value)
            for company, value in event["manufacturerData"].items()
        )
        expect(found, data, "the data that ble scan got")


@contextlib.asynccontextmanager
async def joined_reports(central: Central, peripheral: bumble.Peripheral):
    """The data of each extended advertisement of a peripheral, joined from its reports. Bumble itself does not join
    them."""
    queue: asyncio.Queue = asyncio.Queue()
    parts: list[bytes] = []

    def take(report: HCI_LE_Extended_Advertising_Report_Event.Report):
        if report.address != peripheral.device.static_address:
            return
        parts.append(report.data)
        # Bits 5 and 6: 0 is complete, 1 is to be continued, 2 is truncated (Vol 4, Part E, 7.7.65.13).
        status = report.event_type >> 5 & 3
        if status != 1:
            queue.put_nowait(b"".join(parts) if status == 0 else None)
            parts.clear()

    central.device.host.on("advertising_report", take)
    try:
        async with central.scan(active=False):
            yield queue
    finally:
        central.device.host.remove_listener("advertising_report", take)


@test("Bumble connects to an extended advertisement, and to one on the 2M PHY", presets=OURS)
async def extended_connection(world: World):
    async with bumble.Peripheral(world.adapter, address=PERIPHERAL) as peripheral, Central(world.adapter) as central:
        for phy in (1, 2):
            await peripheral.device.create_advertising_set(
                advertising_parameters=AdvertisingParameters(
                    advertising_event_properties=AdvertisingEventProperties(is_connectable=True),
                    primary_advertising_interval_min=20,
                    primary_advertising_interval_max=20,
                    secondary_advertising_phy=phy,
                ),
                random_address=peripheral.device.static_address,
                advertising_data=peripheral.advertising_data,
            )
            preferences = {each: ConnectionParametersPreferences() for each in (1, 2)}
            link = Link(
                await central.device.connect(Address(PERIPHERAL), connection_parameters_preferences=preferences)
            )
            await link.exchange_mtu()
            connected = await link.connection.get_phy()
            expect((connected.tx_phy, connected.rx_phy), (phy, phy), "the PHYs")
            await converse(link, peripheral)
            await link.disconnect()
            await peripheral.disconnections.get()


@test("Bumble synchronizes with a periodic train, gets its complete data, and detects its end", presets=OURS)
async def periodic(world: World):
    async with bumble.Peripheral(world.adapter) as peripheral, Central(world.adapter) as central:
        for length in (20, 1650):
            data = b"".join(
                bytes([9, 0xFF, 0xFF, 0xFF, *index.to_bytes(2, "big"), 1, 2, 3, 4]) for index in range(length // 10)
            )
            advertising = await peripheral.advertise_periodically(data, sid=length % 16)
            reports: asyncio.Queue = asyncio.Queue()
            lost = asyncio.Event()
            async with central.scan():
                sync = await central.device.create_periodic_advertising_sync(
                    peripheral.device.static_address, sid=length % 16, sync_timeout=1
                )
                sync.on(PeriodicAdvertisingSync.EVENT_PERIODIC_ADVERTISEMENT, reports.put_nowait)
                sync.on(PeriodicAdvertisingSync.EVENT_LOSS, lost.set)
                for _ in range(5):
                    report = await reports.get()
                    assert not report.is_truncated, "cut off"
                    expect(report.data_bytes, data, f"{length} bytes")
            assert sync.state == PeriodicAdvertisingSync.State.ESTABLISHED, sync.state
            expect(sync.periodic_advertising_interval, 20, "the interval")
            await advertising.stop_periodic()
            await lost.wait()
            # Bumble keeps a lost train, and confuses it with the next one of the same handle.
            central.device.periodic_advertising_syncs.remove(sync)
            await advertising.stop()
            await advertising.remove()


@test("controllers make and resolve the private addresses of Bumble hosts that have paired", presets=OURS)
async def private_addresses(world: World):
    settings = {"address_resolution_offload": True, "address_generation_offload": True}
    async with two_hosts(world.adapter, **settings) as (central, peripheral):
        pairing.make_ready(pairing.METHODS[0], central, peripheral)
        link = await central.connect(PERIPHERAL)
        await pairing.pair(link.connection, await peripheral.connections.get())
        await link.disconnect()
        # Bumble restarts advertising in a task. If it is stopped before that, it starts nevertheless.
        await peripheral.disconnections.get()
        async with asyncio.timeout(10):
            while not peripheral.device.legacy_advertising_set.enabled:
                await asyncio.sleep(0.01)
        await peripheral.device.stop_advertising()

        identity = Address(PERIPHERAL, Address.RANDOM_IDENTITY_ADDRESS)
        async with Central(world.adapter, address="F0:00:00:00:00:03") as stranger:
            await peripheral.device.send_sync_command(
                HCI_LE_Set_Resolvable_Private_Address_Timeout_Command(rpa_timeout=1)
            )
            await peripheral.device.create_advertising_set(
                advertising_parameters=AdvertisingParameters(
                    advertising_event_properties=AdvertisingEventProperties(
                        is_connectable=True, is_scannable=True, is_legacy=True
                    ),
                    primary_advertising_interval_min=20,
                    primary_advertising_interval_max=20,
                    own_address_type=OwnAddressType.RESOLVABLE_OR_RANDOM,
                    peer_address=Address(CENTRAL),
                ),
                random_address=peripheral.device.static_address,
                advertising_data=peripheral.advertising_data,
            )
            seen = set()
            async with stranger.scan(active=False) as queue:
                while len(seen) < 2:  # the address changes every second
                    address = (await queue.get()).address
                    assert address.is_resolvable, f"{address} is not resolvable"
                    seen.add(str(address))
        async with central.scan(active=False) as queue:
            address = (await queue.get()).address
            expect(address, identity, "what the central sees")
            expect(address.address_type, identity.address_type, "its type")
        link = Link(
            await central.device.connect(
                Address(PERIPHERAL), own_address_type=OwnAddressType.RESOLVABLE_OR_RANDOM
            )
        )
        peer = link.connection.peer_resolvable_address
        assert peer is not None and peer.is_resolvable, f"the central is told of {peer}"
        await link.connection.encrypt()
        await link.exchange_mtu()
        expect(await link.read(peripheral.characteristics[bumble.ENCRYPTED].handle), b"secret", "the encrypted value")
