#!/usr/bin/env python3
"""A Bumble central: scans, connects, discovers, reads, writes and subscribes.

As a program: `bumble_central.py tcp:127.0.0.1:PORT ADDRESS` prints the discovered attribute table as JSON.
"""

import asyncio
import contextlib
import json
import struct
import sys

from bumble import att
from bumble.core import UUID
from bumble.device import Peer
from bumble.gatt import (
    GATT_INCLUDE_ATTRIBUTE_TYPE,
    GATT_PRIMARY_SERVICE_ATTRIBUTE_TYPE,
    GATT_SECONDARY_SERVICE_ATTRIBUTE_TYPE,
)
from bumble.hci import Address

import hosts
import tables


class ATTError(Exception):
    """An Error Response."""

    def __init__(self, response):
        self.code = int(response.error_code)
        self.handle = response.attribute_handle_in_error
        super().__init__(f"{tables.error_name(self.code)} at {self.handle}")

    @property
    def name(self) -> str:
        return tables.error_name(self.code)


class Link:
    """A connection to a peripheral."""

    def __init__(self, connection):
        self.connection = connection
        self.client = connection.gatt_client
        self.disconnected = asyncio.get_running_loop().create_future()
        connection.on(connection.EVENT_DISCONNECTION, self.on_disconnection)

    def on_disconnection(self, reason):
        if not self.disconnected.done():
            self.disconnected.set_result(reason)

    async def request(self, request) -> att.ATT_PDU:
        """Sends a request and returns the response; raises an Error Response."""
        response = await self.client.send_request(request)
        if response.op_code == att.Opcode.ATT_ERROR_RESPONSE:
            raise ATTError(response)
        return response

    async def exchange_mtu(self, mtu: int = 517) -> int:
        return await Peer(self.connection).request_mtu(mtu)

    async def disconnect(self):
        await self.connection.disconnect()

    def send_pdu(self, pdu: bytes, channel: int = att.ATT_CID):
        """Sends any bytes on a fixed channel."""
        self.connection.send_l2cap_pdu(channel, pdu)

    # Discovery

    async def groups(self, kind: UUID) -> list[tuple[int, int, bytes]]:
        """Returns all results of Read By Group Type."""
        found, start = [], 1
        while start <= 0xFFFF:
            try:
                response = await self.request(
                    att.ATT_Read_By_Group_Type_Request(
                        starting_handle=start, ending_handle=0xFFFF, attribute_group_type=kind
                    )
                )
            except ATTError as error:
                if error.code == att.ATT_ATTRIBUTE_NOT_FOUND_ERROR:
                    break
                raise
            found += response.attributes
            assert response.attributes[-1][1] >= start, "groups that go backwards"
            start = response.attributes[-1][1] + 1
        return found

    async def by_type(self, kind: UUID, start: int = 1, end: int = 0xFFFF) -> list[tuple[int, bytes]]:
        """Returns all results of Read By Type."""
        found = []
        while start <= end:
            try:
                response = await self.request(
                    att.ATT_Read_By_Type_Request(starting_handle=start, ending_handle=end, attribute_type=kind)
                )
            except ATTError as error:
                if error.code == att.ATT_ATTRIBUTE_NOT_FOUND_ERROR:
                    break
                raise
            found += response.attributes
            assert response.attributes[-1][0] >= start, "handles that go backwards"
            start = response.attributes[-1][0] + 1
        return found

    async def table(self) -> list[dict]:
        """The discovered attribute table. Uses Bumble's own procedures if it has them."""
        services = []
        primary = [
            (each.handle, each.end_group_handle, each.uuid, True) for each in await self.client.discover_services()
        ]
        secondary = [
            (handle, end, UUID.from_bytes(value), False)
            for handle, end, value in await self.groups(GATT_SECONDARY_SERVICE_ATTRIBUTE_TYPE)
        ]
        proxies = {each.handle: each for each in self.client.services}
        for handle, end, uuid, is_primary in sorted(primary + secondary, key=lambda each: each[0]):
            includes = [
                struct.unpack_from("<H", value)[0]
                for _, value in await self.by_type(GATT_INCLUDE_ATTRIBUTE_TYPE, handle, end)
            ]
            proxy = proxies.get(handle) or _Range(handle, end)
            characteristics = []
            for each in await self.client.discover_characteristics((), proxy):
                entry = {
                    "uuid": each.uuid.to_hex_str("-"),
                    "handle": each.handle - 1,
                    "valueHandle": each.handle,
                    "properties": tables.property_names(each.properties),
                    "descriptors": [
                        {"uuid": descriptor.type.to_hex_str("-"), "handle": descriptor.handle}
                        | await self.reading(descriptor.handle)
                        for descriptor in await self.client.discover_descriptors(each)
                    ],
                }
                if "read" in entry["properties"]:
                    entry |= await self.reading(each.handle)
                characteristics.append(entry)
            services.append(
                {
                    "uuid": uuid.to_hex_str("-"),
                    "primary": is_primary,
                    "handle": handle,
                    "endHandle": end,
                    "includes": includes,
                    "characteristics": characteristics,
                }
            )
        declarations = {handle for handle, _ in await self.by_type(UUID("2803"))}
        assert declarations == {
            c["handle"] for s in services for c in s["characteristics"]
        }, "declarations out of place"
        return tables.normalized(services)

    async def attributes(self) -> list[tuple[int, UUID]]:
        """The handle and type of every attribute, by Find Information."""
        return [(each.handle, each.type) for each in await self.client.discover_attributes()]

    # Values

    async def reading(self, handle: int) -> dict:
        try:
            return {"value": (await self.read(handle)).hex()}
        except ATTError as error:
            return {"error": error.name}

    async def read(self, handle: int) -> bytes:
        """Reads a value of any length."""
        value = (await self.request(att.ATT_Read_Request(attribute_handle=handle))).attribute_value
        part = value
        while len(part) == self.client.mtu - 1:
            try:
                part = (
                    await self.request(att.ATT_Read_Blob_Request(attribute_handle=handle, value_offset=len(value)))
                ).part_attribute_value
            except ATTError as error:
                # Two answers are allowed to a read beyond the end of a value that fits exactly.
                if error.code in (att.ATT_ATTRIBUTE_NOT_LONG_ERROR, att.ATT_INVALID_OFFSET_ERROR):
                    break
                raise
            value += part
        return value

    async def write(self, handle: int, value: bytes):
        """Writes a value of any length."""
        if len(value) > self.client.mtu - 3:
            await self.prepare([(handle, value)])
            await self.execute()
        else:
            await self.request(att.ATT_Write_Request(attribute_handle=handle, attribute_value=value))

    async def prepare(self, writes: list[tuple[int, bytes]], start: int = 0):
        """Queues writes and checks that they are echoed."""
        size = self.client.mtu - 5
        for handle, value in writes:
            for offset in range(0, max(1, len(value)), size):
                part = value[offset : offset + size]
                response = await self.request(
                    att.ATT_Prepare_Write_Request(
                        attribute_handle=handle, value_offset=start + offset, part_attribute_value=part
                    )
                )
                echo = (response.attribute_handle, response.value_offset, response.part_attribute_value)
                assert echo == (handle, start + offset, part), f"wrong echo {echo}"

    async def execute(self, commit: bool = True):
        await self.request(att.ATT_Execute_Write_Request(flags=int(commit)))

    async def write_command(self, handle: int, value: bytes):
        await self.client.send_command(att.ATT_Write_Command(attribute_handle=handle, attribute_value=value))

    async def drained(self):
        """Returns when the controller has accepted all packets."""
        await self.connection.drain()

    # Notifications and indications

    @contextlib.asynccontextmanager
    async def subscription(self, value_handle: int, configuration_handle: int, bits: int = 1):
        """A queue of the received values while the context is entered."""
        queue: asyncio.Queue = asyncio.Queue()
        subscribers = self.client.notification_subscribers if bits == 1 else self.client.indication_subscribers
        subscribers.setdefault(value_handle, set()).add(queue.put_nowait)
        try:
            await self.write(configuration_handle, struct.pack("<H", bits))
            yield queue
            if not self.disconnected.done():
                await self.write(configuration_handle, b"\0\0")
        finally:
            subscribers.pop(value_handle, None)


