"""Measures the CPU time, the latency and the memory of `ble-gateway`.

    measure [advertisements] [reads] [latency] [memory] [readings] [advertisers]        all, or only some

- advertisements: CPU per forwarded advertisement from HCI to TCP with one encrypted client, at 1,000 a second and at a
  flood: as many as the gateway takes. Advertisements of devices that are no sensors, and of sensors.
- reads: CPU per proxied read.
- latency: reads through the gateway, and direct ones by `ble throughput`, in turn, on the same `ble controller`.
- memory: resident memory, idle and with 20 links.
- readings: CPU per reading of each format, from HCI to a mosquitto that confirms it, at 1,000 a second, and how many of
  20,000 a second are confirmed.
- advertisers: memory and CPU with 10,000 advertisements a minute, half of them of sensors, for MINUTES minutes (10): each
  of another advertiser, or of ADVERTISERS ones in turn.

CPU is the time of all threads of the gateway, in user and kernel mode, from /proc. Each figure is the median of ROUNDS
rounds (5) of SECONDS seconds (4), with the least and the greatest one.
"""

import base64
import contextlib
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import sensor_advertisements
from raw_client import RawClient

ROOT = Path(__file__).resolve().parent.parent.parent
GATEWAY = Path(os.environ.get("BLE_GATEWAY", ROOT / "Gateway/.build/release/ble-gateway"))
BLE = Path(os.environ.get("BLE", ROOT / ".build/release/ble"))
NULL_CONTROLLER = Path(os.environ["NULL_CONTROLLER"])
SECONDS = float(os.environ.get("SECONDS_EACH", "4"))
ROUNDS = int(os.environ.get("ROUNDS", "5"))
FLOOD = 1_000_000
# Readings in a second that are more than the gateway or the broker can take.
MANY = 20_000
# The device at the other end of the null controller's link, and its value to read.
NULL_DEVICE, NULL_VALUE = 0x4E55_4C00_0002, 3
LINKS = 20


class Process:
    """A program whose resources are measured."""

    def __init__(self, *arguments, **options):
        self.process = subprocess.Popen([str(argument) for argument in arguments], **options)
        self.directory = Path(f"/proc/{self.process.pid}")

    @property
    def cpu(self) -> float:
        """Microseconds of CPU of all threads."""
        times = [(task / "schedstat").read_text().split()[0] for task in (self.directory / "task").iterdir()]
        return sum(map(int, times)) / 1000

    @property
    def switches(self) -> int:
        """The number of times that a thread was switched to."""
        return sum(int((task / "schedstat").read_text().split()[2]) for task in (self.directory / "task").iterdir())

    def memory(self, name: str) -> float:
        """MiB of a kind of memory."""
        for line in (self.directory / "smaps_rollup").read_text().splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) / 1024
        raise KeyError(name)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_until(condition, what: str, seconds: float = 20):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with contextlib.suppress(OSError):
            if result := condition():
                return result
        time.sleep(0.01)
    raise SystemExit(f"not within {seconds} s: {what}")


class Gateway(Process):
    """`ble-gateway run`, and how its clients reach it."""

    def __init__(self, adapter: str, state: Path, *options: str, readings: str = "none", serves_api: bool = True):
        self.port = free_port()
        state.mkdir(mode=0o700, exist_ok=True)
        key = subprocess.run([GATEWAY, "key", "--state-dir", state], check=True, stdout=subprocess.PIPE, text=True).stdout
        self.key = base64.b64decode(key.strip())
        super().__init__(
            *(GATEWAY, "run", "--adapter", adapter, "--host", "127.0.0.1", "--port", self.port, "--state-dir", state),
            *("--name", "measured", "--readings", readings, "--log-level", "warning", *options),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            env={name: value for name, value in os.environ.items() if not name.startswith(("BLE_", "STATE_DIRECTORY"))},
        )
        if serves_api:
            wait_until(lambda: socket.create_connection(("127.0.0.1", self.port)).close() or True, "the gateway listens")

    def client(self) -> RawClient:
        return RawClient(self.port, self.key)


