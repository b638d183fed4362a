"""Connections to devices, by aioesphomeapi."""

import asyncio
import contextlib

import bumble_peripheral as bumble
from aioesphomeapi import APIConnectionError, BluetoothConnectionDroppedError, BluetoothProxyFeature
from aioesphomeapi.api_pb2 import BluetoothSetConnectionParamsRequest, BluetoothSetConnectionParamsResponse
from aioesphomeapi.core import BluetoothConnectionParamsAPIError, BluetoothGATTAPIError
from controllers import connect_when_listening, free_ports
from harness import Gateway, World, expect, number, test, test_with_and_without_encryption, until

CLIENT_CONFIGURATION = "00002902-0000-1000-8000-00805f9b34fb"
RANDOM = 1
CONNECTION_TIMEOUT = 8
ILLEGAL_PARAMETER = 135


class Link:
    """A connection to a device through a gateway, while the context is entered."""

    def __init__(self, client, address: str, address_type: int = RANDOM, has_cache: bool = False, timeout: float = 20):
        self.client = client
        self.address = number(address)
        self.address_type = address_type
        self.has_cache = has_cache
        self.timeout = timeout
        self.states: list[tuple[bool, int, int]] = []

    async def __aenter__(self):
        self.unsubscribe = await self.client.bluetooth_device_connect(
            self.address,
            lambda *state: self.states.append(state),
            timeout=self.timeout,
            feature_flags=BluetoothProxyFeature.REMOTE_CACHING,
            has_cache=self.has_cache,
            address_type=self.address_type,
        )
        return self

    async def __aexit__(self, *_):
        if self.is_connected:
            with contextlib.suppress(APIConnectionError):
                await self.client.bluetooth_device_disconnect(self.address)
        self.unsubscribe()

    @property
    def is_connected(self) -> bool:
        return bool(self.states) and self.states[-1][0]

    async def discover(self):
        """Discovers all services, and keeps the handles of characteristics and descriptors by their UUIDs."""
        found = await self.client.bluetooth_gatt_get_services(self.address)
        self.services = found.services
        self.handles = {}
        self.descriptors = {}
        for service in self.services:
            for characteristic in service.characteristics:
                self.handles.setdefault(characteristic.uuid.lower(), characteristic.handle)
                for descriptor in characteristic.descriptors:
                    self.descriptors.setdefault(
                        (characteristic.uuid.lower(), descriptor.uuid.lower()), descriptor.handle
                    )
        return self

    def handle(self, uuid: str) -> int:
        return self.handles[long(uuid)]

    def descriptor(self, characteristic: str, uuid: str) -> int:
        return self.descriptors[long(characteristic), long(uuid)]

    async def read(self, uuid: str) -> bytes:
        return bytes(await self.client.bluetooth_gatt_read(self.address, self.handle(uuid)))

    async def write(self, uuid: str, value: bytes, response: bool = True):
        await self.client.bluetooth_gatt_write(self.address, self.handle(uuid), value, response)

    async def subscribe(self, uuid: str) -> asyncio.Queue:
        """Subscribes as bleak-esphome does: asks the gateway, then writes the descriptor."""
        values = asyncio.Queue()
        await self.client.bluetooth_gatt_start_notify(
            self.address, self.handle(uuid), lambda _, value: values.put_nowait(bytes(value))
        )
        is_indicated = uuid == bumble.INDICATE
        await self.client.bluetooth_gatt_write_descriptor(
            self.address, self.descriptor(uuid, CLIENT_CONFIGURATION), b"\2\0" if is_indicated else b"\1\0"
        )
        return values


def long(uuid: str) -> str:
    """A UUID of 128 bits in lower case."""
    return uuid.lower() if len(uuid) > 8 else f"{int(uuid, 16):08x}-0000-1000-8000-00805f9b34fb"


@contextlib.asynccontextmanager
async def linked(world: World, gateway: Gateway, **options):
    """A Bumble peripheral, a client, and a connection."""
    async with world.peripheral(name="Peer") as peer:
        await peer.advertise()
        async with gateway.connected() as client, Link(client, peer.address, **options) as link:
            yield peer, client, link


