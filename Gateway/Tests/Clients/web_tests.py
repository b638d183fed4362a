"""The HTTP port of the gateway: metrics, health and the status page, also in a real browser."""

import asyncio
import contextlib
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
from pathlib import Path

from aioesphomeapi import APIClient, BluetoothProxyFeature
from harness import World, ended, environment, expect, free_ports, run, test, until

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or "/usr/bin/chromium"
PAGES = ["/", "/style.css", "/script.js", "/icon.svg", "/api/status.json", "/api/recent.json", "/metrics", "/health"]
HYGROMETER = "C0:DE:00:00:00:02"


class Response:
    def __init__(self, status: int, headers: dict, body: str):
        self.status, self.headers, self.body = status, headers, body


class Demo:
    """`ble-gateway demo` with an HTTP port on the loopback interface."""

    def __init__(self, world: World, *options: str, **variables: str):
        self.world = world
        self.options = options
        self.variables = variables
        self.http_port, self.api_port = free_ports(2)

    async def __aenter__(self):
        self.log = open(self.world.logs / f"{self.world.label}-web.log", "ab")
        self.process = await asyncio.create_subprocess_exec(
            self.world.gateway_binary, "demo", "--http", str(self.http_port), "--host", "127.0.0.1", "--port",
            str(self.api_port), "--state-dir", str(self.world.directory / "state"), "--log-level", "info", *self.options,
            stdin=asyncio.subprocess.DEVNULL, stdout=self.log, stderr=self.log, env=environment() | self.variables,
        )  # fmt: skip
        try:
            await until(self.listens, "the HTTP port", 30)
            # The clients' port is open a little later.
            async with asyncio.timeout(30):
                while (await self.get("/health")).status != 200:
                    await asyncio.sleep(0.05)
        except BaseException:
            with contextlib.suppress(ProcessLookupError):
                self.process.kill()
            await self.process.wait()
            raise
        return self

    async def __aexit__(self, *_):
        if self.process.returncode is None:
            self.process.send_signal(signal.SIGTERM)
        status = await ended(self.process)
        self.log.close()
        expect(status, 0, "the exit status")

    def listens(self) -> bool:
        assert self.process.returncode is None, f"the gateway ended with {self.process.returncode}"
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.http_port)) == 0

    async def get(self, path: str, method: str = "GET", **headers: str) -> Response:
        return await asyncio.to_thread(self.request, path, method, headers)

    def request(self, path: str, method: str, headers: dict) -> Response:
        connection = http.client.HTTPConnection("127.0.0.1", self.http_port, timeout=10)
        try:
            connection.request(method, path, headers=headers)
            response = connection.getresponse()
            return Response(response.status, dict(response.getheaders()), response.read().decode())
        finally:
            connection.close()

    async def status(self) -> dict:
        return json.loads((await self.get("/api/status.json")).body)

    async def reading(self) -> dict:
        """The hygrometer of the demo, once it has readings."""
        while True:
            for device in (await self.status())["devices"]:
                if device["address"] == HYGROMETER and device["reports"]:
                    return device
            await asyncio.sleep(0.2)


def values(metrics: str) -> dict[str, float]:
    """The samples of metrics in the text format."""
    lines = [line for line in metrics.splitlines() if line and not line.startswith("#")]
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}


@test("web: all pages are served, with fields that keep other sites out")
async def pages(world: World):
    async with Demo(world) as demo:
        for path in PAGES:
            response = await demo.get(path)
            expect(response.status, 200, path)
            expect(response.headers["X-Content-Type-Options"], "nosniff", path)
            expect(response.headers["Referrer-Policy"], "no-referrer", path)
            policy = response.headers["Content-Security-Policy"]
            assert "default-src 'none'" in policy and "unsafe" not in policy, policy
            head = await demo.get(path, "HEAD")
            expect((head.status, head.body), (200, ""), f"HEAD {path}")
        expect((await demo.get("/", Host="attacker.example")).status, 421, "the page under another name")
        expect((await demo.get("/api/status.json", Host="attacker.example")).status, 421, "the data under another name")
        expect((await demo.get("/metrics", Host="attacker.example")).status, 200, "metrics under another name")
        expect((await demo.get("/../../etc/passwd")).status, 404, "a path outside")
        expect((await demo.get("/", "POST")).status, 405, "POST")


