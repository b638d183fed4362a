#!/usr/bin/env python3
"""A Bumble peripheral with a large GATT database.

As a program: `bumble_peripheral.py tcp:127.0.0.1:PORT` advertises, and prints its attribute table and its events as
JSON.
"""

import asyncio
import json
import struct
import sys

from bumble import att
from bumble.core import AdvertisingData
from bumble.device import (
    AdvertisingEventProperties,
    AdvertisingParameters,
    AdvertisingType,
    PeriodicAdvertisingParameters,
)
from bumble.gatt import (
    Characteristic,
    CharacteristicDeclaration,
    Descriptor,
    Service,
)
from bumble.hci import (
    HCI_LE_Read_Maximum_Advertising_Data_Length_Command,
    HCI_LE_Set_Extended_Advertising_Data_Command,
    HCI_LE_Set_Periodic_Advertising_Data_Command,
    OwnAddressType,
)

import hosts
import tables

P = Characteristic.Properties
READ = att.Attribute.READABLE
WRITE = att.Attribute.WRITEABLE


def vendor(number: int) -> str:
    return f"B1E0{number:04X}-5EED-4000-8000-C0FFEE000000"


# The UUIDs that tests name.
BATTERY_LEVEL = "2A19"
VALUES, LONG, EMPTY, SHORT, ODD, STORE, RELIABLE, SINK = (vendor(n) for n in range(0x10, 0x18))
GUARDED, ENCRYPTED, AUTHENTICATED, AUTHORIZED, FAILING = (vendor(n) for n in range(0x20, 0x25))
STREAM, NOTIFY, INDICATE, BOTH = (vendor(n) for n in range(0x30, 0x34))
TWIN_SERVICE, TWIN = "FFF1", "FFF2"
SECONDARY_SHORT, SECONDARY_LONG, INCLUDING, EMPTY_SERVICE = "FFE1", vendor(0x41), vendor(0x42), vendor(0x43)
LONG_VALUE = bytes(index * 7 % 256 for index in range(512))
COMPANY = 0xFFFF  # the SIG's number for tests
MANUFACTURER_DATA = bytes.fromhex("0102a5")


class Failing(att.AttributeValue):
    """A value whose reads and writes are refused with application errors."""

    def __init__(self):
        super().__init__(self.refuse_read, self.refuse_write)

    def refuse_read(self, _):
        raise att.ATT_Error(error_code=0x80)

    def refuse_write(self, *_):
        raise att.ATT_Error(error_code=0x9F)


class Sink(att.AttributeValue):
    """Collects all written values."""

    def __init__(self):
        super().__init__(lambda _: b"", self.take)
        self.writes: list[bytes] = []
        self.arrived = asyncio.Condition()
        self.count = 0

    async def take(self, _, value):
        self.writes.append(bytes(value))
        self.count += len(value)
        async with self.arrived:
            self.arrived.notify_all()

    async def wait_for(self, count: int):
        """Returns when this number of bytes has arrived."""
        async with self.arrived:
            await self.arrived.wait_for(lambda: self.count >= count)