@contextlib.contextmanager
def null_controller(mode: str, path: Path, *more):
    with Process(NULL_CONTROLLER, mode, f"unix:{path}", *more, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
        program.process.stdout.readline()
        yield


@contextlib.contextmanager
def air(path: Path):
    """Our controllers in software, without the time that packets take on a radio."""
    arguments = [BLE, "controller", "--listen", f"unix:{path}", "--no-pacing", "--acl-packets", "32"]
    with Process(*arguments, stdout=subprocess.DEVNULL) as program:
        wait_until(path.exists, "the controllers listen")
        yield program


def summary(values: list[float]) -> str:
    return f"{statistics.median(values):8.2f}  ({min(values):.2f} to {max(values):.2f})"


# Advertisements


def measure_advertisements(folder: Path):
    for what, more, readings in [
        ("no sensors", [], "none"), ("no sensors, decoders on", [], "json"), ("BTHome sensors, decoders on", ["bthome"], "json"),
    ]:  # fmt: skip
        for rate in (1000, FLOOD):
            path = folder / f"reports-{rate}-{len(more)}-{readings}"
            with null_controller("reports", path, rate, *more):
                with Gateway(f"unix:{path}", folder / "state", readings=readings) as gateway:
                    costs, rates, switches = count_advertisements(gateway)
            name = "1,000 a second" if rate == 1000 else f"flood, {statistics.median(rates):,.0f} a second"
            print(
                f"CPU per advertisement, {what}, {name}: {summary(costs)} us, "
                f"{statistics.median(switches):.2f} switches each",
                flush=True,
            )


def count_advertisements(gateway: Gateway):
    client = gateway.client()
    client.subscribe()
    count = 0
    failure = None

    def receive():
        nonlocal count, failure
        try:
            while True:
                count += client.advertisements()
        except (OSError, ValueError) as error:
            failure = error

    thread = threading.Thread(target=receive, daemon=True)
    thread.start()
    time.sleep(2)
    costs, rates, switches = [], [], []
    for _ in range(ROUNDS):
        began, cpu, switched, received = time.monotonic(), gateway.cpu, gateway.switches, count
        time.sleep(SECONDS)
        number = count - received
        if failure or number == 0:
            raise SystemExit(f"no advertisements arrive: {failure}")
        costs.append((gateway.cpu - cpu) / number)
        switches.append((gateway.switches - switched) / number)
        rates.append(number / (time.monotonic() - began))
    client.socket.shutdown(socket.SHUT_RDWR)
    thread.join()
    return costs, rates, switches


# Reads


def measure_reads(folder: Path):
    path = folder / "server"
    with null_controller("server", path), Gateway(f"unix:{path}", folder / "state") as gateway:
        client = gateway.client()
        client.connect(NULL_DEVICE, is_random=False)
        client.handles(NULL_DEVICE)
        costs, switches = [], []
        for _ in range(ROUNDS + 1):
            cpu, switched, count = gateway.cpu, gateway.switches, 0
            end = time.monotonic() + SECONDS
            while time.monotonic() < end:
                client.read(NULL_DEVICE, NULL_VALUE)
                count += 1
            costs.append((gateway.cpu - cpu) / count)
            switches.append((gateway.switches - switched) / count)
        client.close()
    # The first round warms up.
    print(f"CPU per proxied read: {summary(costs[1:])} us, {statistics.median(switches[1:]):.2f} switches each", flush=True)


# Latency


def measure_latency(folder: Path):
    path = folder / "air"
    with air(path):
        serve = [BLE, "throughput", "serve", "--adapter", f"unix:{path}", "--state-dir", folder / "serve", "--json"]
        with Process(*serve, stdout=subprocess.PIPE, text=True) as device:
            text = json.loads(device.process.stdout.readline())["address"]
            address = int(text.split()[0].replace(":", ""), 16)
            with Gateway(f"unix:{path}", folder / "state") as gateway:
                medians = [compare_latency(gateway, address, text, path, folder) for _ in range(ROUNDS)]
    direct, proxied = zip(*medians)
    print(f"latency of a direct read, median: {summary(list(direct))} us")
    print(f"latency of a read through the gateway, median: {summary(list(proxied))} us")
    print(f"added latency: {summary([second - first for first, second in medians])} us", flush=True)


def compare_latency(gateway: Gateway, address: int, text: str, path: Path, folder: Path) -> tuple[float, float]:
    """The medians of direct reads, and of those through the gateway, in microseconds."""
    run = subprocess.run(
        [
            *(BLE, "throughput", "run", text, "--adapter", f"unix:{path}", "--state-dir", folder / "run", "--json"),
            *("--operation", "read", "--duration", str(SECONDS)),
        ],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    direct = json.loads(run.stdout)["p50"]
    client = gateway.client()
    client.connect(address, is_random=False)
    handle = readable_handle(client, address)
    durations = []
    end = time.monotonic() + SECONDS
    while (began := time.monotonic()) < end:
        client.read(address, handle)
        durations.append(1e6 * (time.monotonic() - began))
    client.close()
    return direct, statistics.median(durations)


def readable_handle(client: RawClient, address: int) -> int:
    """A value of the measured service that can only be read."""
    handles = [handle for _, (handle, properties) in client.handles(address).items() if properties == 2]
    return handles[-1]


# Memory


def measure_memory(folder: Path):
    profile = folder / "device.json"
    profile.write_text(
        json.dumps(
            {
                "name": "Device",
                "advertise": {"services": ["180F"]},
                "services": [
                    {
                        "uuid": "180F",
                        "primary": True,
                        "characteristics": [{"uuid": "2A19", "properties": ["read", "notify"], "value": "64"}],
                    }
                ],
            }
        )
    )
    path = folder / "many"
    with contextlib.ExitStack() as stack:
        stack.enter_context(air(path))
        gateway = stack.enter_context(Gateway(f"unix:{path}", folder / "state", readings="json"))
        time.sleep(3)
        print_memory("idle, decoders on", gateway)
        client = gateway.client()
        addresses = []
        for index in range(LINKS):
            device = stack.enter_context(
                Process(
                    *(BLE, "serve", profile, "--adapter", f"unix:{path}", "--state-dir", folder / f"device-{index}"),
                    "--json",
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
            while "address" not in (line := json.loads(device.process.stdout.readline())):
                pass
            addresses.append(line["address"])
        client.subscribe()
        for text in addresses:
            address = int(text.split()[0].replace(":", ""), 16)
            client.connect(address, is_random="random" in text)
            handle, _ = client.handles(address)[0x2A19]
            client.read(address, handle)
        time.sleep(3)
        print_memory(f"{LINKS} links, decoders on", gateway)
        client.close()


def print_memory(what: str, gateway: Gateway):
    resident, anonymous = gateway.memory("Rss"), gateway.memory("Anonymous")
    threads = len(list((gateway.directory / "task").iterdir()))
    print(f"memory, {what}: {resident:.1f} MiB resident, {anonymous:.1f} MiB of it anonymous, {threads} threads", flush=True)


# Readings


@contextlib.contextmanager
def broker(folder: Path):
    """A mosquitto with nothing but a port, and its default limits."""
    port = free_port()
    file = folder / "mosquitto.conf"
    file.write_text(f"listener {port} 127.0.0.1\nallow_anonymous true\n" + ("user root\n" if os.geteuid() == 0 else ""))
    program = shutil.which("mosquitto", path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None:
        raise SystemExit("measure: mosquitto is missing: apt-get install mosquitto")
    with Process(program, "-c", file, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL):
        wait_until(lambda: socket.create_connection(("127.0.0.1", port)).close() or True, "the broker listens")
        yield f"mqtt://127.0.0.1:{port}"


def status(state: Path) -> dict:
    command = [GATEWAY, "status", "--json", "--state-dir", state]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def measure_readings(folder: Path):
    with broker(folder) as address:
        for name in sensor_advertisements.FORMATS:
            file = folder / "advertisements"
            file.write_text("\n".join(sensor_advertisements.lines(name, 400_000)) + "\n")
            costs, _ = count_readings(folder, address, name, file, 1000)
            many, rates = count_readings(folder, address, name, file, MANY)
            print(
                f"CPU per reading, {name}, 1,000 a second: {summary(costs)} us; of {MANY:,} a second: "
                f"{statistics.median(rates):,.0f} confirmed, {summary(many)} us",
                flush=True,
            )


def count_readings(folder: Path, address: str, name: str, file: Path, rate: int, rounds: int = ROUNDS):
    """The cost of each confirmed reading in microseconds, and how many there are in a second, in each round."""
    path, state = folder / "reports", folder / "state"
    options = ["--no-api", "--mqtt", address]
    for device in range(sensor_advertisements.DEVICES) if "encrypted" in name else ():
        options += ["--bind-key", f"{sensor_advertisements.mac(device).hex(':')}={sensor_advertisements.KEY.hex()}"]
    with null_controller("reports", path, rate, file):
        with Gateway(f"unix:{path}", state, *options, serves_api=False) as gateway:
            return count_deliveries(gateway, state, rounds)


def count_deliveries(gateway: Gateway, state: Path, rounds: int):
    costs, rates = [], []
    wait_until((state / "status.sock").exists, "the gateway runs")
    wait_until(lambda: status(state)["broker"]["deliveredCount"], "the first reading")
    for _ in range(rounds):
        began, cpu, delivered = time.monotonic(), gateway.cpu, status(state)["broker"]["deliveredCount"]
        time.sleep(SECONDS)
        number = status(state)["broker"]["deliveredCount"] - delivered
        if number == 0:
            raise SystemExit("measure: no readings arrive")
        costs.append((gateway.cpu - cpu) / number)
        rates.append(number / (time.monotonic() - began))
    return costs, rates


# Advertisers


def measure_advertisers(folder: Path):
    minutes = int(os.environ.get("MINUTES", "10"))
    number = 10_000 * (minutes + 1)
    advertisers = int(os.environ.get("ADVERTISERS", number))
    file, path, state = folder / "advertisements", folder / "reports", folder / "state"
    with file.open("w") as output:
        for index in range(number):
            address = (0xC0_00_00_00_00_00 | index % advertisers).to_bytes(6, "big")
            structure = sensor_advertisements.bthome(address, index) if index % 2 else bytes([5, 9]) + b"Name"
            output.write(f"{address[::-1].hex()} {(bytes([2, 1, 6]) + structure).hex()}\n")
    with broker(folder) as address, null_controller("reports", path, 167, file):
        with Gateway(f"unix:{path}", state, "--mqtt", address, "--http", f"127.0.0.1:{free_port()}") as gateway:
            client = gateway.client()
            client.subscribe()
            threading.Thread(target=receive_all, args=(client,), daemon=True).start()
            time.sleep(10)
            for minute in range(minutes + 1):
                cpu = gateway.cpu
                if minute:
                    time.sleep(60)
                    print(f"CPU in minute {minute}: {(gateway.cpu - cpu) / 600_000:.2f} %", flush=True)
                seen = min(minute * 10_000 + 1_670, advertisers)
                print_memory(f"after {minute} minutes and {seen:,} advertisers", gateway)
            print(f"messages: {status(state)['broker']}", flush=True)


def receive_all(client: RawClient):
    with contextlib.suppress(OSError, ValueError):
        while True:
            client.advertisements()


def main(names: list[str]):
    parts = {
        "advertisements": measure_advertisements,
        "reads": measure_reads,
        "latency": measure_latency,
        "memory": measure_memory,
        "readings": measure_readings,
        "advertisers": measure_advertisers,
    }
    for name in names or parts:
        if name not in parts:
            raise SystemExit(f"measure: no part {name}; there are {', '.join(parts)}")
        with tempfile.TemporaryDirectory() as folder:
            parts[name](Path(folder))


if __name__ == "__main__":
    main(sys.argv[1:])
