"""Controllers of several kinds in one virtual air, in a separate process that can be killed and restarted: rootcanal,
Android's virtual controller, or our own `ble controller`."""

import asyncio
import contextlib
import dataclasses
import random
import signal
import socket
import struct
import sys
import tempfile
from pathlib import Path

DEADLINE = 10.0


@dataclasses.dataclass(frozen=True)
class BufferShape:
    """The number and the length of the ACL packets that a controller is made to report."""

    length: int
    count: int


@dataclasses.dataclass(frozen=True)
class Preset:
    """One kind of controller: rootcanal's with a configuration, ours with arguments."""

    name: str
    configuration: str | None = None
    arguments: tuple[str, ...] = ()
    extended_advertising: bool = True
    shape: BufferShape | None = None
    # The preset whose tests this one also runs if `--preset` names it. Otherwise it runs only the tests that name it.
    by_hand_like: str | None = None
    # Whether the controller is the rootcanal of newer-requirements.txt.
    is_newer: bool = False

    @property
    def program(self) -> list[str | Path]:
        """The command that starts this rootcanal."""
        if not self.is_newer:
            import rootcanal.binaries  # only here, because the tests of the gateway use this module without rootcanal

            return [rootcanal.binaries.get_package_binary_resource_path("rootcanal")]
        libraries = NEWER_ROOTCANAL / "lib"
        if not libraries.exists():
            return [NEWER_ROOTCANAL / "rootcanal"]
        return [libraries / "ld-linux-x86-64.so.2", "--library-path", libraries, NEWER_ROOTCANAL / "rootcanal"]

    @property
    def is_installed(self) -> bool:
        return not self.is_newer or (NEWER_ROOTCANAL / "rootcanal").exists()


# Where newer_rootcanal.sh installs it, if it can.
NEWER_ROOTCANAL = Path(sys.prefix) / "newer-rootcanal"

# rootcanal 1.10.0 has no preset for Intel's BE200, later versions do. `Gateway` reports its buffers (3 of 251 bytes) in
# front of the LAIRD controller, and checks that the host respects them.
PRESETS = {
    preset.name: preset
    for preset in (
        Preset("DEFAULT", "preset: DEFAULT"),
        Preset("LAIRD_BL654", "preset: LAIRD_BL654 strict: false"),
        Preset("INTEL_BE200", "preset: LAIRD_BL654 strict: false", shape=BufferShape(251, 3)),
        Preset(
            "LEGACY",
            "preset: DEFAULT features { le_extended_advertising: false }",
            extended_advertising=False,
        ),
        Preset("OURS"),
        Preset("NEWER", "preset: DEFAULT", by_hand_like="DEFAULT", is_newer=True),
    )
}


# The ports that tests of this process have got. Some of them have no listener yet, or none for a while.
_given_ports: set[int] = set()


def free_ports(count: int) -> list[int]:
    """Ports without a listener, below those that the kernel assigns to outgoing connections. Each is given once."""
    ports: list[int] = []
    while len(ports) < count:
        port = random.randrange(16_000, 32_000)
        with contextlib.suppress(OSError), socket.socket() as attempt:
            attempt.bind(("", port))
            if port not in _given_ports:
                _given_ports.add(port)
                ports.append(port)
    return ports


async def connect_when_listening(port: int, deadline: float = DEADLINE):
    """Connects as soon as there is a listener."""
    end = asyncio.get_running_loop().time() + deadline
    while True:
        try:
            return await asyncio.open_connection("127.0.0.1", port)
        except ConnectionRefusedError:
            if asyncio.get_running_loop().time() > end:
                raise
            await asyncio.sleep(0.01)


class Controllers:
    """A process that serves controllers. Each connection to `hci_port` is a new controller; all are in one virtual air.
    """

    def __init__(self, preset: Preset, log: Path):
        self.preset = preset
        self.log = log
        self.process: asyncio.subprocess.Process | None = None
        self.gateway: Gateway | None = None
        (self.controller_port,) = free_ports(1)

    async def __aenter__(self):
        try:
            await self.start()
        except BaseException:
            await self.kill()
            raise
        if self.preset.shape is not None:
            self.gateway = Gateway(self.controller_port, self.preset.shape)
            await self.gateway.start()
        return self

    async def __aexit__(self, *_):
        if self.gateway is not None:
            await self.gateway.stop()
        await self.kill()

    @property
    def hci_port(self) -> int:
        """The port for controllers of the preset."""
        return self.gateway.port if self.gateway is not None else self.controller_port

    async def start(self):
        """Starts the process on the same ports as before, and waits until it answers."""
        raise NotImplementedError

    async def kill(self):
        """Ends the process at once, like a controller that is unplugged."""
        if self.process is not None and self.process.returncode is None:
            self.process.kill()
            await self.process.wait()

    @property
    def has_crashed(self) -> bool:
        """Whether the process has ended other than by `kill`."""
        return self.process is not None and self.process.returncode not in (None, -signal.SIGKILL)


