#!/usr/bin/env python3
"""Records the captures in Fixtures again: runs of our host with other peers over rootcanal.

`Tests/Support/RecordedRuns` has the calls of the host under the fixture's name, and `fixture-recorder` performs them
with a controller. This file has the actions of the peers. Captures of the kernel's controllers and of BlueZ are
recorded by `Tests/KernelTests/record`.
"""

import argparse
import asyncio
import contextlib
import dataclasses
import subprocess
import sys
import tempfile
from pathlib import Path

from bumble import att
from bumble.l2cap import LeCreditBasedChannelSpec
from bumble.pairing import PairingConfig, PairingDelegate
from bumble.smp import OobContext, OobLegacyContext, OobSharedData

import bumble_peripheral as bumble
import hosts
from bumble_central import ATTError, Central
from controllers import PRESETS, Controllers, OurControllers, Rootcanal

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "Fixtures"
SERVED = "F1:23:45:67:89:AB"
VALUE, NOTIFIED, INDICATED, COMMAND, SECRET, REFUSED = 0x0102, 0x0105, 0x0108, 0x010B, 0x010D, 0x010F
PASSKEY = 123456
TEMPORARY_KEY = bytes(range(1, 17))


@dataclasses.dataclass(frozen=True)
class Recipe:
    """The way in which a fixture is recorded."""

    name: str
    preset: str
    title: str
    peer: callable


RECIPES: list[Recipe] = []


def recipe(name: str, preset: str, title: str):
    """Registers the peer's actions for a fixture, and the fixture's note."""

    def register(peer):
        RECIPES.append(Recipe(name, preset, title, peer))
        return peer

    return register


class Recording:
    """A run of our host that is being recorded."""

    def __init__(self, recipe: Recipe, controllers: Controllers, recorder: Path, directory: Path):
        self.recipe = recipe
        self.controllers = controllers
        self.recorder = recorder
        self.capture = directory / f"{recipe.name}.btsnoop"
        self.cues: asyncio.Queue[str] = asyncio.Queue()

    @property
    def adapter(self) -> str:
        return f"tcp:127.0.0.1:{self.controllers.hci_port}"

    @contextlib.asynccontextmanager
    async def running(self):
        """Our host, on a separate controller, from before its first packet to after its last."""
        self.process = await asyncio.create_subprocess_exec(
            self.recorder,
            self.recipe.name,
            self.adapter,
            self.capture,
            stdout=asyncio.subprocess.PIPE,
        )
        reading = asyncio.ensure_future(self.read())
        try:
            yield self
            status = await self.process.wait()
            assert status == 0, f"the recorder has ended with {status}"
        finally:
            if self.process.returncode is None:
                self.process.kill()
                await self.process.wait()
            await reading

    async def read(self):
        async for line in self.process.stdout:
            self.cues.put_nowait(line.decode().strip())

    async def cue(self, name: str) -> list[str]:
        """Waits for a cue of our host, and returns the words after its name."""
        while True:
            words = (await self.cues.get()).split()
            if words[:1] == [name]:
                return words[1:]

    @contextlib.asynccontextmanager
    async def peripheral(self, **settings):
        """Bumble's peripheral, advertising."""
        async with bumble.Peripheral(self.adapter, **settings) as peripheral:
            await peripheral.advertise()
            yield peripheral

    @contextlib.asynccontextmanager
    async def link(self):
        """A Bumble central that is connected to our peripheral."""
        async with Central(self.adapter) as central:
            await self.cue("ready")
            link = await central.connect(SERVED)
            yield link
            if not link.disconnected.done():
                await link.disconnect()


# Our central


def met(name: str, preset: str, title: str):
    """A fixture in which Bumble's peripheral does nothing by itself."""

    @recipe(name, preset, title)
    async def peer(recording: Recording):
        async with recording.peripheral(), recording.running():
            pass


met(
    "explore-extended",
    "DEFAULT",
    "all attributes of a Bumble peripheral, with primary, secondary and included services, values of many lengths and "
    "values that it refuses: extended scanning and initiating, ACL packets of 27 bytes",
)
met("explore-legacy", "LEGACY", "the attributes of explore-extended without extended advertising: the legacy commands")
met("long-values", "LAIRD_BL654", "values of up to 512 bytes, read with Read Blob and written with Prepare Write")
met("small-mtu", "DEFAULT", "an ATT_MTU of 23: a long value in many parts, a Write Command")
met("reliable-write", "LAIRD_BL654", "reliable writes: each part is echoed before all are executed; two values at once")
met("attribute-errors", "DEFAULT", "Error Responses: insufficient security, application errors, an unknown handle")
met("channel-refused", "DEFAULT", "an L2CAP channel to an SPSM without a service")


