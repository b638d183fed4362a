"""`ble` pairs with Bumble in both roles, by every association model, with and without a bond, and reconnects.

The security between the devices is checked by reading values: a characteristic that needs encryption, and one that
needs an authenticated key.
"""

import asyncio
import contextlib
import dataclasses
import json

from bumble.hci import HCI_Error, OwnAddressType
from bumble.pairing import PairingConfig, PairingDelegate
from bumble.smp import OobContext, OobLegacyContext, OobSharedData, ProtocolError

import bumble_peripheral as bumble
import profiles
from bumble_central import ATTError
from bumble_pairing import DISPLAY, KEYBOARD, NOTHING, YES_NO
from harness import ALL, EVERY, World, expect, test

NAMES = {NOTHING: "none", KEYBOARD: "keyboard", DISPLAY: "display", YES_NO: "displayYesNo"}
PERIPHERAL, CENTRAL = "F0:01:02:03:04:05", "F0:01:02:03:04:06"
SECRET = b"secret"
RESULTS: dict[tuple[str, str], str] = {}


@dataclasses.dataclass(frozen=True)
class Model:
    """An association model: the kind of pairing, and the IO capabilities of `ble` and of Bumble."""

    name: str
    secure_connections: bool
    ours: PairingDelegate.IoCapability = NOTHING
    theirs: PairingDelegate.IoCapability = NOTHING
    identifier: str = "justWorks"

    @property
    def is_authenticated(self) -> bool:
        return self.identifier != "justWorks"

    @property
    def is_out_of_band(self) -> bool:
        return self.identifier == "outOfBand"

    @property
    def title(self) -> str:
        return f"{'Secure Connections' if self.secure_connections else 'legacy pairing'}, {self.name}"


JUST_WORKS = {secure: Model("just works", secure) for secure in (False, True)}
SHOWN = {secure: Model("passkey shown by ble", secure, DISPLAY, KEYBOARD, "passkeyShownHere") for secure in (False, True)}
TYPED = {secure: Model("passkey typed at ble", secure, KEYBOARD, DISPLAY, "passkeyTypedHere") for secure in (False, True)}
OUT_OF_BAND = {secure: Model("out of band", secure, identifier="outOfBand") for secure in (False, True)}
COMPARISON = Model("numeric comparison", True, YES_NO, YES_NO, "numericComparison")
MODELS = [
    JUST_WORKS[False], SHOWN[False], TYPED[False], OUT_OF_BAND[False],
    JUST_WORKS[True], SHOWN[True], TYPED[True], COMPARISON, OUT_OF_BAND[True],
]  # fmt: skip


class Person(PairingDelegate):
    """A simulated user who reads Bumble's display and types into it."""

    def __init__(self, capability, accepts: bool = True, disagrees_after: asyncio.Event | None = None):
        """A user who accepts every number, except once after `disagrees_after` is set."""
        super().__init__(io_capability=capability)
        self.accepts, self.disagrees_after = accepts, disagrees_after
        self.shown: asyncio.Queue[int] = asyncio.Queue()
        self.typed: asyncio.Queue[int | None] = asyncio.Queue()
        self.compared: asyncio.Queue[int] = asyncio.Queue()

    async def accept(self) -> bool:
        return self.accepts

    async def display_number(self, number: int, digits: int):
        self.shown.put_nowait(number)

    async def get_number(self) -> int | None:
        return await self.typed.get()

    async def compare_numbers(self, number: int, digits: int) -> bool:
        self.compared.put_nowait(number)
        if self.disagrees_after is None:
            return True
        await self.disagrees_after.wait()
        return False


