"""Connections of `ble` and Bumble: subrate, transmit powers and PHYs, requested and changed by either device."""

import asyncio
import dataclasses

from bumble import hci
from bumble.hci import metadata

from harness import World, expect, test
from meeting import PERIPHERAL, two_hosts

# rootcanal 1.10.0 knows neither subrates nor transmit powers of connections.
PRESETS = ("OURS", "NEWER")
SUBRATES = {"le_subrate_enabled": True}
# rootcanal compares the supervision timeout with the interval as if both had the same unit. So the timeouts are long.
DEADLINE = 10


async def changed(connection, action=None):
    """Waits for a change of a connection's parameters, which an action of Bumble may cause."""
    change = asyncio.get_running_loop().create_future()

    def done(*_):
        if not change.done():
            change.set_result(connection.parameters)

    connection.on(connection.EVENT_CONNECTION_PARAMETERS_UPDATE, done)
    try:
        async with asyncio.timeout(DEADLINE):
            if action is not None:
                await action
            return await change
    finally:
        connection.remove_listener(connection.EVENT_CONNECTION_PARAMETERS_UPDATE, done)


def subrate(parameters):
    return (parameters.subrate_factor, parameters.continuation_number, parameters.peripheral_latency)


def of_event(event: dict):
    return (event["subrateFactor"], event["continuationNumber"], event["latency"])


@test("ble link requests a subrate of Bumble, and reports the one that Bumble requests", PRESETS)
async def subrates(world: World):
    async with world.peripheral(settings=SUBRATES) as peripheral:
        await peripheral.advertise()
        options = ("--subrate", "2-10", "--continuation", "3", "--latency", "1", "--supervision-timeout", "10")
        async with world.start("link", peripheral.address, *options) as process:
            connection = await peripheral.connections.get()
            event = await process.event("link")
            expect(of_event(event), (10, 3, 1), "subrate")
            expect((event["role"], event["supervisionTimeoutMilliseconds"]), ("central", 10_000), "role and timeout")
            while subrate(connection.parameters) != (10, 3, 1):
                await changed(connection)
            # rootcanal refuses the requests of peripherals whose timeouts are long enough (Vol 6, Part B, 5.1.20).
            if world.preset.name == "OURS":
                # The central accepts 2 to 10 from its peer, as it has requested.
                await connection.update_subrate(3, 5, 0, 4, 10_000)
                event = await process.event("parametersChanged")
                expect(of_event(event), (5, 4, 0), "changed subrate")
                expect(subrate(connection.parameters), (5, 4, 0), "Bumble's subrate")
            (await process.interrupt()).succeeded()


@test("ble link refuses a subrate that Bumble's host does not support", PRESETS)
async def unsupported_subrate(world: World):
    async with world.peripheral() as peripheral:
        await peripheral.advertise()
        outcome = await world.ble("link", peripheral.address, "--subrate", "2-10")
        outcome.failed("subrated connections", peripheral.address, "--subrating")


@test("Bumble as the central subrates a connection to ble serve, unless that does not allow it", PRESETS)
async def served_subrate(world: World):
    path = world.file("profile.json", {"name": "Subrated", "address": PERIPHERAL, "services": []})
    async with world.start("serve", path, "--subrating") as process, world.central(settings=SUBRATES) as central:
        await process.event("ready")
        link = await central.connect(PERIPHERAL)
        await changed(link.connection, link.connection.update_subrate(2, 10, 0, 3, 10_000))
        expect(subrate(link.connection.parameters), (10, 3, 0), "subrate")
        (await process.interrupt()).succeeded()
    # rootcanal does not look at the features of the peer.
    if world.preset.name == "OURS":
        async with world.start("serve", path) as process, world.central(settings=SUBRATES) as central:
            await process.event("ready")
            link = await central.connect(PERIPHERAL)
            try:
                await link.connection.update_subrate(2, 10, 0, 3, 10_000)
                raise AssertionError("it was accepted")
            except hci.HCI_Error as error:
                expect(error.error_code, 0x1A, "error")
            (await process.interrupt()).succeeded()


@test("ble link reads the transmit powers of both devices", PRESETS)
async def powers(world: World):
    async with world.peripheral() as peripheral:
        await peripheral.advertise()
        async with world.start("link", peripheral.address) as process:
            event = await process.event("link")
            for member in ("transmitPower", "maximumTransmitPower", "peerTransmitPower"):
                assert isinstance(event[member], int) and -127 <= event[member] <= 20, f"{member} is {event[member]}"
            (await process.interrupt()).succeeded()


@test("ble link changes the PHYs, and reports those that Bumble requests", PRESETS)
async def phys(world: World):
    async with world.peripheral() as peripheral:
        await peripheral.advertise()
        async with world.start("link", peripheral.address, "--phy", "2m") as process:
            await peripheral.connections.get()
            event = await process.event("link")
            expect((event["transmitPHY"], event["receivePHY"]), ("LE 2M", "LE 2M"), "PHYs")
            (await process.interrupt()).succeeded()
    # A controller accepts the PHYs that its own host prefers. So Bumble changes those of a link without a preference.
    async with world.peripheral() as peripheral:
        await peripheral.advertise()
        async with world.start("link", peripheral.address) as process:
            connection = await peripheral.connections.get()
            event = await process.event("link")
            expect((event["transmitPHY"], event["receivePHY"]), ("LE 1M", "LE 1M"), "PHYs")
            await connection.set_phy([hci.Phy.LE_2M], [hci.Phy.LE_2M])
            event = await process.event("physChanged")
            expect((event["transmitPHY"], event["receivePHY"]), ("LE 2M", "LE 2M"), "changed PHYs")
            (await process.interrupt()).succeeded()


