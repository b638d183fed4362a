"""Pairing of Bumble with Bumble: keyboards, displays and results."""

import asyncio
import dataclasses

from bumble.keys import PairingKeys
from bumble.pairing import PairingConfig, PairingDelegate

from hosts import BumbleHost

NOTHING = PairingDelegate.NO_OUTPUT_NO_INPUT
KEYBOARD = PairingDelegate.KEYBOARD_INPUT_ONLY
DISPLAY = PairingDelegate.DISPLAY_OUTPUT_ONLY
YES_NO = PairingDelegate.DISPLAY_OUTPUT_AND_YES_NO_INPUT


@dataclasses.dataclass(frozen=True)
class Method:
    """A way in which two devices pair: their IO capabilities, and Secure Connections or legacy pairing."""

    name: str
    secure_connections: bool
    central: PairingDelegate.IoCapability
    peripheral: PairingDelegate.IoCapability

    @property
    def is_authenticated(self) -> bool:
        return self.central != NOTHING


METHODS = (
    Method("Secure Connections, just works", True, NOTHING, NOTHING),
    Method("Secure Connections, passkey", True, KEYBOARD, DISPLAY),
    Method("Secure Connections, numeric comparison", True, YES_NO, YES_NO),
    Method("legacy pairing, just works", False, NOTHING, NOTHING),
    Method("legacy pairing, passkey", False, DISPLAY, KEYBOARD),
)


class Person:
    """A simulated user who reads the display of one device and types into the other."""

    def __init__(self):
        self.shown: asyncio.Queue[int] = asyncio.Queue()
        self.compared: list[int] = []


class Delegate(PairingDelegate):
    """A device that the user operates."""

    def __init__(self, capability: PairingDelegate.IoCapability, person: Person):
        super().__init__(io_capability=capability)
        self.person = person

    async def display_number(self, number: int, digits: int):
        self.person.shown.put_nowait(number)

    async def get_number(self) -> int:
        return await self.person.shown.get()

    async def compare_numbers(self, number: int, digits: int) -> bool:
        self.person.compared.append(number)
        return True


def make_ready(method: Method, central: BumbleHost, peripheral: BumbleHost) -> Person:
    """Makes both devices pair by the method, with their random static addresses as identities."""
    person = Person()
    for host, capability in ((central, method.central), (peripheral, method.peripheral)):
        host.device.pairing_config_factory = lambda _, capability=capability: PairingConfig(
            sc=method.secure_connections,
            mitm=method.is_authenticated,
            bonding=True,
            delegate=Delegate(capability, person),
            identity_address_type=PairingConfig.AddressType.RANDOM,
        )
    return person


async def pair(central_end, peripheral_end):
    """Pairs, and returns when both ends have stored the keys."""
    stored = asyncio.get_running_loop().create_future()
    peripheral_end.once(peripheral_end.EVENT_PAIRING, stored.set_result)
    await central_end.pair()
    await stored


async def keys(host: BumbleHost, peer: BumbleHost) -> PairingKeys:
    """The stored keys of a device for its peer."""
    found = await host.device.keystore.get(str(peer.device.static_address))
    assert found is not None, f"{host.name} has no keys of {peer.name}"
    return found


def encryption_of(connection) -> asyncio.Future:
    """A future that ends when the encryption of a connection changes."""
    future = asyncio.get_running_loop().create_future()
    connection.once(connection.EVENT_CONNECTION_ENCRYPTION_CHANGE, lambda: future.set_result(connection.encryption))
    return future