class Pairing:
    """A `ble` and a Bumble that are prepared to pair by a model, and their user."""

    def __init__(self, world: World, model: Model, bonds: bool, **person):
        self.world, self.model, self.bonds = world, model, bonds
        self.person = Person(model.theirs, **person)
        self.state = str(world.directory / "state")
        self.context, self.legacy = OobContext(), OobLegacyContext()
        self.theirs, self.ours = world.directory / "theirs.json", world.directory / "ours.json"

    @property
    def options(self) -> tuple[str, ...]:
        """The options of `ble`."""
        options = ("--state-dir", self.state, "--io", NAMES[self.model.ours])
        if not self.bonds:
            options += ("--no-bond",)
        if not self.model.is_out_of_band:
            return options
        if self.model.secure_connections:
            shared = self.context.share()
            content = {"confirm": shared.c[::-1].hex(), "random": shared.r[::-1].hex()}
            options += ("--oob-out", str(self.ours))
        else:
            content = {"temporaryKey": self.legacy.tk[::-1].hex()}
        self.theirs.write_text(json.dumps(content))
        return (*options, "--oob", str(self.theirs))

    def configure(self, device):
        """Makes Bumble pair by the model, with its random static address."""

        def configuration(_):
            return PairingConfig(
                sc=self.model.secure_connections,
                mitm=self.model.theirs != NOTHING,
                bonding=True,
                delegate=self.person,
                identity_address_type=PairingConfig.AddressType.RANDOM,
                oob=self.out_of_band() if self.model.is_out_of_band else None,
            )

        device.pairing_config_factory = configuration

    def out_of_band(self):
        if not self.model.secure_connections:
            return PairingConfig.OobConfig(our_context=None, peer_data=None, legacy_context=self.legacy)
        # When the devices pair, `ble` has already written its out-of-band data for Bumble.
        ours = json.loads(self.ours.read_text())
        peer = OobSharedData(c=bytes.fromhex(ours["confirm"])[::-1], r=bytes.fromhex(ours["random"])[::-1])
        return PairingConfig.OobConfig(our_context=self.context, peer_data=peer, legacy_context=None)

    async def carry(self, process, names_question: bool = False):
        """Carries numbers between Bumble and a running `ble`, as the user of both.

        With `names_question`, answers name their question, as `ble serve` requires.
        """
        if self.model.identifier == "passkeyShownHere":
            self.person.typed.put_nowait(int((await process.event("passkey", deadline=20))["passkey"]))
        elif self.model.identifier == "passkeyTypedHere":
            question = (await process.event("passkeyWanted", deadline=20))["question"]
            prefix = f"passkey {question} " if names_question else ""
            process.send(f"{prefix}{await self.person.shown.get():06}")
        elif self.model.identifier == "numericComparison":
            asked = await process.event("compare", deadline=20)
            expect(int(asked["number"]), await self.person.compared.get(), "the number that both show")
            process.send(f"yes {asked['question']}" if names_question else "yes")

    def check(self, event: dict):
        """Checks that the devices have paired by the model, with the expected strength."""
        found = {key: event[key] for key in ("model", "authenticated", "secureConnections", "keySize", "bonded")}
        wanted = {
            "model": self.model.identifier,
            "authenticated": self.model.is_authenticated,
            "secureConnections": self.model.secure_connections,
            "keySize": 16,
            "bonded": self.bonds,
        }
        expect(found, wanted, "the pairing")

    async def expect_bonds(self, count: int):
        """Checks the number of stored bonds; the last one may still be on its way to the file."""
        async with asyncio.timeout(10):
            while True:
                outcome = await self.world.tool.run("bonds", "list", "--state-dir", self.state, capture=False)
                if len(outcome.succeeded().events) == count:
                    return
                assert len(outcome.events) < count, f"{len(outcome.events)} bonds instead of {count}"

    @contextlib.contextmanager
    def noted(self, role: str):
        """Records the result for the table."""
        place = (self.model.title, f"{role}, {'bond' if self.bonds else 'no bond'}")
        RESULTS[place] = "FAILED"
        yield
        RESULTS[place] = "ok"