@test("ble link prefers a coding of the LE Coded PHY", ("OURS",))
async def coding(world: World):
    for each in ("s2", "s8"):
        async with world.peripheral() as peripheral:
            await peripheral.advertise()
            options = ("--phy", "coded", "--coding", each)
            async with world.start("link", peripheral.address, *options) as process:
                event = await process.event("link")
                expect((event["transmitPHY"], event["receivePHY"]), ("LE Coded", "LE Coded"), "PHYs")
                (await process.interrupt()).succeeded()


@test("ble link reports the path loss of a connection", ("OURS",))
async def path_loss(world: World):
    async with world.peripheral() as peripheral:
        await peripheral.advertise()
        # Devices at the same place are taken to be a tenth of a metre apart: 20 dB.
        outcome = await world.ble("link", peripheral.address, "--path-loss", "30-60", "--count", "1")
        event = outcome.succeeded().events[-1]
        expect((event["event"], event["pathLoss"], event["zone"]), ("pathLossZoneEntered", 20, "low"), "path loss")


# Bumble has no types for the transmit powers of connections.


@dataclasses.dataclass
class PowerReturnParameters(hci.HCI_StatusReturnParameters):
    connection_handle: int = dataclasses.field(metadata=metadata(2))
    phy: int = dataclasses.field(metadata=metadata(1))
    current_tx_power_level: int = dataclasses.field(metadata=metadata(-1))
    max_tx_power_level: int = dataclasses.field(metadata=metadata(-1))


@hci.HCI_SyncCommand.sync_command(PowerReturnParameters)
@dataclasses.dataclass
class HCI_LE_Enhanced_Read_Transmit_Power_Level_Command(hci.HCI_SyncCommand[PowerReturnParameters]):
    connection_handle: int = dataclasses.field(metadata=metadata(2))
    phy: int = dataclasses.field(metadata=metadata(1))


@hci.HCI_Command.command
@dataclasses.dataclass
class HCI_LE_Read_Remote_Transmit_Power_Level_Command(hci.HCI_AsyncCommand):
    connection_handle: int = dataclasses.field(metadata=metadata(2))
    phy: int = dataclasses.field(metadata=metadata(1))


@hci.HCI_LE_Meta_Event.event
@dataclasses.dataclass
class HCI_LE_Transmit_Power_Reporting_Event(hci.HCI_LE_Meta_Event):
    status: int = dataclasses.field(metadata=metadata(1))
    connection_handle: int = dataclasses.field(metadata=metadata(2))
    reason: int = dataclasses.field(metadata=metadata(1))
    phy: int = dataclasses.field(metadata=metadata(1))
    tx_power_level: int = dataclasses.field(metadata=metadata(-1))
    tx_power_level_flag: int = dataclasses.field(metadata=metadata(1))
    delta: int = dataclasses.field(metadata=metadata(-1))


@test("two hosts of Bumble subrate a connection of ble controller and read its transmit powers", ("OURS",))
async def controller(world: World):
    async with two_hosts(world.adapter, **SUBRATES) as (central, peripheral):
        default = hci.HCI_LE_Set_Default_Subrate_Command(
            subrate_min=1, subrate_max=6, max_latency=2, continuation_number=1, supervision_timeout=500
        )
        await central.device.send_sync_command(default)
        link = await central.connect(PERIPHERAL)
        connection = await peripheral.connections.get()
        await changed(connection, connection.update_subrate(4, 20, 1, 0, 10_000))
        expect(subrate(connection.parameters), (6, 1, 1), "subrate that the central accepts")
        await changed(link.connection, link.connection.update_subrate(2, 10, 0, 3, 10_000))
        expect(subrate(link.connection.parameters), (10, 3, 0), "subrate of the central")
        while subrate(connection.parameters) != (10, 3, 0):
            await changed(connection)

        command = HCI_LE_Enhanced_Read_Transmit_Power_Level_Command(connection_handle=link.connection.handle, phy=1)
        own = await central.device.send_sync_command(command)
        expect((own.current_tx_power_level, own.max_tx_power_level), (0, 0), "own power")
        reports: asyncio.Queue = asyncio.Queue()
        central.device.host.on_hci_le_transmit_power_reporting_event = reports.put_nowait
        mask = hci.HCI_LE_Set_Event_Mask_Command(le_event_mask=(0xFFFF_FFFF_FFFF_FFFF).to_bytes(8, "little"))
        await central.device.send_sync_command(mask)
        await central.device.send_async_command(
            HCI_LE_Read_Remote_Transmit_Power_Level_Command(connection_handle=link.connection.handle, phy=1)
        )
        async with asyncio.timeout(DEADLINE):
            report = await reports.get()
        expect((report.status, report.reason, report.tx_power_level), (0, 2, 0), "the peer's power")