def sent(name: str, uuid: str, indicate: bool, title: str):
    @recipe(name, "DEFAULT", title)
    async def peer(recording: Recording):
        async with recording.peripheral() as peripheral, recording.running():
            await peripheral.subscriptions.get()
            await peripheral.notify_all(uuid, [bytes([count]) * (count * 20 + 1) for count in range(12)], indicate)


sent("notifications", bumble.NOTIFY, False, "a subscription, twelve notifications of up to 221 bytes, and its end")
sent("indications", bumble.INDICATE, True, "a subscription, twelve indications, each confirmed, and its end")


@recipe("lost-link", "DEFAULT", "the peer's controller vanishes during writes: the link is lost")
async def lost_link(recording: Recording):
    async with contextlib.AsyncExitStack() as stack:
        await stack.enter_async_context(recording.peripheral())
        async with recording.running():
            await recording.cue("vanish")
            await stack.aclose()


@recipe("peer-disconnects", "LAIRD_BL654", "the peer ends the link")
async def peer_disconnects(recording: Recording):
    async with recording.peripheral() as peripheral, recording.running():
        connection = await peripheral.connections.get()
        await recording.cue("disconnect")
        await connection.disconnect()


@recipe("parameter-updates", "DEFAULT", "new connection parameters: ours, and those that the peer asks for over L2CAP")
async def parameter_updates(recording: Recording):
    async with recording.peripheral() as peripheral, recording.running():
        connection = await peripheral.connections.get()
        await recording.cue("update")
        await connection.update_parameters(40, 60, 4, 5000)


@recipe("extended-scan", "DEFAULT", "extended advertising of 480 bytes, in fragments and in several reports")
async def extended_scan(recording: Recording):
    async with bumble.Peripheral(recording.adapter) as peripheral:
        await peripheral.advertise_extended(long_advertising_data())
        async with recording.running():
            pass


def long_advertising_data() -> bytes:
    """480 bytes of manufacturer data. Reports hold 229 of them; structures end there, so that each can be read alone.
    """
    lengths = (115, 114, 115, 114, 22)
    data = b"".join(bytes([n - 1, 0xFF, 0xFF, 0xFF]) + bytes([count] * (n - 4)) for count, n in enumerate(lengths))
    assert len(data) == 480
    return data


@recipe("extended-advertising", "DEFAULT", "two advertising sets, one with 460 bytes in fragments; Bumble scans")
async def extended_advertising(recording: Recording):
    async with Central(recording.adapter) as central, recording.running():
        await recording.cue("advertising")
        with contextlib.suppress(TimeoutError):
            await central.find(SERVED, deadline=3)


@recipe("controller-lost", "DEFAULT", "the controller is killed and restarted between two connections: two bring-ups")
async def controller_lost(recording: Recording):
    async with contextlib.AsyncExitStack() as stack:
        await stack.enter_async_context(recording.peripheral())
        async with recording.running():
            await recording.cue("loseController")
            await recording.controllers.kill()
            await stack.aclose()
            await recording.controllers.start()
            async with recording.peripheral():
                await recording.process.wait()


MALFORMED = {
    # The answers instead of a Read By Group Type Response.
    "short": lambda request: b"\x11",
    "unsolicited": lambda request: b"\x0b\x01\x02\x03",
    "otherHandles": lambda request: bytes.fromhex("1106") + bytes.fromhex("000000000018") * 3,
    "backwards": lambda request: bytes.fromhex("1106 0500 0300 0018"),
}


@recipe("malformed-peripheral", "DEFAULT", "a peer that answers the discovery of services with invalid responses")
async def malformed_peripheral(recording: Recording):
    async with recording.peripheral() as peripheral, recording.running():
        server = peripheral.device.gatt_server
        usual = server.on_gatt_pdu
        answer = None

        def respond(connection, pdu):
            if answer is not None and pdu.op_code == att.Opcode.ATT_READ_BY_GROUP_TYPE_REQUEST:
                peripheral.device.send_l2cap_pdu(connection.handle, att.ATT_CID, answer(pdu))
            else:
                usual(connection, pdu)

        server.on_gatt_pdu = respond
        for name, answer in MALFORMED.items():  # noqa: B007  (the responder sees it)
            await recording.cue(name)
            await peripheral.disconnections.get()


