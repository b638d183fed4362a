"""Programs on bleak, through bleak-esphome and habluetooth."""

import asyncio
import contextlib

import bleak
import bleak_esphome
import bumble_peripheral as bumble
import habluetooth
from aioesphomeapi import ReconnectLogic
from harness import Gateway, World, expect, test, until


class Home:
    """What Home Assistant does with a gateway: a client that reconnects, and a scanner of habluetooth."""

    manager: habluetooth.BluetoothManager | None = None

    def __init__(self, gateway: Gateway):
        self.client = gateway.client()
        self.sessions = 0
        self.is_connected = False
        self.logic = ReconnectLogic(client=self.client, on_connect=self.on_connect, on_disconnect=self.on_disconnect)
        self.cleanup = contextlib.ExitStack()

    async def __aenter__(self):
        if Home.manager is None:
            Home.manager = habluetooth.BluetoothManager(NoAdapters(), NoSlots())
            habluetooth.set_manager(Home.manager)
            await Home.manager.async_setup()
        await self.logic.start()
        await until(lambda: self.is_connected, "the connection to the gateway", 20)
        return self

    async def __aexit__(self, *_):
        await self.logic.stop()
        await self.client.disconnect(force=True)
        self.cleanup.close()

    async def on_connect(self):
        information = await self.client.device_info()
        data = bleak_esphome.connect_scanner(self.client, information, True)
        self.scanner = data.scanner
        self.callbacks = data.disconnect_callbacks
        self.device = data.bluetooth_device
        self.cleanup.callback(data.scanner.async_setup())
        self.cleanup.callback(Home.manager.async_register_scanner(data.scanner))
        self.sessions += 1
        self.is_connected = True

    async def on_disconnect(self, expected: bool):
        self.is_connected = False
        self.device.async_set_unavailable()
        for callback in list(self.callbacks):
            callback()
        self.callbacks.clear()
        self.cleanup.close()

    async def found(self, address: str, deadline: float = 20):
        """Waits until the device is discovered in this session, and returns it."""
        await until(lambda: address in self.scanner.discovered_addresses, f"the discovery of {address}", deadline)
        return Home.manager.async_ble_device_from_address(address, True)


class NoAdapters:
    """This machine has no adapters of its own."""

    adapters: dict = {}
    history: dict = {}
    default_adapter = "hci0"

    async def refresh(self):
        """Finds nothing."""


class NoSlots:
    """Adapters of this machine have no connections."""

    def __getattr__(self, name):
        return lambda *arguments, **options: None


@contextlib.asynccontextmanager
async def devices(world: World, count: int, interval: float = 100):
    """Bumble peripherals that advertise."""
    async with contextlib.AsyncExitStack() as stack:
        found = []
        for index in range(count):
            peer = world.peripheral(name=f"Device {index}", address=f"F0:02:00:00:{world_number(world):02X}:{index:02X}")
            found.append(await stack.enter_async_context(peer))
            await found[-1].advertise(interval=interval)
        yield found


def world_number(world: World) -> int:
    """The number of the test, so that tests which share the manager have devices of their own."""
    return int(world.label) % 256


async def exchange(device, peer, count: int = 20, on_disconnected=None):
    """Connects, reads, writes, and receives notifications and indications in order."""
    async with bleak.BleakClient(device, disconnected_callback=on_disconnected, timeout=30) as client:
        expect(bytes(await client.read_gatt_char(bumble.LONG)), bumble.LONG_VALUE, "the long value")
        await client.write_gatt_char(bumble.STORE, peer.name.encode(), response=True)
        expect(bytes(await client.read_gatt_char(bumble.STORE)), peer.name.encode(), "the written value")
        for uuid, is_indicated in ((bumble.NOTIFY, False), (bumble.INDICATE, True)):
            values = asyncio.Queue()
            await client.start_notify(uuid, lambda _, value, values=values: values.put_nowait(bytes(value)))
            sent = [index.to_bytes(4, "big") for index in range(count)]
            await peer.subscriptions.get()
            await peer.notify_all(uuid, sent, is_indicated)
            expect([await values.get() for _ in sent], sent, "the values")
            await client.stop_notify(uuid)