def table() -> list[str]:
    """The results of all pairings, one line for each model."""
    columns = [f"ble as {role}, {bond}" for role in ("central", "peripheral") for bond in ("bond", "no bond")]
    rows = [model.title for model in MODELS if any(title == model.title for title, _ in RESULTS)]
    if not rows:
        return []
    width = max(map(len, rows))
    lines = ["", "pairing with Bumble".ljust(width) + "".join(f"  {column}" for column in columns)]
    for row in rows:
        cells = (RESULTS.get((row, column.removeprefix("ble as ")), "") for column in columns)
        lines.append(row.ljust(width) + "".join(f"  {cell.ljust(len(column))}" for cell, column in zip(cells, columns)))
    return lines


# ble as the central


@contextlib.asynccontextmanager
async def bumble_lock(pairing: Pairing, **settings):
    """A Bumble peripheral with values that need security."""
    async with pairing.world.peripheral(name="Lock", address=PERIPHERAL, **settings) as lock:
        pairing.configure(lock.device)
        await lock.advertise()
        yield lock


def start(pairing: Pairing, verb: str, *arguments: str, **options):
    return pairing.world.start(verb, PERIPHERAL, *arguments, "--address-type", "random", **options)


async def read(pairing: Pairing, uuid: str) -> bytes:
    """Reads without a user at the terminal, to check the strength of the bond."""
    arguments = ("read", PERIPHERAL, uuid, "--address-type", "random", "--state-dir", pairing.state)
    return bytes.fromhex((await pairing.world.ble(*arguments)).succeeded().object["value"])


def readable(model: Model) -> list[str]:
    return [bumble.ENCRYPTED, bumble.AUTHENTICATED] if model.is_authenticated else [bumble.ENCRYPTED]


def as_central(model: Model, bonds: bool):
    @test(
        f"ble pairs with a Bumble peripheral: {model.title}, {'bond' if bonds else 'no bond'}",
        ALL if bonds and model.title == "Secure Connections, numeric comparison" else EVERY,
        deadline=90,
    )
    async def paired(world: World):
        pairing = Pairing(world, model, bonds)
        with pairing.noted("central"):
            async with bumble_lock(pairing) as lock:
                pairings = []
                lock.device.on("connection", lambda each: each.on(each.EVENT_PAIRING, pairings.append))
                if bonds:
                    async with start(pairing, "pair", *pairing.options) as process:
                        await pairing.carry(process)
                        pairing.check(await process.event("paired", deadline=20))
                        (await process.ended(20)).succeeded()
                else:
                    # The keys end with the link, so their strength is checked over this link.
                    async with start(pairing, "read", readable(model)[-1], *pairing.options) as process:
                        await pairing.carry(process)
                        outcome = (await process.ended(20)).succeeded()
                        expect(bytes.fromhex(outcome.events[-1]["value"]), SECRET, "the value")
                # Bumble may still be processing the last packets.
                async with asyncio.timeout(10):
                    while not pairings:
                        await asyncio.sleep(0.01)
                await pairing.expect_bonds(1 if bonds else 0)
                if bonds:
                    for uuid in readable(model):
                        expect(await read(pairing, uuid), SECRET, "the value by the bond")
                    expect(len(pairings), 1, "pairings after meeting again")


for each in MODELS:
    for kept in (True, False):
        as_central(each, kept)


# ble as the peripheral


@contextlib.asynccontextmanager
async def our_lock(pairing: Pairing, *more: str):
    """A running `ble serve` with values that need security, once it is ready."""
    path = pairing.world.file("lock.json", profiles.profile())
    async with pairing.world.start("serve", path, *pairing.options, *more) as process:
        await process.event("ready")
        yield process


async def read_secrets(link, model: Model):
    for uuid in readable(model):
        expect(await link.read(profiles.value_handle(uuid)), SECRET, "the value")