class Peripheral(hosts.BumbleHost):
    """Advertises, serves the database, and reports events."""

    def __init__(
        self,
        adapter: str,
        name: str = "Bumble",
        address: str = "F0:01:02:03:04:05",
        public: bool = False,
        settings: dict | None = None,
    ):
        super().__init__(adapter, name, address, settings)
        self.public = public
        self.sink = Sink()
        self.connections: asyncio.Queue = asyncio.Queue()
        self.disconnections: asyncio.Queue = asyncio.Queue()
        self.subscriptions: asyncio.Queue = asyncio.Queue()

    # The database

    def prepare(self):
        self.characteristics = {}

        def characteristic(uuid, properties, permissions, value, descriptors=()):
            made = Characteristic(uuid, properties, permissions, value, list(descriptors))
            self.characteristics.setdefault(uuid, made)
            return made

        secondary_short = Service(SECONDARY_SHORT, [characteristic("FFE2", P.READ, READ, b"short")], primary=False)
        secondary_long = Service(SECONDARY_LONG, [characteristic(vendor(0x44), P.READ, READ, b"long")], primary=False)
        battery = Service("180F", [characteristic(BATTERY_LEVEL, P.READ | P.NOTIFY, READ, b"\x64")])
        values = Service(
            VALUES,
            [
                characteristic(
                    LONG,
                    P.READ,
                    READ,
                    LONG_VALUE,
                    [
                        Descriptor("2901", READ, "Straße über 512 Oktette".encode()),
                        Descriptor("2904", READ, bytes.fromhex("19000027010000")),
                        Descriptor(vendor(0x18), READ | WRITE, b"\x00\xff"),
                    ],
                ),
                characteristic(EMPTY, P.READ | P.WRITE, READ | WRITE, b""),
                characteristic(SHORT, P.READ, READ, bytes(range(22))),
                characteristic(ODD, P.READ, READ, bytes(range(253))),
                characteristic(STORE, P.READ | P.WRITE, READ | WRITE, b"stored"),
                characteristic(
                    RELIABLE,
                    P.READ | P.WRITE | P.EXTENDED_PROPERTIES,
                    READ | WRITE,
                    b"unreliable",
                    [Descriptor("2900", READ, b"\x01\x00")],
                ),
                characteristic(SINK, P.WRITE_WITHOUT_RESPONSE | P.WRITE, WRITE, self.sink),
            ],
        )
        guarded = Service(
            GUARDED,
            [
                characteristic(
                    ENCRYPTED,
                    P.READ | P.WRITE,
                    READ | WRITE | att.Attribute.READ_REQUIRES_ENCRYPTION | att.Attribute.WRITE_REQUIRES_ENCRYPTION,
                    b"secret",
                    [Descriptor("2901", READ | att.Attribute.READ_REQUIRES_ENCRYPTION, b"secret too")],
                ),
                characteristic(
                    AUTHENTICATED,
                    P.READ | P.WRITE,
                    READ | WRITE | att.Attribute.READ_REQUIRES_AUTHENTICATION,
                    b"secret",
                ),
                characteristic(AUTHORIZED, P.READ, READ | att.Attribute.READ_REQUIRES_AUTHORIZATION, b"secret"),
                characteristic(FAILING, P.READ | P.WRITE, READ | WRITE, Failing()),
            ],
        )
        stream = Service(
            STREAM,
            [
                characteristic(NOTIFY, P.NOTIFY, READ, b""),
                characteristic(INDICATE, P.INDICATE, READ, b""),
                characteristic(BOTH, P.READ | P.NOTIFY | P.INDICATE, READ, b"both"),
            ],
        )
        twins = [
            Service(
                TWIN_SERVICE,
                [
                    characteristic(TWIN, P.READ, READ, f"{number}a".encode()),
                    characteristic(TWIN, P.READ, READ, f"{number}b".encode()),
                ],
            )
            for number in (1, 2)
        ]
        including = Service(
            INCLUDING,
            [characteristic(vendor(0x45), P.READ, READ, b"including")],
            included_services=[secondary_short, battery, secondary_long],
        )
        self.device.add_services([secondary_short, secondary_long, battery, values, guarded, stream])
        self.device.add_services([*twins, including, Service(EMPTY_SERVICE, [])])
        self.device.on("connection", self.on_connection)
        for uuid in (NOTIFY, INDICATE, BOTH, BATTERY_LEVEL):
            self.characteristics[uuid].on(
                Characteristic.EVENT_SUBSCRIPTION,
                lambda bearer, notify, indicate, uuid=uuid: self.subscriptions.put_nowait((uuid, notify, indicate)),
            )

    def on_connection(self, connection):
        connection.on(connection.EVENT_DISCONNECTION, self.disconnections.put_nowait)
        self.connections.put_nowait(connection)

    def value(self, uuid: str) -> bytes:
        """The current value of the characteristic."""
        return bytes(self.characteristics[uuid].value)

    async def table(self) -> list[dict]:
        """The attribute table, read from Bumble's own list of attributes, not over the air."""
        services = []
        for attribute in self.device.gatt_server.attributes:
            kind = tables.long_uuid(attribute.type.to_hex_str())
            if isinstance(attribute, Service):
                services.append(
                    {
                        "uuid": attribute.uuid.to_hex_str("-"),
                        "primary": attribute.primary,
                        "handle": attribute.handle,
                        "endHandle": attribute.end_group_handle,
                        "includes": [],
                        "characteristics": [],
                    }
                )
            elif kind == tables.long_uuid("2802"):
                services[-1]["includes"].append(attribute.service.handle)
            elif isinstance(attribute, CharacteristicDeclaration):
                services[-1]["characteristics"].append(
                    {
                        "uuid": attribute.characteristic.uuid.to_hex_str("-"),
                        "handle": attribute.handle,
                        "valueHandle": attribute.value_handle,
                        "properties": tables.property_names(attribute.characteristic.properties),
                        "descriptors": [],
                    }
                )
            elif isinstance(attribute, Characteristic):
                if attribute.properties & P.READ:
                    services[-1]["characteristics"][-1] |= await self.reading(attribute)
            else:
                services[-1]["characteristics"][-1]["descriptors"].append(
                    {"uuid": attribute.type.to_hex_str("-"), "handle": attribute.handle} | await self.reading(attribute)
                )
        return tables.normalized(services)

    async def reading(self, attribute) -> dict:
        """The result of reading the attribute over a link without encryption."""
        for flag, code in (
            (att.Attribute.READ_REQUIRES_ENCRYPTION, 0x0F),
            (att.Attribute.READ_REQUIRES_AUTHENTICATION, 0x05),
            (att.Attribute.READ_REQUIRES_AUTHORIZATION, 0x08),
        ):
            if attribute.permissions & flag:
                return {"error": tables.error_name(code)}
        if isinstance(attribute.value, Failing):
            return {"error": tables.error_name(0x80)}
        if isinstance(attribute.value, att.AttributeValueV2):
            return {"value": "0000"}  # a Client Characteristic Configuration that was never written
        if isinstance(attribute.value, att.AttributeValue):
            return {"value": attribute.value.read(_ConnectionOf(self.device)).hex()}
        return {"value": bytes(attribute.value).hex()}

    # Advertising

    @property
    def address(self) -> str:
        address = self.device.public_address if self.public else self.device.static_address
        return str(address).split("/")[0].upper()

    @property
    def advertising_data(self) -> bytes:
        return bytes(
            AdvertisingData(
                [
                    (AdvertisingData.FLAGS, b"\x06"),
                    (AdvertisingData.COMPLETE_LIST_OF_16_BIT_SERVICE_CLASS_UUIDS, struct.pack("<HH", 0x180F, 0xFFF1)),
                    (AdvertisingData.MANUFACTURER_SPECIFIC_DATA, struct.pack("<H", COMPANY) + MANUFACTURER_DATA),
                    (AdvertisingData.SERVICE_DATA_16_BIT_UUID, struct.pack("<H", 0x180F) + b"\x64"),
                    (AdvertisingData.TX_POWER_LEVEL, struct.pack("b", -4)),
                ]
            )
        )

    @property
    def scan_response_data(self) -> bytes:
        return bytes(AdvertisingData([(AdvertisingData.COMPLETE_LOCAL_NAME, self.name.encode())]))

    async def advertise(self, connectable: bool = True, interval: float = 20):
        """Advertises with legacy PDUs, and again after each connection."""
        kind = AdvertisingType.UNDIRECTED_CONNECTABLE_SCANNABLE if connectable else AdvertisingType.UNDIRECTED_SCANNABLE
        await self.device.start_advertising(
            advertising_type=kind,
            own_address_type=OwnAddressType.PUBLIC if self.public else OwnAddressType.RANDOM,
            auto_restart=True,
            advertising_data=self.advertising_data,
            scan_response_data=self.scan_response_data,
            advertising_interval_min=interval,
            advertising_interval_max=interval,
        )

    async def maximum_advertising_data_length(self) -> int:
        response = await self.device.send_sync_command(HCI_LE_Read_Maximum_Advertising_Data_Length_Command())
        return response.max_advertising_data_length

    async def advertise_extended(self, data: bytes, interval: float = 20):
        """Advertises with non-connectable extended PDUs. Bumble itself does not send data in fragments."""
        advertising = await self.device.create_advertising_set(
            advertising_parameters=AdvertisingParameters(
                advertising_event_properties=AdvertisingEventProperties(is_connectable=False, is_scannable=False),
                primary_advertising_interval_min=interval,
                primary_advertising_interval_max=interval,
            ),
            random_address=self.device.static_address,
            auto_start=False,
        )
        for operation, fragment in fragments(data, 251):
            await self.device.send_sync_command(
                HCI_LE_Set_Extended_Advertising_Data_Command(
                    advertising_handle=advertising.advertising_handle,
                    operation=operation,
                    fragment_preference=0,
                    advertising_data=fragment,
                )
            )
        await advertising.start()

    async def advertise_periodically(self, data: bytes, sid: int = 5, interval: float = 20):
        """Sends a periodic train, and announces it."""
        advertising = await self.device.create_advertising_set(
            advertising_parameters=AdvertisingParameters(
                advertising_event_properties=AdvertisingEventProperties(is_connectable=False, is_scannable=False),
                primary_advertising_interval_min=interval,
                primary_advertising_interval_max=interval,
                advertising_sid=sid,
            ),
            periodic_advertising_parameters=PeriodicAdvertisingParameters(interval, interval),
            random_address=self.device.static_address,
            auto_start=False,
        )
        for operation, fragment in fragments(data, 252):
            await self.device.send_sync_command(
                HCI_LE_Set_Periodic_Advertising_Data_Command(
                    advertising_handle=advertising.advertising_handle, operation=operation, advertising_data=fragment
                )
            )
        await advertising.start()
        await advertising.start_periodic()
        return advertising

    async def notify_all(self, uuid: str, values, indicate: bool = False):
        """Sends the values one after the other to the subscribers."""
        server = self.device.gatt_server
        send = server.indicate_subscribers if indicate else server.notify_subscribers
        for value in values:
            await send(self.characteristics[uuid], value)


