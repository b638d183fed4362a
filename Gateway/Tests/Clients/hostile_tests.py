"""Clients that break the protocol, by raw sockets and by aioesphomeapi."""

import asyncio
import contextlib
import os
import random
import socket

from aioesphomeapi import APIClient, APIConnectionError, InvalidEncryptionKeyAPIError, RequiresEncryptionAPIError
from aioesphomeapi.api_pb2 import HelloRequest, SubscribeBluetoothLEAdvertisementsRequest
from harness import Gateway, World, expect, test

HELLO, PING_REQUEST, PING_RESPONSE, DEVICE_INFO_REQUEST, SUBSCRIBE_ADVERTISEMENTS = 1, 7, 8, 9, 66
# The reasons that are counted if a client itself ends its connection.
ENDED_BY_CLIENT = ("client_disconnected", "connection_lost")


def varint(value: int) -> bytes:
    encoded = b""
    while value > 0x7F:
        encoded += bytes([value & 0x7F | 0x80])
        value >>= 7
    return encoded + bytes([value])


class RawClient:
    """A client that writes its own bytes."""

    def __init__(self, reader, writer):
        self.reader = reader
        self.writer = writer

    @staticmethod
    async def connected(gateway: Gateway, receive_buffer: int | None = None) -> "RawClient":
        """Connects.

        `receive_buffer`: the size of the kernel's buffer for what the client has not read, in bytes.
        """
        connection = socket.socket()
        connection.setblocking(False)
        if receive_buffer is not None:
            # It limits the window of TCP only if it is set before the connection.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        try:
            await asyncio.get_running_loop().sock_connect(connection, ("127.0.0.1", gateway.port))
            return RawClient(*await asyncio.open_connection(sock=connection, limit=1 << 16))
        except BaseException:
            connection.close()
            raise

    @staticmethod
    @contextlib.asynccontextmanager
    async def that_reads_nothing(gateway: Gateway, subscribes: bool = False):
        """A client that reads nothing and whose connection is full of answers, while the context is entered."""
        client = await RawClient.connected(gateway, receive_buffer=4096)
        try:
            await client.hello()
            if subscribes:
                await client.subscribe_advertisements()
            client.writer.transport.pause_reading()
            # The answers have more bytes than the buffers of the gateway's socket can hold.
            client.write((b"\0\0" + bytes([DEVICE_INFO_REQUEST])) * 200_000)
            yield client
        finally:
            client.writer.transport.abort()

    def write(self, data: bytes):
        self.writer.write(data)

    def message(self, kind: int, body: bytes):
        """Writes a frame in plaintext."""
        self.write(b"\0" + varint(len(body)) + varint(kind) + body)

    async def hello(self):
        self.message(HELLO, HelloRequest(client_info="raw", api_version_major=1, api_version_minor=10).SerializeToString())
        expect((await self.reader.readexactly(1)), b"\0", "the first byte of the answer")

    async def subscribe_advertisements(self):
        self.message(SUBSCRIBE_ADVERTISEMENTS, SubscribeBluetoothLEAdvertisementsRequest(flags=1).SerializeToString())
        await self.writer.drain()

    async def closed(self, deadline: float = 10) -> bytes:
        """Waits until the gateway closes the connection. Returns what it has sent before."""
        received = b""
        try:
            async with asyncio.timeout(deadline):
                while part := await self.reader.read(65_536):
                    received += part
        except ConnectionError:
            pass
        except TimeoutError:
            raise AssertionError(f"the connection was not closed within {deadline} s") from None
        self.close()
        return received

    def close(self):
        self.writer.close()


async def serves(gateway: Gateway):
    """Checks that the gateway still serves a correct client."""
    assert gateway.is_running, f"ble-gateway has ended: {gateway.last_line}"
    async with gateway.connected() as client:
        expect((await client.device_info()).name, "test-gateway", "the name")


async def counted(gateway: Gateway, **reasons: int):
    """Checks how many clients the gateway has closed for each reason."""
    counts = (await gateway.status())["closedClientCounts"]
    found = {reason: count for reason, count in counts.items() if reason not in ENDED_BY_CLIENT}
    expect(found, reasons, "the closed clients")


async def refused(gateway: Gateway, kinds, **options):
    client = gateway.client(**options)
    try:
        await client.connect(login=True)
    except kinds:
        return
    finally:
        with contextlib.suppress(APIConnectionError):
            await client.disconnect(force=True)
    raise AssertionError("the client was accepted")


@test("a client with a wrong key is told so")
async def wrong_key(world: World):
    async with world.gateway() as gateway:
        await refused(gateway, InvalidEncryptionKeyAPIError, noise_psk="QRTIErOb/fcE9Ukd/5qA3RGYMn0Y+p06U58SCtOXvPc=")
        await serves(gateway)
        await counted(gateway, wrong_key=1)


@test("a client without encryption is told that it is required")
async def plaintext_client(world: World):
    async with world.gateway() as gateway:
        await refused(gateway, RequiresEncryptionAPIError, noise_psk=None)
        await serves(gateway)
        await counted(gateway, client_without_encryption=1)


