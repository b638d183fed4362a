"""Bumble's host, prepared for tests: over TCP without the delays of acknowledgements, and with its faults corrected."""

import asyncio
import logging

from bumble import gatt, gatt_server, smp
from bumble.device import Device, DeviceConfiguration
from bumble.hci import Address, HCI_LE_1M_PHY
from bumble.transport.common import StreamPacketSink, StreamPacketSource, Transport

from controllers import quick_acknowledgement

PHYS = (HCI_LE_1M_PHY,)


class IncludedServiceDeclaration(gatt.IncludedServiceDeclaration):
    """Bumble declares an included service with a 128-bit UUID by a UUID of two bytes. The specification omits the UUID
    (Vol 3, Part G, 3.2)."""

    def __init__(self, service):
        super().__init__(service)
        if len(service.uuid.to_pdu_bytes()) != 2:
            self.value = self.value[:4]


gatt_server.IncludedServiceDeclaration = IncludedServiceDeclaration


class Device(Device):
    """As a peripheral with a bond of legacy pairing, Bumble answers with the key that its central gave it. The right
    key is the one that it gave its central (Vol 3, Part H, 2.4.4.2)."""

    async def get_long_term_key(self, connection_handle: int, rand: bytes, ediv: int) -> bytes | None:
        connection = self.lookup_connection(connection_handle)
        if connection is not None and self.smp_manager.get_long_term_key(connection, rand, ediv) is None:
            keys = await self.keystore.get(str(connection.peer_address))
            if keys is not None and keys.ltk is None and keys.ltk_central is not None:
                return keys.ltk_central.value
        return await super().get_long_term_key(connection_handle, rand, ediv)


class Session(smp.Session):
    """Bumble loses a completed pairing if its peer disconnects at once: the task that stores the keys is cancelled with
    the link. Here it is not."""

    def on_peer_key_distribution_complete(self) -> None:
        if self.is_initiator:
            self.distribute_keys()
        self.conclusion = asyncio.ensure_future(self.on_pairing())


class Source(StreamPacketSource):
    def connection_made(self, transport):
        self.socket = transport.get_extra_info("socket")
        quick_acknowledgement(self.socket)

    def data_received(self, data):
        quick_acknowledgement(self.socket)
        super().data_received(data)

    def connection_lost(self, _):
        self.on_transport_lost()


async def open_transport(specification: str) -> Transport:
    """Opens `tcp:HOST:PORT`, or any transport that Bumble supports."""
    if not specification.startswith("tcp:"):
        from bumble.transport import open_transport as open_any

        return await open_any(specification)
    host, port = specification.removeprefix("tcp:").rsplit(":", 1)
    transport, source = await asyncio.get_running_loop().create_connection(Source, host, int(port))
    return Transport(source, StreamPacketSink(transport))


class BumbleHost:
    """A Bumble device on a separate controller, while the context is entered."""

    def __init__(self, adapter: str, name: str, address: str = "F0:01:02:03:04:05", settings: dict | None = None):
        """The settings are those of Bumble's device configuration."""
        self.adapter = adapter
        self.settings = settings or {}
        self.name = name
        self.static_address = address
        self.device: Device | None = None
        self.snooper = None
        self.transport: Transport | None = None

    def prepare(self):
        """Adds everything that must exist before the controller is initialized."""

    async def __aenter__(self):
        self.transport = await open_transport(self.adapter)
        configuration = DeviceConfiguration(name=self.name, address=Address(self.static_address), **self.settings)
        self.device = Device.from_config_with_hci(configuration, self.transport.source, self.transport.sink)
        self.device.host.snooper = self.snooper
        self.device.smp_session_proxy = Session
        self.prepare()
        try:
            async with asyncio.timeout(10):
                await self.device.power_on()
        except BaseException:
            await self.transport.close()
            raise
        return self

    async def __aexit__(self, *_):
        await self.transport.close()

    @property
    def supports_extended_advertising(self) -> bool:
        return self.device.supports_le_extended_advertising


def quiet_logging(level=logging.ERROR):
    """Silences warnings of Bumble about actions that the tests perform on purpose."""
    logging.basicConfig(level=level)
    logging.getLogger("bumble").setLevel(logging.CRITICAL if level >= logging.ERROR else level)
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)