@test("bleak: discovery, connection, values, notifications", deadline=90, group="bleak")
async def plain_client(world: World):
    async with world.gateway() as gateway, devices(world, 1) as [peer], Home(gateway) as home:
        await exchange(await home.found(peer.address), peer)
        expect((await gateway.status())["connections"], [], "the connections afterwards")


@test("bleak: a scanner finds the name and the service data", group="bleak")
async def scanner(world: World):
    async with world.gateway() as gateway, devices(world, 1) as [peer], Home(gateway) as home:
        await home.found(peer.address)
        await until(
            lambda: Home.manager.async_last_service_info(peer.address, True).name == peer.name, "the name of the device"
        )
        information = Home.manager.async_last_service_info(peer.address, True)
        expect(information.manufacturer_data[bumble.COMPANY], bumble.MANUFACTURER_DATA, "the manufacturer data")
        expect(list(information.service_data.values()), [b"\x64"], "the service data")


@test("bleak: 20 devices at once", deadline=240, group="bleak")
async def twenty_devices(world: World):
    async with world.gateway("--connection-limit", "20") as gateway, devices(world, 20, 50) as peers, Home(gateway) as home:
        async with contextlib.AsyncExitStack() as stack:
            clients = []
            for peer in peers:
                clients.append(await stack.enter_async_context(bleak.BleakClient(await home.found(peer.address), timeout=30)))
            expect(len((await gateway.status())["connections"]), 20, "the connections")

            async def follow(client, peer):
                values = asyncio.Queue()
                await client.start_notify(bumble.NOTIFY, lambda _, value: values.put_nowait(bytes(value)))
                await peer.subscriptions.get()
                sent = [index.to_bytes(4, "big") for index in range(50)]
                await peer.notify_all(bumble.NOTIFY, sent)
                expect([await values.get() for _ in sent], sent, f"the values of {peer.name}")

            await asyncio.gather(*(follow(*pair) for pair in zip(clients, peers, strict=True)))


@test("bleak: a device that goes away is reported, and is found again", deadline=120, group="bleak")
async def device_returns(world: World):
    async with world.gateway() as gateway, Home(gateway) as home:
        async with devices(world, 1) as [peer]:
            gone = asyncio.Event()
            client = bleak.BleakClient(await home.found(peer.address), disconnected_callback=lambda _: gone.set(), timeout=30)
            await client.connect()
            # The controller of the device is closed: its link is lost without a word.
            await peer.transport.close()
            async with asyncio.timeout(60):
                await gone.wait()
        async with devices(world, 1) as [peer]:
            await exchange(await home.found(peer.address), peer)


@test("bleak: clients recover from a restart of the gateway", deadline=180, group="bleak")
async def gateway_restart(world: World):
    async with world.gateway() as gateway, devices(world, 2) as peers, Home(gateway) as home:
        gone = asyncio.Event()
        device = await home.found(peers[0].address)
        client = bleak.BleakClient(device, disconnected_callback=lambda _: gone.set(), timeout=30)
        await client.connect()
        await gateway.kill()
        async with asyncio.timeout(30):
            await gone.wait()
        await gateway.start()
        await until(lambda: home.sessions == 2 and home.is_connected, "the second session", 120)
        for peer in peers:
            await exchange(await home.found(peer.address), peer, 5)


@test("bleak: clients recover from a restart of the controller", deadline=180, group="bleak")
async def controller_restart(world: World):
    async with world.gateway() as gateway, Home(gateway) as home:
        async with devices(world, 1) as [peer]:
            await exchange(await home.found(peer.address), peer, 5)
        await world.controllers.kill()
        await world.controllers.start()
        async with devices(world, 1) as [peer]:
            await scans_again(gateway)
            before = Home.manager.async_last_service_info(peer.address, True)
            await until(
                lambda: Home.manager.async_last_service_info(peer.address, True) is not before,
                "an advertisement after the restart",
                60,
            )
            await exchange(await home.found(peer.address), peer, 5)
        expect(home.sessions, 1, "the sessions: a client does not notice the controller")


async def scans_again(gateway: Gateway):
    """Waits until the gateway's adapter is open and scans."""
    async with asyncio.timeout(60):
        while True:
            (adapter,) = (await gateway.status())["adapters"]
            if adapter["isOpen"] and adapter["isScanning"]:
                return
            await asyncio.sleep(0.1)