class _Range:
    """The part of a service that Bumble needs in order to discover its contents."""

    def __init__(self, handle: int, end: int):
        self.handle, self.end_group_handle = handle, end


class Central(hosts.BumbleHost):
    """Scans and connects."""

    def __init__(
        self,
        adapter: str,
        name: str = "Bumble central",
        address: str = "F0:0A:0B:0C:0D:0E",
        settings: dict | None = None,
    ):
        super().__init__(adapter, name, address, settings)

    @contextlib.asynccontextmanager
    async def scan(self, active: bool = True):
        """A queue of advertisements while the context is entered."""
        queue: asyncio.Queue = asyncio.Queue()
        self.device.on("advertisement", queue.put_nowait)
        await self.device.start_scanning(active=active, scan_interval=20, scan_window=20, scanning_phys=hosts.PHYS)
        try:
            yield queue
        finally:
            self.device.remove_listener("advertisement", queue.put_nowait)
            with contextlib.suppress(Exception):
                await self.device.stop_scanning()

    async def find(self, address: str, deadline: float = 10, accept=lambda advertisement: True):
        """Returns the first advertisement of the address that is accepted."""
        async with asyncio.timeout(deadline), self.scan() as queue:
            while True:
                advertisement = await queue.get()
                if str(advertisement.address).split("/")[0].upper() == address.upper() and accept(advertisement):
                    return advertisement

    async def connect(self, address: str, deadline: float = 10, mtu: int | None = 517) -> Link:
        """Connects to a random static address, or to a public one with `/P` after it."""
        kind = Address.PUBLIC_DEVICE_ADDRESS if address.endswith("/P") else Address.RANDOM_DEVICE_ADDRESS
        async with asyncio.timeout(deadline):
            link = Link(await self.device.connect(Address(address.removesuffix("/P"), kind), timeout=deadline))
            if mtu is not None:
                await link.exchange_mtu(mtu)
            return link


async def main(adapter: str, address: str):
    async with Central(adapter) as central:
        link = await central.connect(address)
        print(json.dumps({"address": address, "mtu": link.client.mtu, "services": await link.table()}))
        await link.disconnect()


if __name__ == "__main__":
    hosts.quiet_logging()
    asyncio.run(main(sys.argv[1], sys.argv[2]))