@recipe("malformed-advertiser", "DEFAULT", "advertising data with structures that exceed its end")
async def malformed_advertiser(recording: Recording):
    async with bumble.Peripheral(recording.adapter) as peripheral:
        await peripheral.device.start_advertising(
            own_address_type=bumble.OwnAddressType.RANDOM,
            advertising_data=bytes.fromhex("020106 0009 ff09 4142430000 0303"),
            scan_response_data=bytes.fromhex("1e09"),
            advertising_interval_min=20,
            advertising_interval_max=20,
        )
        async with recording.running():
            pass


@recipe("channel-opened", "LAIRD_BL654", "an L2CAP credit-based channel that our host opens: 2000 bytes each way")
async def channel_opened(recording: Recording):
    async with recording.peripheral() as peripheral, recording.running():
        peripheral.device.create_l2cap_server(LeCreditBasedChannelSpec(psm=0x0080, mtu=500, mps=100), echo)


def echo(channel):
    channel.sink = channel.write


# Our peripheral


@recipe("channel-accepted", "DEFAULT", "an L2CAP credit-based channel that Bumble opens: 1500 bytes each way")
async def channel_accepted(recording: Recording):
    async with recording.running(), recording.link() as link:
        channel = await link.connection.create_l2cap_channel(LeCreditBasedChannelSpec(psm=0x0080, mtu=300, mps=80))
        received, done = bytearray(), asyncio.Event()

        def take(data):
            received.extend(data)
            if len(received) >= 1500:
                done.set()

        channel.sink = take
        for _ in range(5):
            channel.write(bytes(range(150)) * 2)
        await done.wait()
        await channel.disconnect()


@recipe("served-to-bumble", "DEFAULT", "a Bumble central that discovers, reads, writes and subscribes")
async def served(recording: Recording):
    async with recording.running(), recording.link() as link:
        await link.table()
        await link.write(VALUE, b"written")
        await link.read(VALUE)
        await link.write_command(COMMAND, b"command")
        for handle in (SECRET, REFUSED, 0x0200):
            with contextlib.suppress(ATTError):
                await link.read(handle)
        with contextlib.suppress(ATTError):
            await link.write(REFUSED, b"\x01")
        for handle, bits in ((NOTIFIED, 1), (INDICATED, 2)):
            async with link.subscription(handle, handle + 1, bits) as values:
                for _ in range(8):
                    await values.get()


@recipe("served-prepared-writes", "LAIRD_BL654", "prepared writes of a Bumble central: executed, cancelled, refused")
async def served_prepared(recording: Recording):
    async with recording.running(), recording.link() as link:
        await link.prepare([(VALUE, bytes(range(256)) * 2)])
        await link.execute()
        await link.prepare([(VALUE, b"cancelled")])
        await link.execute(commit=False)
        await link.prepare([(VALUE, b"beyond")], start=510)
        with contextlib.suppress(ATTError):
            await link.execute()
        with contextlib.suppress(ATTError):
            await link.prepare([(NOTIFIED, b"not permitted")])
        await link.read(VALUE)


@recipe("served-malformed", "DEFAULT", "a central that sends malformed, unknown and unexpected PDUs")
async def served_malformed(recording: Recording):
    async with recording.running(), Central(recording.adapter) as central:
        await recording.cue("ready")
        for pdus, answered in (
            ([(att.ATT_CID, each) for each in ("08", "080100", "0a", "0a03", "0a0000", "0c0102", "0401", "06", "1201")], 9),
            (
                [(att.ATT_CID, each) for each in ("1601", "18", "0e01", "2001", "0805000100ffff", "3e010203")]
                + [(att.ATT_CID, each) for each in ("7e", "d2", "1e")]
                + [(0x003F, "010203"), (0x1234, "ff" * 300), (0x0006, "010700"), (0x0006, "ff"), (0x0005, "ee010000")]
                + [(0x0005, "1201"), (0x0005, "12020800060010000000f401"), (0x0005, "14030a00800040001700ff000000")],
                6,
            ),
        ):
            link = await central.connect(SERVED)
            answers: asyncio.Queue = asyncio.Queue()
            usual = link.client.on_gatt_pdu
            link.client.on_gatt_pdu = answers.put_nowait
            for channel, pdu in pdus:
                link.send_pdu(bytes.fromhex(pdu), channel=channel)
            for _ in range(answered):
                await answers.get()
            link.client.on_gatt_pdu = usual
            await link.read(VALUE)
            await link.disconnect()