def fragments(data: bytes, length: int) -> list[tuple[int, bytes]]:
    """The fragments of long data, each with its operation: 0x01 for the first, 0x00 for a middle one, 0x02 for the
    last, 0x03 for complete data (Vol 4, Part E, 7.8.54)."""
    parts = [data[start : start + length] for start in range(0, len(data), length)]
    if len(parts) <= 1:
        return [(3, data)]
    return list(zip([1, *([0] * (len(parts) - 2)), 2], parts, strict=True))


class _ConnectionOf:
    """The part of a connection that Bumble's database hash needs."""

    def __init__(self, device):
        self.device = device


async def main(adapter: str):
    async with Peripheral(adapter) as peripheral:
        await peripheral.advertise()
        print(
            json.dumps({"event": "ready", "address": peripheral.address, "services": await peripheral.table()}),
            flush=True,
        )

        async def report(queue, event):
            while True:
                print(json.dumps({"event": event, "what": str(await queue.get())}), flush=True)

        async def stream():
            while True:
                uuid, notify, indicate = await peripheral.subscriptions.get()
                print(
                    json.dumps({"event": "subscription", "uuid": uuid, "notify": notify, "indicate": indicate}),
                    flush=True,
                )
                if notify or indicate:
                    await peripheral.notify_all(uuid, (struct.pack("<I", n) for n in range(1000)), indicate)

        await asyncio.gather(
            report(peripheral.connections, "connected"), report(peripheral.disconnections, "disconnected"), stream()
        )


if __name__ == "__main__":
    hosts.quiet_logging()
    asyncio.run(main(sys.argv[1]))