@test_with_and_without_encryption("services, characteristics and descriptors are those of the device")
async def services(world: World, gateway: Gateway):
    async with linked(world, gateway) as (peer, client, link):
        await link.discover()
        found = [
            (
                service.uuid.lower(),
                service.handle,
                [
                    (each.uuid.lower(), each.handle, each.properties, [(d.uuid.lower(), d.handle) for d in each.descriptors])
                    for each in service.characteristics
                ],
            )
            for service in link.services
        ]
        properties = {"broadcast": 1, "read": 2, "writeWithoutResponse": 4, "write": 8, "notify": 16, "indicate": 32,
                      "signedWrite": 64, "extendedProperties": 128}  # fmt: skip
        expected = [
            (
                long(service["uuid"]),
                service["handle"],
                [
                    (
                        long(each["uuid"]),
                        each["valueHandle"],
                        sum(properties[name] for name in each["properties"]),
                        [(long(d["uuid"]), d["handle"]) for d in each["descriptors"]],
                    )
                    for each in service["characteristics"]
                ],
            )
            for service in await peer.table()
            if service["primary"]
        ]
        expect([each for each in found if each[0] in [e[0] for e in expected]], expected, "the services")
        assert link.states[0][0] and link.states[0][1] >= 23, link.states


@test_with_and_without_encryption("values are read, also long and empty ones, and descriptors")
async def reads(world: World, gateway: Gateway):
    async with linked(world, gateway) as (peer, client, link):
        await link.discover()
        expect(await link.read(bumble.LONG), bumble.LONG_VALUE, "the value of 512 bytes")
        expect(await link.read(bumble.EMPTY), b"", "the empty value")
        expect(await link.read(bumble.SHORT), bytes(range(22)), "the value of 22 bytes")
        expect(await link.read(bumble.ODD), bytes(range(253)), "the value of 253 bytes")
        handle = link.descriptor(bumble.LONG, "2901")
        value = bytes(await client.bluetooth_gatt_read_descriptor(link.address, handle))
        expect(value, "Straße über 512 Oktette".encode(), "the descriptor")


@test_with_and_without_encryption("values are written with and without response, and descriptors")
async def writes(world: World, gateway: Gateway):
    async with linked(world, gateway) as (peer, client, link):
        await link.discover()
        for value in (b"short", bytes(range(256)) * 2):
            await link.write(bumble.STORE, value)
            expect(await link.read(bumble.STORE), value, f"the written value of {len(value)} bytes")
        commands = [index.to_bytes(4, "big") for index in range(100)]
        for value in commands:
            await link.write(bumble.SINK, value, response=False)
        await link.write(bumble.SINK, b"last")
        expect(peer.sink.writes, [*commands, b"last"], "the commands, in order")
        handle = link.descriptor(bumble.LONG, bumble.vendor(0x18))
        await client.bluetooth_gatt_write_descriptor(link.address, handle, b"\x12\x34")
        expect(bytes(await client.bluetooth_gatt_read_descriptor(link.address, handle)), b"\x12\x34", "the descriptor")


@test_with_and_without_encryption("notifications and indications arrive in order and completely")
async def notifications(world: World, gateway: Gateway):
    async with linked(world, gateway) as (peer, client, link):
        await link.discover()
        for uuid, count, is_indicated in ((bumble.NOTIFY, 500, False), (bumble.INDICATE, 20, True)):
            values = await link.subscribe(uuid)
            await peer.subscriptions.get()
            sent = [index.to_bytes(4, "big") + bytes(16) for index in range(count)]
            await peer.notify_all(uuid, sent, is_indicated)
            expect([await values.get() for _ in sent], sent, "the values")
            client.bluetooth_gatt_stop_notify(link.address, link.handle(uuid))


@test("refused operations have the codes of the device")
async def errors(world: World):
    async with world.gateway() as gateway, linked(world, gateway) as (peer, client, link):
        await link.discover()

        async def refused(code: int, operation):
            try:
                await operation
            except BluetoothGATTAPIError as error:
                expect(error.error.error, code, "the code")
            else:
                raise AssertionError(f"not refused with {code:#x}")

        await refused(0x80, link.read(bumble.FAILING))
        await refused(0x9F, link.write(bumble.FAILING, b"x"))
        await refused(0x01, client.bluetooth_gatt_read(link.address, 0xFFEE))
        await refused(0x01, client.bluetooth_gatt_write(link.address, 0xFFEE, b"x", True))
        await refused(0x08, link.read(bumble.AUTHORIZED))
        expect(await link.read(bumble.STORE), b"stored", "a value after the errors")


@test("an operation on a device that is not connected is refused")
async def not_connected(world: World):
    async with world.gateway() as gateway, gateway.connected() as client:
        for operation in (
            client.bluetooth_gatt_read(0xF00102030405, 3),
            client.bluetooth_gatt_get_services(0xF00102030405),
        ):
            try:
                await operation
            except (BluetoothGATTAPIError, BluetoothConnectionDroppedError):
                continue
            raise AssertionError("it was not refused")