@test("web: a further name of the machine can be configured")
async def names(world: World):
    async with Demo(world, BLE_GATEWAY_HTTP_NAMES="gw.example.org,other.example.org") as demo:
        expect((await demo.get("/", Host="gw.example.org:8053")).status, 200, "the configured name")
        expect((await demo.get("/", Host="attacker.example")).status, 421, "another name")


@test("web: promtool finds nothing to complain about in the metrics, with a client and a broker that is away")
async def metrics(world: World):
    promtool = shutil.which("promtool")
    assert promtool, "promtool is missing: run `.ci/setup prometheus`"
    (broker_port,) = free_ports(1)
    async with Demo(world, "--plaintext", "--mqtt", f"mqtt://127.0.0.1:{broker_port}") as demo:
        await asyncio.wait_for(demo.reading(), 30)
        client = APIClient("127.0.0.1", demo.api_port, None, client_info="test")
        await client.connect(login=True)
        client.subscribe_bluetooth_le_raw_advertisements(lambda _: None)
        try:
            async with asyncio.timeout(30):
                while values((await demo.get("/metrics")).body)["ble_gateway_advertisements_forwarded_total"] < 10:
                    await asyncio.sleep(0.3)
            response = await demo.get("/metrics")
        finally:
            await client.disconnect()
        checked = await asyncio.to_thread(
            subprocess.run, [promtool, "check", "metrics"], input=response.body, capture_output=True, text=True
        )
        expect((checked.returncode, checked.stdout + checked.stderr), (0, ""), "promtool")
        found = values(response.body)
        expect(found["ble_gateway_clients"], 1, "clients")
        expect(found['ble_gateway_scan_mode{mode="active"}'], 1, "the mode")
        expect(found["ble_gateway_mqtt_connected"], 0, "the broker")
        for name in (
            "ble_gateway_advertisements_received_total", "ble_gateway_mqtt_waiting_messages",
            'ble_gateway_sensor_reports_total{format="bthome_v2"}', "process_cpu_seconds_total",
            "process_resident_memory_bytes", "process_open_fds", "process_start_time_seconds",
            # A metric of the host, by way of swift-metrics.
            "swift_ble_hci_packets_received_total",
        ):  # fmt: skip
            assert found[name] > 0, f"{name} is {found[name]}"
        # The client that has gone is counted by its reason, and what it was sent stays counted.
        forwarded = found["ble_gateway_advertisements_forwarded_total"]
        closed = 'ble_gateway_clients_closed_total{reason="client_disconnected"}'
        async with asyncio.timeout(30):
            while (found := values((await demo.get("/metrics")).body)).get(closed, 0) < 1:
                await asyncio.sleep(0.3)
        assert found["ble_gateway_advertisements_forwarded_total"] >= forwarded, found
        events = [(event["kind"], event["subject"]) for event in (await demo.status())["events"]]
        for expected in (("client_connected", "127.0.0.1"), ("client_disconnected", "127.0.0.1"),
                         ("broker_lost", f"mqtt://127.0.0.1:{broker_port}")):  # fmt: skip
            assert expected in events, events


