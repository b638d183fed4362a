"""Sessions, advertisements and the scanner, by aioesphomeapi."""

import asyncio
import contextlib
import re

from aioesphomeapi import BluetoothProxyFeature, BluetoothScannerMode, BluetoothScannerState
from aioesphomeapi.api_pb2 import BluetoothLERawAdvertisementsResponse, PingRequest, PingResponse
from harness import Gateway, World, expect, number, test, test_with_and_without_encryption, until

ALL_FEATURES = (
    BluetoothProxyFeature.PASSIVE_SCAN
    | BluetoothProxyFeature.ACTIVE_CONNECTIONS
    | BluetoothProxyFeature.REMOTE_CACHING
    | BluetoothProxyFeature.PAIRING
    | BluetoothProxyFeature.CACHE_CLEARING
    | BluetoothProxyFeature.RAW_ADVERTISEMENTS
    | BluetoothProxyFeature.FEATURE_STATE_AND_MODE
    | BluetoothProxyFeature.CONNECTION_PARAMS_SETTING
)


class Advertisements:
    """The raw advertisements that a client receives, in their order."""

    def __init__(self, client):
        self.received = []
        self.batches = []
        self.unsubscribe = client.subscribe_bluetooth_le_raw_advertisements(self.add)

    def add(self, batch):
        self.batches.append(len(batch.advertisements))
        self.received += batch.advertisements

    def of(self, address: str):
        return [each for each in self.received if each.address == number(address)]


@test_with_and_without_encryption("hello, device information and entities")
async def session(world: World, gateway: Gateway):
    async with gateway.connected() as client:
        information, (entities, services) = await client.device_info(), await client.list_entities_services()
        expect(information.name, "test-gateway", "the name")
        assert re.fullmatch("([0-9A-F]{2}:){5}[0-9A-F]{2}", information.mac_address), information.mac_address
        assert information.bluetooth_mac_address, "no Bluetooth address"
        flags = information.bluetooth_proxy_feature_flags_compat(client.api_version)
        expect(BluetoothProxyFeature(flags), ALL_FEATURES, "the features")
        expect((entities, services), ([], []), "the entities")
        expect(information.project_name, "swift-ble.gateway", "the project")
        expect(information.uses_password, False, "whether a password is used")


@test_with_and_without_encryption("a ping is answered")
async def ping(world: World, gateway: Gateway):
    async with gateway.connected() as client:
        for _ in range(3):
            await client._connection.send_message_await_response(PingRequest(), PingResponse)


@test("the name that a client expects is the gateway's")
async def expected_name(world: World):
    async with world.gateway() as gateway, gateway.connected(expected_name="test-gateway"):
        pass


@test_with_and_without_encryption("a client disconnects in order, and the gateway forgets it")
async def disconnect(world: World, gateway: Gateway):
    client = gateway.client()
    await client.connect(login=True)
    expect(len((await gateway.status())["clients"]), 1, "the clients while it is connected")
    await client.disconnect()
    await no_clients(gateway)


async def no_clients(gateway: Gateway):
    """Waits until the gateway has no clients."""
    async with asyncio.timeout(10):
        while (await gateway.status())["clients"]:
            pass


@test_with_and_without_encryption("advertisements arrive with their scan responses, until they are unsubscribed")
async def advertisements(world: World, gateway: Gateway):
    async with world.peripheral(name="Sensor") as sensor, gateway.connected() as client:
        await sensor.advertise()
        found = Advertisements(client)
        whole = sensor.advertising_data + sensor.scan_response_data
        await until(
            lambda: any(whole == each.data for each in found.of(sensor.address)),
            "an advertisement together with its scan response",
        )
        first = found.of(sensor.address)[0]
        expect(first.address_type, 1, "the type of the address")
        assert -127 <= first.rssi <= 20, first.rssi
        assert max(found.batches) <= 16, f"a batch of {max(found.batches)}"
        found.unsubscribe()
        # The client no longer calls the handler of the subscription. This one takes whatever the gateway still sends.
        client._connection.add_message_callback(found.add, (BluetoothLERawAdvertisementsResponse,))
        # The answer to a request after it shows that the subscription has ended.
        await client.device_info()
        await client.device_info()
        count = len(found.received)
        async with gateway.connected() as other:
            others = Advertisements(other)
            await advertise_value(sensor, 7)
            await until(lambda: 7 in values(others, sensor.address), "a value for a client that is subscribed")
        await client.device_info()
        expect(len(found.received), count, "the advertisements after unsubscribing")