def as_peripheral(model: Model, bonds: bool):
    @test(
        f"Bumble pairs with ble serve: {model.title}, {'bond' if bonds else 'no bond'}",
        ALL if bonds and model.title == "Secure Connections, numeric comparison" else EVERY,
        deadline=90,
    )
    async def paired(world: World):
        pairing = Pairing(world, model, bonds)
        with pairing.noted("peripheral"):
            async with our_lock(pairing) as process, world.central(address=CENTRAL) as central:
                pairing.configure(central.device)
                link = await central.connect(profiles.ADDRESS)
                await refused(link)
                attempt = asyncio.ensure_future(link.connection.pair())
                await pairing.carry(process, names_question=True)
                await attempt
                pairing.check(await process.event("paired", deadline=20))
                await read_secrets(link, model)
                await link.disconnect()
                await process.event("disconnected")
                await pairing.expect_bonds(1 if bonds else 0)

                link = await central.connect(profiles.ADDRESS)
                await refused(link)
                if bonds:
                    await link.connection.encrypt()
                    await process.event("encryption", encrypted=True)
                    await read_secrets(link, model)
                    await link.disconnect()
                else:
                    await expect_no_key(link)
                await process.event("disconnected")
                pairings = [event for event in process.events if event["event"] == "pairing"]
                expect(len(pairings), 1, "pairings")
                process.send("quit")
                (await process.ended()).succeeded()


async def refused(link):
    """Checks that values that need encryption are refused without it."""
    try:
        await link.read(profiles.value_handle(bumble.ENCRYPTED))
    except ATTError as error:
        assert error.name in ("insufficientAuthentication", "insufficientEncryption"), error
    else:
        raise AssertionError("a value that needs encryption was read without")


async def expect_no_key(link):
    """Checks that encryption fails because the peer has no key; the link may end as well."""
    with contextlib.suppress(HCI_Error, asyncio.CancelledError, ConnectionError, ProtocolError):
        async with asyncio.timeout(10):
            await link.connection.encrypt()
            raise AssertionError("the link is encrypted with a key that was to be forgotten")
    if not link.disconnected.done():
        with contextlib.suppress(Exception):
            await link.disconnect()


for each in MODELS:
    for kept in (True, False):
        as_peripheral(each, kept)


# Failures

ONE = ("DEFAULT", "OURS")


@test("a wrong passkey ends the pairing, is reported in one line, and stores nothing", presets=ONE)
async def wrong_passkey(world: World):
    for secure in (False, True):
        pairing = Pairing(world, TYPED[secure], True)
        async with bumble_lock(pairing):
            async with start(pairing, "pair", *pairing.options) as process:
                await process.event("passkeyWanted", deadline=20)
                process.send(f"{(await pairing.person.shown.get() + 1) % 1_000_000:06}")
                (await process.ended(20)).failed("confirm value")
            await pairing.expect_bonds(0)
        pairing = Pairing(world, SHOWN[secure], True)
        async with our_lock(pairing) as process, world.central(address=CENTRAL) as central:
            pairing.configure(central.device)
            link = await central.connect(profiles.ADDRESS)
            attempt = asyncio.ensure_future(link.connection.pair())
            shown = int((await process.event("passkey", deadline=20))["passkey"])
            pairing.person.typed.put_nowait((shown + 1) % 1_000_000)
            await process.event("pairingFailed", deadline=20)
            await fails(attempt)
            # A device that has failed must wait for a second before it pairs again. If that time is over, it fails
            # again.
            pairing.person.typed.put_nowait((shown + 1) % 1_000_000)
            await fails(asyncio.ensure_future(link.connection.pair()))
            await refused(link)
            await pairing.expect_bonds(0)


async def fails(attempt: asyncio.Future):
    try:
        async with asyncio.timeout(10):
            await attempt
    except (ProtocolError, HCI_Error, asyncio.CancelledError):
        return
    raise AssertionError("a pairing was to fail")


