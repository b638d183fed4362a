"""`ble` pairs with Bumble: in both roles, by every association model, with a bond and without, and meets it again.

What the peers are to each other afterwards is seen by what can be read: a characteristic that needs encryption, one that
needs an authenticated key.
"""

import asyncio
import contextlib
import dataclasses
import itertools

from bumble.pairing import PairingConfig, PairingDelegate
from bumble.smp import OobContext, OobLegacyContext, OobSharedData

import bumble_peripheral as bumble
import profiles
from bumble_central import ATTError, Link
from bumble_pairing import DISPLAY, KEYBOARD, NOTHING, YES_NO, encryption_of
from harness import World, expect, test

NAMES = {NOTHING: "none", KEYBOARD: "keyboard", DISPLAY: "display", YES_NO: "displayYesNo"}
PERIPHERAL, CENTRAL = "F0:01:02:03:04:05", "F0:01:02:03:04:06"
SECRET = b"secret"


@dataclasses.dataclass(frozen=True)
class Model:
    """An association model: what `ble` can show and take in, and Bumble, and by which kind of pairing."""

    name: str
    secure_connections: bool
    ours: PairingDelegate.IoCapability = NOTHING
    theirs: PairingDelegate.IoCapability = NOTHING
    identifier: str = "justWorks"
    out_of_band: bool = False

    @property
    def is_authenticated(self) -> bool:
        return self.identifier != "justWorks"

    @property
    def title(self) -> str:
        return f"{'Secure Connections' if self.secure_connections else 'legacy pairing'}, {self.name}"


MODELS = [
    *(
        Model(name, secure, ours, theirs, identifier)
        for secure in (False, True)
        for name, ours, theirs, identifier in (
            ("just works", NOTHING, NOTHING, "justWorks"),
            ("passkey shown by ble", DISPLAY, KEYBOARD, "passkeyShownHere"),
            ("passkey typed at ble", KEYBOARD, DISPLAY, "passkeyTypedHere"),
        )
    ),
    Model("numeric comparison", True, YES_NO, YES_NO, "numericComparison"),
    Model("out of band", False, identifier="outOfBand", out_of_band=True),
    Model("out of band", True, identifier="outOfBand", out_of_band=True),
]
BY_NAME = {model.title: model for model in MODELS}


class BumblePerson(PairingDelegate):
    """Who looks at Bumble's display and types into it; what `ble` shows is given to it."""

    def __init__(self, capability, *, passkey=None, accepts=True, agrees=True):
        super().__init__(io_capability=capability)
        self.accepts, self.agrees, self.passkey = accepts, agrees, passkey
        self.shown: asyncio.Queue[int] = asyncio.Queue()
        self.typed: asyncio.Queue[int] = asyncio.Queue()
        self.compared: asyncio.Queue[int] = asyncio.Queue()

    async def accept(self) -> bool:
        return self.accepts

    async def display_number(self, number: int, digits: int):
        self.shown.put_nowait(number)

    async def get_number(self) -> int:
        return await self.typed.get()

    async def compare_numbers(self, number: int, digits: int) -> bool:
        self.compared.put_nowait(number)
        return self.agrees


class OutOfBand:
    """What both sides have handed to each other by another way: a file for `ble`, a configuration for Bumble."""

    def __init__(self, world: World, model: Model):
        self.world, self.model = world, model
        self.context = OobContext()
        self.legacy = OobLegacyContext()
        self.peer: OobSharedData | None = None

    @property
    def configuration(self):
        return PairingConfig.OobConfig(
            our_context=self.context if self.model.secure_connections else None,
            peer_data=self.peer,
            legacy_context=None if self.model.secure_connections else self.legacy,
        )