@test("a connection with cache serves values at the known handles")
async def with_cache(world: World):
    async with world.gateway() as gateway, world.peripheral(name="Peer") as peer, gateway.connected() as client:
        await peer.advertise()
        async with Link(client, peer.address) as link:
            await link.discover()
            handles = link.handles
        async with Link(client, peer.address, has_cache=True) as link:
            link.handles = handles
            expect(await link.read(bumble.STORE), b"stored", "the value")


@test("the connections are counted while they exist")
async def connections_free(world: World):
    async with world.gateway("--connection-limit", "3") as gateway, gateway.connected() as client:
        counts = []
        client.subscribe_bluetooth_connections_free(lambda *count: counts.append(count))
        await until(lambda: counts == [(3, 3, [])], f"the first count; {counts}")
        async with world.peripheral(name="Peer") as peer:
            await peer.advertise()
            async with Link(client, peer.address) as link:
                await until(lambda: counts[-1] == (2, 3, [link.address]), f"a count of one connection; {counts}")
            await until(lambda: counts[-1] == (3, 3, []), "a count without connections")


@test("free connections follow what the controller holds", deadline=120)
async def connections_of_controller(world: World):
    (port,) = free_ports(1)
    with open(world.logs / f"{world.label}-small.log", "ab") as log:
        process = await asyncio.create_subprocess_exec(
            world.ble, "controller", "--listen", f"tcp:127.0.0.1:{port}", "--links", "2",
            stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log,
        )  # fmt: skip
    try:
        (await connect_when_listening(port))[1].close()
        adapter = f"tcp:127.0.0.1:{port}"
        async with contextlib.AsyncExitStack() as stack:
            peers = []
            for index in range(3):
                peer = bumble.Peripheral(adapter, address=f"F0:01:02:03:04:1{index}")
                peers.append(await stack.enter_async_context(peer))
                await peer.advertise()
            gateway = await stack.enter_async_context(world.gateway(adapter=adapter))
            client = await stack.enter_async_context(gateway.connected())
            counts = []
            client.subscribe_bluetooth_connections_free(lambda *count: counts.append(count))
            first = await stack.enter_async_context(Link(client, peers[0].address))
            await stack.enter_async_context(Link(client, peers[1].address))
            await until(lambda: counts and counts[-1][:2] == (18, 20), "18 of 20 are free")
            refused = await stack.enter_async_context(Link(client, peers[2].address))
            expect(refused.states[-1], (False, 0, 17), "the refused connection")
            await until(lambda: counts[-1][:2] == (0, 2), "0 of 2 are free")
            status = await gateway.status()
            expect(status["adapters"][0]["connectionCapacity"], 2, "the capacity")
            await client.bluetooth_device_disconnect(first.address)
            await until(lambda: counts[-1][:2] == (1, 2), "1 of 2 is free")
            third = await stack.enter_async_context(Link(client, peers[2].address))
            assert third.is_connected, third.states
            await until(lambda: counts[-1][:2] == (0, 2), "0 of 2 are free again")
    finally:
        process.terminate()
        await process.wait()


@test("a connection beyond the limit is refused")
async def limit(world: World):
    async with (
        world.gateway("--connection-limit", "1") as gateway,
        world.peripheral(name="One") as one,
        world.peripheral(name="Two", address="F0:01:02:03:04:06") as two,
        gateway.connected() as client,
    ):
        await one.advertise()
        await two.advertise()
        async with Link(client, one.address):
            second = Link(client, two.address, timeout=5)
            try:
                await second.__aenter__()
            except APIConnectionError:
                pass
            expect(second.is_connected, False, "whether the second is connected")
        async with Link(client, two.address) as link:
            expect(link.is_connected, True, "whether it is connected after the first has ended")


@test("an attempt to connect is cancelled, and its slot is free again")
async def cancel(world: World):
    async with world.gateway("--connection-limit", "1") as gateway, gateway.connected() as client:
        counts = []
        client.subscribe_bluetooth_connections_free(lambda *count: counts.append(count))
        attempt = asyncio.ensure_future(Link(client, "F0:00:00:00:00:99").__aenter__())
        await until(lambda: counts and counts[-1][0] == 0, "an allocated slot")
        attempt.cancel()
        await until(lambda: counts[-1][0] == 1, f"a free slot; {counts}")
        async with world.peripheral(name="Peer") as peer:
            await peer.advertise()
            async with Link(client, peer.address) as link:
                expect(link.is_connected, True, "whether the next attempt succeeds")