class OurControllers(Controllers):
    """`ble controller`. Unlike the peers, it may not crash, and it ends cleanly on request."""

    def __init__(self, preset: Preset, log: Path, binary: Path):
        super().__init__(preset, log)
        self.binary = binary

    async def start(self):
        with open(self.log, "ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                self.binary,
                "controller",
                "--listen",
                f"tcp:127.0.0.1:{self.controller_port}",
                *self.preset.arguments,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        _, writer = await connect_when_listening(self.controller_port)
        writer.close()

    async def __aexit__(self, *details):
        has_ended = self.process.returncode is not None and self.has_crashed
        if self.process.returncode is None:
            self.process.terminate()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(DEADLINE):
                    await self.process.wait()
        status = self.process.returncode
        await super().__aexit__(*details)
        if has_ended:
            raise AssertionError(f"ble controller has ended by itself with {status}; see {self.log}")
        if status not in (0, -signal.SIGKILL):
            raise AssertionError(f"ble controller ended with {status} when it was told to end; see {self.log}")


class Rootcanal(Controllers):
    """rootcanal."""

    def __init__(self, preset: Preset, log: Path):
        super().__init__(preset, log)
        self.channels: list[asyncio.StreamWriter] = []
        self.test_port, *self.other_ports, self.controller_port = free_ports(5)

    async def start(self):
        """Starts the process. Rootcanal sometimes ends while it starts; then it is started again."""
        for remaining in (2, 1, 0):
            try:
                return await self.launch()
            except (RuntimeError, EOFError):
                await self.kill()
                if not remaining:
                    raise

    async def launch(self):
        hci, link, link_ble = self.other_ports
        told = self.log.stat().st_size if self.log.exists() else 0
        configuration = tempfile.NamedTemporaryFile("w", suffix=".txt")
        with configuration, open(self.log, "ab") as log:
            configuration.write(
                f"tcp_server {{ tcp_port: {self.controller_port} configuration {{ {self.preset.configuration} }} }}\n"
            )
            configuration.flush()
            self.process = await asyncio.create_subprocess_exec(
                *self.preset.program,
                f"--test_port={self.test_port}",
                f"--hci_port={hci}",
                f"--link_port={link}",
                f"--link_ble_port={link_ble}",
                f"--configuration_file={configuration.name}",
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
            try:
                await self.until_ready(told)
                await self.prepare()
                _, writer = await connect_when_listening(self.controller_port)
                writer.close()
            except OSError as error:
                raise RuntimeError(f"rootcanal does not listen; see {self.log}") from error

    async def until_ready(self, told: int):
        """Returns when the process reports in its log, from a position on, that it is ready.

        A connection before that is too early: the process has commands of its own to perform, and sends their answers
        to the connected client.
        """
        end = asyncio.get_running_loop().time() + DEADLINE
        while b"SetUp() successful" not in self.log.read_bytes()[told:]:
            if self.process.returncode is not None or asyncio.get_running_loop().time() > end:
                raise RuntimeError(f"rootcanal does not start; see {self.log}")
            await asyncio.sleep(0.005)

    async def kill(self):
        await super().kill()
        while self.channels:
            self.channels.pop().close()

    async def prepare(self):
        """Has rootcanal look for work each millisecond. Removes the two beacons that the newer one has in its air."""
        commands = [(b"set_timer_period", b"1", "set timer period to 1")]
        if self.preset.is_newer:
            commands += [(b"del", b"%d" % index, "TestCommandHandler 'del' called") for index in range(2)]
        for patience in (1, 2, DEADLINE):  # sometimes a command is not answered; it can be repeated
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(patience):
                    return await self.instruct(commands)
        raise RuntimeError("rootcanal does not answer on its test channel")

    async def instruct(self, commands: list[tuple[bytes, bytes, str]]):
        """Gives commands, each with an argument, over the test channel, and waits for their answers, which begin with
        the given texts.

        A command is its name and a count of arguments, each text after its length in one byte. The answer follows its
        length in four bytes. The channel stays open, because rootcanal ends if it cannot send an answer. The newer one
        accepts one channel at a time.
        """
        reader, writer = await connect_when_listening(self.test_port)
        self.channels.append(writer)
        for name, argument, expected in commands:
            writer.write(bytes([len(name)]) + name + b"\x01" + bytes([len(argument)]) + argument)
            answer = ""
            while not answer.startswith(expected):
                (length,) = struct.unpack("<I", await reader.readexactly(4))
                answer = (await reader.readexactly(length)).decode()


class Gateway:
    """Stands between hosts and their controllers, reports other ACL buffers, and checks that they suffice."""

    def __init__(self, controller_port: int, shape: BufferShape):
        self.controller_port = controller_port
        self.shape = shape
        self.violations: list[str] = []
        self.ends: set[GatewayEnd] = set()

    async def start(self):
        loop = asyncio.get_running_loop()
        self.server = await loop.create_server(lambda: HostEnd(self), "127.0.0.1", 0)
        self.port = self.server.sockets[0].getsockname()[1]

    async def stop(self):
        self.server.close()
        for end in list(self.ends):
            end.transport.abort()


class GatewayEnd(asyncio.Protocol):
    """One side of the gateway: splits the stream into H4 packets and passes them to the other side."""

    # By packet type: the length of the header, and the position of the length in it.
    HEADERS = {1: (3, 2, "B"), 2: (4, 2, "<H"), 3: (3, 2, "B"), 4: (2, 1, "B"), 5: (4, 2, "<H")}

    def __init__(self, gateway: Gateway):
        self.gateway = gateway
        self.other: GatewayEnd | None = None
        self.transport: asyncio.Transport | None = None
        self.buffer = bytearray()

    def connection_made(self, transport):
        self.transport = transport
        self.socket = transport.get_extra_info("socket")
        self.gateway.ends.add(self)
        quick_acknowledgement(self.socket)

    def connection_lost(self, _):
        self.gateway.ends.discard(self)
        if self.other is not None and self.other.transport is not None:
            self.other.transport.close()

    def data_received(self, data):
        quick_acknowledgement(self.socket)
        self.buffer += data
        if self.other is None or self.other.transport is None:
            return
        passed = bytearray()
        while self.buffer:
            header, offset, form = self.HEADERS[self.buffer[0]]
            if len(self.buffer) < 1 + header:
                break
            end = 1 + header + struct.unpack_from(form, self.buffer, 1 + offset)[0]
            if len(self.buffer) < end:
                break
            packet, self.buffer = self.buffer[:end], self.buffer[end:]
            self.note(packet)
            passed += packet
        if passed:
            self.other.transport.write(passed)

    def note(self, packet: bytearray):
        """Receives a packet before it is passed on, and may change it."""


class HostEnd(GatewayEnd):
    """The side of the host, which connects to a controller for it."""

    def connection_made(self, transport):
        super().connection_made(transport)
        self.outstanding: dict[int, int] = {}
        self.connecting = asyncio.ensure_future(self.connect())

    async def connect(self):
        self.other = ControllerEnd(self.gateway)
        self.other.other = self
        try:
            await asyncio.get_running_loop().create_connection(
                lambda: self.other, "127.0.0.1", self.gateway.controller_port
            )
        except OSError:
            self.transport.close()
        else:
            self.data_received(b"")

    def note(self, packet):
        if packet[0] != 2:
            return
        shape, violations = self.gateway.shape, self.gateway.violations
        handle, length = struct.unpack_from("<HH", packet, 1)
        handle &= 0x0FFF
        self.outstanding[handle] = self.outstanding.get(handle, 0) + 1
        if length > shape.length:
            violations.append(f"an ACL packet of {length} bytes for a buffer of {shape.length}")
        if sum(self.outstanding.values()) > shape.count:
            violations.append(f"{sum(self.outstanding.values())} ACL packets for {shape.count} buffers")


class ControllerEnd(GatewayEnd):
    """The side of the controller, whose reported buffers it replaces."""

    LE_READ_BUFFER_SIZE = (0x2002, 0x2060)

    def note(self, packet):
        if packet[0] != 4:
            return
        event, shape, outstanding = packet[1], self.gateway.shape, self.other.outstanding
        if event == 0x0E and struct.unpack_from("<H", packet, 4)[0] in self.LE_READ_BUFFER_SIZE and packet[6] == 0:
            struct.pack_into("<HB", packet, 7, shape.length, shape.count)
        elif event == 0x05:
            outstanding.pop(struct.unpack_from("<H", packet, 4)[0], None)
        elif event == 0x13:
            for index in range(packet[3]):
                handle, count = struct.unpack_from("<HH", packet, 4 + 4 * index)
                if handle in outstanding:
                    outstanding[handle] = max(0, outstanding[handle] - count)


def quick_acknowledgement(connection):
    """rootcanal sends an event in two parts under Nagle's algorithm: the second waits until the first is acknowledged.
    """
    if sys.platform == "linux":
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