@test("web: the data has devices with readings and signal, and events")
async def data(world: World):
    async with Demo(world, "--no-api") as demo:
        device = await asyncio.wait_for(demo.reading(), 30)
        expect(device["name"], "Demo Hygro", "the name")
        report = device["reports"][0]
        expect(report["format"], "bthome_v2", "the format")
        expect([reading["name"] for reading in report["readings"]], ["packet_id", "temperature", "humidity"], "names")
        expect(len(device["signal"]), 120, "the number of slots")
        # The slot of now is empty until its first advertisement.
        assert any(slot is not None for slot in device["signal"]) and -127 <= device["rssi"] <= 20, device
        async with asyncio.timeout(30):
            status = await demo.status()
            while not {device["name"] for device in status["devices"]} >= {"Demo Hygro", "Demo Lamp"}:
                await asyncio.sleep(0.1)
                status = await demo.status()
        expect(status["events"][0]["kind"], "adapter_opened", "the first event")
        recent = json.loads((await demo.get("/api/recent.json")).body)
        expect(len(recent["devices"][0]["signal"]), 12, "the number of recent slots")


@test("web: a device's connection is an event, and is counted")
async def connection(world: World):
    async with Demo(world, "--plaintext") as demo:
        client = APIClient("127.0.0.1", demo.api_port, None, client_info="test")
        await client.connect(login=True)
        try:
            lamp = 0xC0DE00000003
            await client.bluetooth_device_connect(
                lamp,
                lambda *_: None,
                timeout=20,
                feature_flags=BluetoothProxyFeature.REMOTE_CACHING,
                address_type=1,
            )
            status = await demo.status()
            expect([each["address"] for each in status["connections"]], ["C0:DE:00:00:00:03"], "the connections")
            await client.bluetooth_device_disconnect(lamp)
        finally:
            await client.disconnect()
        async with asyncio.timeout(20):
            while "device_disconnected" not in [event["kind"] for event in (await demo.status())["events"]]:
                await asyncio.sleep(0.3)
        found = values((await demo.get("/metrics")).body)
        expect(found['ble_gateway_connection_attempts_total{outcome="connected"}'], 1, "the connections")


@test("web: health is 503 with the reason while an adapter cannot be opened")
async def health(world: World):
    (port, closed) = free_ports(2)
    process = await asyncio.create_subprocess_exec(
        world.gateway_binary, "run", "--no-api", "--adapter", f"tcp:127.0.0.1:{closed}", "--http", str(port),
        "--state-dir", str(world.directory / "state"), "--log-level", "error",
        stdin=asyncio.subprocess.DEVNULL, env=environment(),
    )  # fmt: skip
    try:

        def failing():
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
            with contextlib.suppress(ConnectionRefusedError):
                connection.request("GET", "/health")
                response = connection.getresponse()
                answer = (response.status, json.loads(response.read()))
                return answer if "refused" in str(answer) else None

        status, answer = await until(failing, "the reason", 30)
        expect((status, answer["status"]), (503, "failing"), "the health")
        assert answer["reasons"][0].startswith(f"adapter tcp:127.0.0.1:{closed}: "), answer
    finally:
        process.send_signal(signal.SIGTERM)
        expect(await ended(process), 0, "the exit status")


@test("web: hostile connections do not keep others out, and do not stop the gateway")
async def hostile(world: World):
    async with Demo(world, "--no-api") as demo:
        address = ("127.0.0.1", demo.http_port)

        async def descriptors() -> float:
            return values((await demo.get("/metrics")).body)["process_open_fds"]

        before = await descriptors()
        with contextlib.ExitStack() as stack:
            for number in range(200):
                connection = stack.enter_context(socket.create_connection(address))
                with contextlib.suppress(OSError):
                    connection.sendall([b"GET / HT", os.urandom(3000), b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n" * 50,
                                        b"X" * 20000, b""][number % 5])  # fmt: skip
            expect((await demo.get("/health")).status, 200, "the health beside 200 connections")
            # Those above the limit are closed a little after they were accepted.
            async with asyncio.timeout(20):
                while await descriptors() > before + 64:
                    await asyncio.sleep(0.3)
        expect((await demo.get("/")).status, 200, "the page afterwards")