@test("an attempt without an answer of the device is reported before clients give up")
async def no_answer(world: World):
    async with world.gateway() as gateway, gateway.connected() as client:
        # Home Assistant gives up after 20 s.
        async with Link(client, "F0:00:00:00:00:99", timeout=20) as link:
            expect(link.states, [(False, 0, CONNECTION_TIMEOUT)], "the outcome")


@test("the end of a connection by the device is reported")
async def ended_by_device(world: World):
    async with world.gateway() as gateway, linked(world, gateway) as (peer, client, link):
        connection = await peer.connections.get()
        await connection.disconnect()
        await until(lambda: not link.is_connected, "the end of the connection")


@test("a client disconnects the device")
async def ended_by_client(world: World):
    async with world.gateway() as gateway, linked(world, gateway) as (peer, client, link):
        await client.bluetooth_device_disconnect(link.address)
        await peer.disconnections.get()
        expect(link.is_connected, False, "whether it is connected")
        expect((await gateway.status())["connections"], [], "the connections")


@test("the connections of a client end when it goes")
async def client_gone(world: World):
    async with world.gateway() as gateway, world.peripheral(name="Peer") as peer:
        await peer.advertise()
        client = gateway.client()
        await client.connect(login=True)
        await Link(client, peer.address).__aenter__()
        client._connection.force_disconnect()
        await peer.disconnections.get()
        async with gateway.connected() as other, Link(other, peer.address) as link:
            expect(link.is_connected, True, "whether another client can connect")


@test("two clients have a connection each")
async def two_clients(world: World):
    async with (
        world.gateway() as gateway,
        world.peripheral(name="One") as one,
        world.peripheral(name="Two", address="F0:01:02:03:04:06") as two,
        gateway.connected() as first,
        gateway.connected() as second,
    ):
        await one.advertise()
        await two.advertise()
        async with Link(first, one.address) as link, Link(second, two.address) as other:
            await link.discover()
            await other.discover()
            await link.write(bumble.STORE, b"first")
            await other.write(bumble.STORE, b"second")
            expect((one.value(bumble.STORE), two.value(bumble.STORE)), (b"first", b"second"), "the values")


@test("a device is paired and unpaired")
async def pairing(world: World):
    async with world.gateway() as gateway, linked(world, gateway) as (peer, client, link):
        await link.discover()
        result = await client.bluetooth_device_pair(link.address)
        expect((result.paired, result.error), (True, 0), "the pairing")
        expect(await link.read(bumble.ENCRYPTED), b"secret", "the value that needs encryption")
        result = await client.bluetooth_device_unpair(link.address)
        expect((result.success, result.error), (True, 0), "the unpairing")


@test("the cache of a device is cleared")
async def clear_cache(world: World):
    async with world.gateway() as gateway, linked(world, gateway) as (peer, client, link):
        await link.discover()
        result = await client.bluetooth_device_clear_cache(link.address)
        expect((result.success, result.error), (True, 0), "the result")


@test("connection parameters are set, and invalid ones refused")
async def parameters(world: World):
    async with world.gateway() as gateway, linked(world, gateway) as (peer, client, link):
        connection = await peer.connections.get()

        def settled() -> bool:
            parameters = connection.parameters
            return 30 <= parameters.connection_interval <= 50 and parameters.supervision_timeout == 6000

        assert not settled(), f"the connection has these parameters already: {connection.parameters}"
        await client.bluetooth_device_set_connection_params(link.address, 24, 40, 0, 600)
        await until(settled, "the device has the new parameters")
        # The client itself refuses a minimum over the maximum, so the request is sent without its help.
        response = await client._connection.send_message_await_response(
            BluetoothSetConnectionParamsRequest(
                address=link.address, min_interval=40, max_interval=24, latency=0, timeout=400
            ),
            BluetoothSetConnectionParamsResponse,
        )
        expect((response.address, response.error), (link.address, ILLEGAL_PARAMETER), "the response to invalid ones")
        assert settled(), f"invalid parameters were set: {connection.parameters}"
        try:
            await client.bluetooth_device_set_connection_params(number("F0:00:00:00:00:99"), 24, 40, 0, 400)
        except (BluetoothConnectionParamsAPIError, BluetoothConnectionDroppedError):
            return
        raise AssertionError("parameters of no connection were not refused")