@test("a refusal of either side ends the pairing, is reported in one line, and stores nothing", presets=ONE)
async def refusals(world: World):
    # Bumble's user sees another number, or refuses to pair. A number that Bumble refuses before `ble` has shown it is
    # never shown.
    shown = asyncio.Event()
    for model, person, words in (
        (COMPARISON, {"disagrees_after": shown}, "reported by the peer"),
        (JUST_WORKS[True], {"accepts": False}, "reported by the peer"),
    ):
        pairing = Pairing(world, model, True, **person)
        async with bumble_lock(pairing):
            async with start(pairing, "pair", *pairing.options) as process:
                if model is COMPARISON:
                    await process.event("compare", deadline=20)
                    process.send("yes")
                    shown.set()
                (await process.ended(20)).failed(words)
            await pairing.expect_bonds(0)
    # Now the user of `ble` refuses.
    pairing = Pairing(world, COMPARISON, True)
    async with bumble_lock(pairing):
        async with start(pairing, "pair", *pairing.options) as process:
            await process.event("compare", deadline=20)
            process.send("no")
            (await process.ended(20)).failed("not consented")
        await pairing.expect_bonds(0)


@test("a bond that could not be saved is an error", presets=ONE)
async def unsaved_bond(world: World):
    file = world.directory / "file"
    file.write_text("")
    pairing = Pairing(world, JUST_WORKS[True], True)
    pairing.state = str(file / "state")
    async with bumble_lock(pairing), start(pairing, "pair", *pairing.options) as process:
        await process.event("paired", deadline=20)
        outcome = await process.ended(20)
    assert outcome.status == 1, f"status {outcome.status}"
    assert "could not be saved" in outcome.errors.splitlines()[-1], outcome.errors


@test("legacy pairing, just works and a peer without a keyboard are refused if the options require it", presets=ONE)
async def policies(world: World):
    for model, option in ((JUST_WORKS[False], "--sc-only"), (JUST_WORKS[True], "--authenticated")):
        pairing = Pairing(world, model, True)
        async with bumble_lock(pairing):
            async with start(pairing, "pair", *pairing.options, option) as process:
                (await process.ended(20)).failed("authentication")
        async with our_lock(pairing, option) as process, world.central(address=CENTRAL) as central:
            pairing.configure(central.device)
            link = await central.connect(profiles.ADDRESS)
            await fails(asyncio.ensure_future(link.connection.pair()))
            await process.event("pairingFailed")


@test("a person who does not answer in 30 seconds ends the pairing", presets=("DEFAULT",), deadline=120)
async def silence(world: World):
    pairing = Pairing(world, SHOWN[True], True)
    async with bumble_lock(pairing):
        async with start(pairing, "pair", *pairing.options) as process:
            await process.event("passkey", deadline=20)
            (await process.ended(60)).failed("30 seconds")
        await pairing.expect_bonds(0)


@test("a peripheral that has lost the bond is not paired again without consent", presets=ONE)
async def lost_by_peripheral(world: World):
    pairing = Pairing(world, JUST_WORKS[True], True)
    async with bumble_lock(pairing) as lock:
        pairings = []
        lock.device.on("connection", lambda each: each.on(each.EVENT_PAIRING, pairings.append))
        async with start(pairing, "pair", *pairing.options) as process:
            (await process.ended(20)).succeeded()
        # Bumble stores its keys just before it reports the pairing.
        async with asyncio.timeout(10):
            while not pairings:
                await asyncio.sleep(0.01)
        await lock.device.keystore.delete_all()
        attempt = await world.ble(
            "read", PERIPHERAL, bumble.ENCRYPTED, "--address-type", "random", "--state-dir", pairing.state
        )
        attempt.failed("lost", "remove the bond")
        await pairing.expect_bonds(1)
        async with start(pairing, "pair", *pairing.options, "--replace-bond") as process:
            (await process.ended(20)).succeeded()
        expect(await read(pairing, bumble.ENCRYPTED), SECRET, "the value by the new bond")