@test("web: requests that are sent together are answered in order, each before the next")
async def pipelining(world: World):
    async with Demo(world, "--no-api") as demo:
        reader, writer = await asyncio.open_connection("127.0.0.1", demo.http_port)
        paths = ["/health", "/missing", "/style.css", "/metrics"] * 100
        writer.write("".join(f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n" for path in paths).encode())
        writer.write(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        async with asyncio.timeout(30):
            output = await reader.read()
        writer.close()
        statuses = [int(part[:3]) for part in output.decode().split("HTTP/1.1 ")[1:]]
        expect(statuses, [200, 404, 200, 200] * 100 + [200], "the statuses")


@test("web: a port that is in use is named in one line")
async def port_in_use(world: World):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        outcome = await run(world.gateway_binary, "demo", "--no-api", "--http", str(port), "--state-dir",
                            str(world.directory / "state"))  # fmt: skip
        outcome.failed(f"127.0.0.1:{port}", "--http")


async def browse(port: int, world: World, *options: str, host: str = "127.0.0.1", size: str = "390,844") -> str:
    """Loads the page in headless Chromium, and returns what it printed."""
    assert Path(CHROMIUM).exists(), "chromium is missing: run `.ci/setup chromium`"
    process = await asyncio.create_subprocess_exec(
        CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
        "--disable-background-networking", "--disable-component-update", "--no-first-run",
        f"--user-data-dir={world.directory}/chromium", f"--window-size={size}", "--virtual-time-budget=8000", *options,
        f"http://{host}:{port}/",
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    async with asyncio.timeout(60):
        output, errors = await process.communicate()
    expect(process.returncode, 0, f"chromium: {errors.decode()[-500:]}")
    return output.decode()


@test("browser: the page shows a device with its readings, on a phone", deadline=180, program="chromium")
async def phone(world: World):
    async with Demo(world) as demo:
        await asyncio.wait_for(demo.reading(), 30)
        # The page keeps the signal over time; two slots are enough to draw a line.
        async with asyncio.timeout(60):
            while sum(value is not None for value in (await demo.reading())["signal"]) < 3:
                await asyncio.sleep(0.5)
        page = await browse(demo.http_port, world, "--dump-dom")
        devices = page.split('<details class="device">')[1:]
        hygrometer = next((each for each in devices if HYGROMETER in each), None)
        assert hygrometer, page[:3000]
        for text in ("Demo Hygro", "temperature <b>", " °C", "humidity <b>", " %", " dBm", 'class="trace" d="M'):
            assert text in hygrometer, f"{text!r} is not in {hygrometer}"
        assert '<p id="health" class="pill good" role="status">healthy</p>' in page, page[:1500]
        assert "adapter opened" in page, "no event"
        screenshot = world.logs / f"{world.label}-phone.png"
        await browse(demo.http_port, world, f"--screenshot={screenshot}")
        assert screenshot.stat().st_size > 10_000, "the screenshot is empty"


@test("browser: a hostile name of a device is shown as text", deadline=180, program="chromium")
async def hostile_name(world: World):
    (port,) = free_ports(1)
    name = "<img src=x onerror=1>\u202e"
    async with world.gateway("--http", str(port)), world.peripheral(name=name) as sensor:
        await sensor.advertise()

        def is_shown():
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
            connection.request("GET", "/api/status.json")
            return "onerror" in connection.getresponse().read().decode()

        await until(is_shown, "the name", 30)
        page = await browse(port, world, "--dump-dom")
        assert '<bdi class="name">&lt;img src=x onerror=1&gt;\\u{202E}</bdi>' in page, page[:6000]
        assert "<img" not in page, "the name became an element"


@test("browser: a name that leads to the gateway is refused, as in DNS rebinding", deadline=180, program="chromium")
async def rebinding(world: World):
    async with Demo(world) as demo:
        page = await browse(demo.http_port, world, "--dump-dom", "--host-resolver-rules=MAP gw.example.org 127.0.0.1",
                            host="gw.example.org")  # fmt: skip
        assert "This is no known name of the gateway" in page, page[:2000]