@recipe("served-lost-link", "LEGACY", "a central that vanishes without a disconnection, while it is being notified")
async def served_lost(recording: Recording):
    async with recording.running(), Central(recording.adapter) as central:
        await recording.cue("ready")
        link = await central.connect(SERVED)
        await link.write(NOTIFIED + 1, b"\x01\x00")


@recipe("served-parameters", "LAIRD_BL654", "a central that changes connection parameters, and that we disconnect")
async def served_parameters(recording: Recording):
    async with recording.running(), recording.link() as link:
        await link.connection.update_parameters(40, 60, 1, 5000)
        await link.disconnected


# Pairing


@dataclasses.dataclass(frozen=True)
class Model:
    name: str
    title: str
    capability: PairingDelegate.IoCapability = PairingDelegate.IoCapability.NO_OUTPUT_NO_INPUT

    @property
    def is_secure(self) -> bool:
        return self.name.startswith("secure")

    @property
    def is_out_of_band(self) -> bool:
        return self.name.endswith("out-of-band")


Capability = PairingDelegate.IoCapability
MODELS = [
    Model("legacy-just-works", "LE legacy pairing, just works"),
    Model("legacy-passkey-shown", "LE legacy pairing, a passkey that our host shows", Capability.KEYBOARD_INPUT_ONLY),
    Model("legacy-passkey-typed", "LE legacy pairing, a passkey that Bumble shows", Capability.DISPLAY_OUTPUT_ONLY),
    Model("legacy-out-of-band", "LE legacy pairing, a temporary key given out of band"),
    Model("secure-just-works", "LE Secure Connections, just works"),
    Model("secure-passkey-shown", "LE Secure Connections, a passkey that our host shows", Capability.KEYBOARD_INPUT_ONLY),
    Model("secure-passkey-typed", "LE Secure Connections, a passkey that Bumble shows", Capability.DISPLAY_OUTPUT_ONLY),
    Model("secure-comparison", "LE Secure Connections, numeric comparison", Capability.DISPLAY_OUTPUT_AND_YES_NO_INPUT),
    Model("secure-out-of-band", "LE Secure Connections, our host's confirm value given out of band"),
]


class Person(PairingDelegate):
    """A simulated user at Bumble, who sees the cues of our host."""

    def __init__(self, recording: Recording, capability):
        super().__init__(io_capability=capability)
        self.recording = recording

    async def generate_passkey(self) -> int:
        return PASSKEY

    async def get_number(self) -> int:
        (passkey,) = await self.recording.cue("passkey")
        return int(passkey)

    async def compare_numbers(self, number: int, digits: int) -> bool:
        (compared,) = await self.recording.cue("compare")
        assert int(compared) == number, f"{compared} here, {number} there"
        return True


def prepare(recording: Recording, device, secure: bool, mitm: bool = False, person=None, out_of_band=None):
    """Makes Bumble pair."""

    def configuration(_):
        return PairingConfig(
            sc=secure,
            mitm=mitm,
            bonding=True,
            delegate=person or PairingDelegate(),
            identity_address_type=PairingConfig.AddressType.RANDOM,
            oob=out_of_band,
        )

    device.pairing_config_factory = configuration


async def prepare_model(recording: Recording, model: Model, device):
    data = None
    if model.is_out_of_band and model.is_secure:
        confirm, value = (int(word, 16).to_bytes(16, "little") for word in await recording.cue("outOfBand"))
        data = PairingConfig.OobConfig(
            our_context=OobContext(), peer_data=OobSharedData(c=confirm, r=value), legacy_context=None
        )
    elif model.is_out_of_band:
        # Our host writes the key as a number, Bumble writes its bytes from the last one on.
        data = PairingConfig.OobConfig(
            our_context=None, peer_data=None, legacy_context=OobLegacyContext(tk=TEMPORARY_KEY[::-1])
        )
    mitm = model.capability != Capability.NO_OUTPUT_NO_INPUT
    prepare(recording, device, model.is_secure, mitm, Person(recording, model.capability), data)