@test("a central that has lost the bond cannot replace it without consent, and reads nothing", presets=ONE)
async def lost_by_central(world: World):
    pairing = Pairing(world, JUST_WORKS[True], True)
    async with our_lock(pairing) as process, world.central(address=CENTRAL) as central:
        pairing.configure(central.device)
        link = await central.connect(profiles.ADDRESS)
        await link.connection.pair()
        await process.event("paired")
        await link.disconnect()
        await process.event("disconnected")
        await central.device.keystore.delete_all()
        link = await central.connect(profiles.ADDRESS)
        await fails(asyncio.ensure_future(link.connection.pair()))
        await refused(link)
        await process.event("pairingFailed")
        await pairing.expect_bonds(1)
    async with our_lock(pairing, "--replace-bond") as process, world.central(address=CENTRAL) as central:
        pairing.configure(central.device)
        link = await central.connect(profiles.ADDRESS)
        await link.connection.pair()
        await process.event("paired")
        await read_secrets(link, pairing.model)


@test("ble that has lost the bond gets no encryption, and pairs again", presets=ONE)
async def lost_by_us(world: World):
    pairing = Pairing(world, JUST_WORKS[True], True)
    async with our_lock(pairing) as process, world.central(address=CENTRAL) as central:
        pairing.configure(central.device)
        link = await central.connect(profiles.ADDRESS)
        await link.connection.pair()
        await process.event("paired")
        await link.disconnect()
        process.send("quit")
        (await process.ended()).succeeded()
        (await world.tool.run("bonds", "remove", CENTRAL, "--state-dir", pairing.state, capture=False)).succeeded()
        async with our_lock(pairing) as process:
            link = await central.connect(profiles.ADDRESS)
            await expect_no_key(link)
            await process.event("disconnected")
            # Both have lost the bond now.
            await central.device.keystore.delete_all()
            link = await central.connect(profiles.ADDRESS)
            await link.connection.pair()
            await process.event("paired")
            await read_secrets(link, pairing.model)
            await pairing.expect_bonds(1)


# Private addresses


@test("a bonded Bumble peripheral is recognized by private addresses, and read", presets=("DEFAULT", "LEGACY", "OURS", "NEWER"))
async def private_peripheral(world: World):
    settings = {"irk": bytes(range(16)), "le_privacy_enabled": True}
    pairing = Pairing(world, JUST_WORKS[True], True)
    async with bumble_lock(pairing, settings=settings) as lock:
        await lock.device.stop_advertising()
        async with private_advertising(lock):
            first = str(lock.device.random_address).split("/")[0].upper()
            async with world.start(
                "pair", first, "--address-type", "random", "--state-dir", pairing.state
            ) as process:
                event = await process.event("paired", deadline=20)
                expect(event["identity"], PERIPHERAL, "the identity")
                (await process.ended(20)).succeeded()
        await lock.device.update_rpa()
        async with private_advertising(lock):
            second = str(lock.device.random_address).split("/")[0].upper()
            assert second != first, "the address has not changed"
            outcome = await world.ble("scan", "--duration", "2", "--state-dir", pairing.state)
            addresses = {event["address"] for event in outcome.succeeded().events if "address" in event}
            assert PERIPHERAL in addresses and second not in addresses, f"heard {addresses}"
            value = await world.ble("read", PERIPHERAL, bumble.ENCRYPTED, "--state-dir", pairing.state)
            expect(bytes.fromhex(value.succeeded().object["value"]), SECRET, "the value")


@contextlib.asynccontextmanager
async def private_advertising(lock):
    """Makes Bumble advertise under a resolvable private address that it generates."""
    await lock.device.start_advertising(
        own_address_type=OwnAddressType.RANDOM,
        auto_restart=False,
        advertising_data=lock.advertising_data,
        scan_response_data=lock.scan_response_data,
        advertising_interval_min=20,
        advertising_interval_max=20,
    )
    yield
    await lock.device.stop_advertising()