@test("an encrypted client at a plaintext gateway is refused")
async def encrypted_client(world: World):
    async with world.gateway(encrypted=False) as gateway:
        await refused(gateway, APIConnectionError, noise_psk="QRTIErOb/fcE9Ukd/5qA3RGYMn0Y+p06U58SCtOXvPc=")
        await serves(gateway)
        await counted(gateway, client_with_encryption=1)


@test("garbage in place of the first frame closes the connection")
async def garbage_first(world: World):
    for encrypted in (True, False):
        async with world.gateway(encrypted=encrypted) as gateway:
            generator = random.Random(1)
            for _ in range(20):
                client = await RawClient.connected(gateway)
                # The first byte is neither that of plaintext nor that of encryption.
                client.write(bytes([generator.randrange(2, 256)]) + generator.randbytes(generator.randrange(200)))
                await client.closed()
            await serves(gateway)
            await counted(gateway, malformed_frame=20)


@test("garbage inside the handshake closes the connection with a reason")
async def garbage_in_handshake(world: World):
    async with world.gateway() as gateway:
        client = await RawClient.connected(gateway)
        body = b"\0" + os.urandom(48)
        client.write(b"\1\0\0" + b"\1" + len(body).to_bytes(2, "big") + body)
        received = await client.closed()
        assert b"\1" in received, f"no reason in {received!r}"
        await serves(gateway)
        # The message has the right length, so only its encryption is wrong.
        await counted(gateway, wrong_key=1)


@test("garbage after the hello closes the connection")
async def garbage_after_hello(world: World):
    async with world.gateway(encrypted=False) as gateway:
        for garbage in (b"\2garbage", b"\0\x05\x01\xff\xff\xff\xff\xff", b"\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"):
            client = await RawClient.connected(gateway)
            await client.hello()
            client.write(garbage)
            await client.closed()
        await serves(gateway)
        await counted(gateway, malformed_frame=2, undecodable_message=1)


@test("a frame that is too long closes the connection")
async def oversized(world: World):
    async with world.gateway(encrypted=False) as gateway:
        client = await RawClient.connected(gateway)
        await client.hello()
        client.write(b"\0" + varint(100_000_000) + varint(HELLO))
        await client.closed()
        await serves(gateway)
        await counted(gateway, oversized_frame=1)


@test("a message of an unknown type is ignored")
async def unknown_message(world: World):
    async with world.gateway(encrypted=False) as gateway:
        client = await RawClient.connected(gateway)
        await client.hello()
        client.message(9999, b"")
        client.message(PING_REQUEST, b"")
        async with asyncio.timeout(10):
            await client.reader.readuntil(b"\0\0\x08")
        client.close()


@test("a password of an old client is ignored: only the key counts")
async def password(world: World):
    async with world.gateway() as gateway:
        client = APIClient("127.0.0.1", gateway.port, "wrong", noise_psk=gateway.key)
        await client.connect(login=True)
        expect((await client.device_info()).name, "test-gateway", "the name")
        await client.disconnect()
        await refused(gateway, RequiresEncryptionAPIError, noise_psk=None)
        await counted(gateway, client_without_encryption=1)


@test("clients that fall silent or take no answers are closed, and no other is disturbed", deadline=300)
async def silent_session(world: World):
    async with world.gateway(encrypted=False) as gateway, RawClient.that_reads_nothing(gateway):
        await serves(gateway)
        quiet, answering = await RawClient.connected(gateway), await RawClient.connected(gateway)
        for client in (quiet, answering):
            await client.hello()
        async with asyncio.timeout(100):
            await answering.reader.readuntil(b"\0\0\x07")
        answering.message(PING_RESPONSE, b"")
        received = await quiet.closed(deadline=200)
        assert b"\0\0\x07" in received, f"no ping in {received!r}"
        answering.message(PING_REQUEST, b"")
        async with asyncio.timeout(10):
            await answering.reader.readuntil(b"\0\0\x08")
        answering.close()
        await gateway.status_with(
            lambda status: status["closedClientCounts"].get("unresponsive") == 2, "both are closed", 60, pause=2
        )
        await serves(gateway)
        await counted(gateway, unresponsive=2)


@test("clients that connect and send nothing are closed in the end", deadline=150)
async def silent(world: World):
    async with world.gateway() as gateway:
        clients = [await RawClient.connected(gateway) for _ in range(3)]
        await serves(gateway)
        for client in clients:
            await client.closed(deadline=120)
        await counted(gateway, handshake_timeout=3)


@test("more clients than the limit are refused, and the first ones are kept")
async def client_limit(world: World):
    file = world.directory / "gateway.json"
    file.write_text('{"clientLimit": 2}')
    async with world.gateway("--config", str(file)) as gateway:
        async with gateway.connected() as first, gateway.connected() as second:
            await refused(gateway, APIConnectionError)
            await first.device_info()
            await second.device_info()
        await counted(gateway, too_many_clients=1)