def pairs(model: Model):
    @recipe(f"pair-{model.name}", "DEFAULT", f"our central pairs with Bumble: {model.title}")
    async def central(recording: Recording):
        async with bumble.Peripheral(recording.adapter) as peripheral, recording.running():
            await prepare_model(recording, model, peripheral.device)
            await peripheral.advertise()

    @recipe(
        f"served-pair-{model.name}",
        "DEFAULT",
        f"Bumble pairs with our peripheral, and reconnects with the bond: {model.title}",
    )
    async def peripheral(recording: Recording):
        async with recording.running(), Central(recording.adapter) as peer:
            await prepare_model(recording, model, peer.device)
            await recording.cue("ready")
            link = await peer.connect(SERVED)
            await link.connection.pair()
            await link.read(SECRET)
            await link.disconnect()
            link = await peer.connect(SERVED)
            await link.connection.encrypt()
            await link.read(SECRET)
            await link.disconnect()


for each in MODELS:
    pairs(each)


def reconnects(name: str, secure: bool, title: str):
    @recipe(name, "DEFAULT", title)
    async def peer(recording: Recording):
        async with recording.peripheral() as peripheral, recording.running():
            prepare(recording, peripheral.device, secure)


reconnects("reconnect-legacy", False, "our central encrypts a second connection with the key of an LE legacy bond")
reconnects("reconnect-secure", True, "our central encrypts a second connection with an LE Secure Connections bond's key")


@recipe("pairing-refused", "DEFAULT", "a peer that refuses to pair")
async def pairing_refused(recording: Recording):
    class Refusing(PairingDelegate):
        async def accept(self) -> bool:
            return False

    async with recording.peripheral() as peripheral, recording.running():
        prepare(recording, peripheral.device, True, person=Refusing())


# Recording


def note(recipe: Recipe) -> str:
    where = "rootcanal 1.10.0" if recipe.preset != "OURS" else "`ble controller`"
    title = recipe.title[0].upper() + recipe.title[1:]
    return (
        f"# {recipe.name}\n\n{title}. The peer is Bumble 0.0.236, over {where} as {recipe.preset}.\n\n"
        f"Recorded by `Tests/InteropTests/record {recipe.name}`.\n"
    )


def store(name: str, capture: Path, note: str, ble: Path):
    """Stores a capture with its note and its description among the fixtures."""
    size = capture.stat().st_size
    assert size < 100_000, f"{name} has {size} bytes"
    (FIXTURES / f"{name}.btsnoop").write_bytes(capture.read_bytes())
    (FIXTURES / f"{name}.md").write_text(note)
    said = subprocess.run([ble, "decode", "--json", capture], check=True, capture_output=True)
    (FIXTURES / f"{name}.json").write_bytes(said.stdout)


async def record(recipe: Recipe, directory: Path, build: Path):
    preset = PRESETS[recipe.preset]
    log = directory / f"{recipe.name}.log"
    make = OurControllers if preset.configuration is None else Rootcanal
    controllers = make(preset, log, build / "ble") if make is OurControllers else make(preset, log)
    async with controllers, asyncio.timeout(90):
        recording = Recording(recipe, controllers, build / "fixture-recorder", directory)
        await recipe.peer(recording)
    store(recipe.name, recording.capture, note(recipe), build / "ble")


async def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="which fixtures; all where none is named")
    parser.add_argument("--build", type=Path, default=ROOT / ".build/debug", help="where ble and fixture-recorder are")
    parser.add_argument("-v", "--verbose", action="store_true")
    options = parser.parse_args()
    if unknown := set(options.names) - {each.name for each in RECIPES}:
        parser.error(f"there is no fixture {', '.join(sorted(unknown))}")
    hosts.quiet_logging()
    failures = []
    with tempfile.TemporaryDirectory() as directory:
        for each in RECIPES:
            if options.names and each.name not in options.names:
                continue
            for attempt in (1, 2):
                try:
                    await record(each, Path(directory), options.build)
                    print(f"ok      {each.name}", flush=True)
                    break
                except Exception as error:  # noqa: BLE001  (the others are recorded all the same)
                    print(f"FAILED  {each.name}: {type(error).__name__} {error}", flush=True)
                    if options.verbose:
                        import traceback

                        traceback.print_exc()
                    if attempt == 2:
                        failures.append(each.name)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