@test("each changed advertisement arrives, in order, at two clients")
async def changed_advertisements(world: World):
    async with (
        world.gateway() as gateway,
        world.peripheral(name="Counter") as sensor,
        gateway.connected() as first,
        gateway.connected() as second,
    ):
        clients = [Advertisements(first), Advertisements(second)]
        for value in range(20):
            await advertise_value(sensor, value)
            for client in clients:
                await until(lambda: value in values(client, sensor.address), f"value {value}")
        for client in clients:
            found = values(client, sensor.address)
            expect(found, sorted(found), "the order")
            expect(sorted(set(found)), list(range(20)), "the values")


async def advertise_value(sensor, value: int):
    """Advertises a number, without a scan response."""
    from bumble.core import AdvertisingData
    from bumble.device import AdvertisingType
    from bumble.hci import OwnAddressType

    if sensor.device.is_advertising:
        await sensor.device.stop_advertising()
    data = bytes(AdvertisingData([(AdvertisingData.MANUFACTURER_SPECIFIC_DATA, b"\xff\xff" + value.to_bytes(4, "big"))]))
    await sensor.device.start_advertising(
        advertising_type=AdvertisingType.UNDIRECTED,
        own_address_type=OwnAddressType.RANDOM,
        advertising_data=data,
        advertising_interval_min=20,
        advertising_interval_max=20,
    )


def values(advertisements: Advertisements, address: str) -> list[int]:
    """The numbers that the device has advertised, in the order of their arrival."""
    return [int.from_bytes(each.data[4:8], "big") for each in advertisements.of(address)]


@test_with_and_without_encryption("the scanner reports its state, and changes its mode")
async def scanner(world: World, gateway: Gateway):
    async with world.peripheral(name="Sensor") as sensor, gateway.connected() as client:
        await sensor.advertise()
        states = []
        client.subscribe_bluetooth_scanner_state(states.append)
        found = Advertisements(client)

        def reported(mode):
            return lambda: states and (states[-1].state, states[-1].mode) == (BluetoothScannerState.RUNNING, mode)

        await until(reported(BluetoothScannerMode.ACTIVE), "an active scan")
        client.bluetooth_scanner_set_mode(BluetoothScannerMode.PASSIVE)
        await until(reported(BluetoothScannerMode.PASSIVE), "a passive scan")
        name = sensor.scan_response_data
        start = len(found.received)
        # The state is reported before the scan changes, and some advertisements of the active scan follow it.
        await until(
            lambda: len(found.received) >= start + 20 and not any(name in each.data for each in found.received[-20:]),
            "20 advertisements without a scan response",
        )
        client.bluetooth_scanner_set_mode(BluetoothScannerMode.ACTIVE)
        await until(reported(BluetoothScannerMode.ACTIVE), "an active scan again")
        await until(lambda: any(name in each.data for each in found.received[-20:]), "a scan response again")


@test("a client that reads nothing loses advertisements, and no other client does", deadline=180)
async def slow_reader(world: World):
    from hostile_tests import RawClient

    async with world.gateway(encrypted=False) as gateway, contextlib.AsyncExitStack() as stack:
        # Together they send more than 100 advertisements a second. 1,024 of them wait for a slow client.
        for index in range(4):
            address = f"F0:06:00:00:00:{index:02X}"
            sensor = await stack.enter_async_context(world.peripheral(name=f"Sensor {index}", address=address))
            await sensor.advertise()
        client = await stack.enter_async_context(gateway.connected())
        await stack.enter_async_context(RawClient.that_reads_nothing(gateway, subscribes=True))
        found = Advertisements(client)

        def dropped(status: dict) -> dict[str, int]:
            return {each["information"]: each["droppedAdvertisementCount"] for each in status["clients"]}

        await gateway.status_with(lambda status: dropped(status).get("raw"), "the slow client loses advertisements", 90)
        count = len(found.received)
        await until(lambda: len(found.received) > count + 50, "advertisements of the other client", 30)
        expect(dropped(await gateway.status())["test"], 0, "the lost advertisements of the other client")
