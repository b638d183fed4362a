"""The commands of `ble-gateway`."""

import asyncio
import contextlib
import json
import re
import signal
import stat

from api_tests import no_clients
from harness import World, ended, environment, expect, free_ports, run, test, until


@test("key: makes a key once, which only its owner can read")
async def key(world: World):
    state = world.directory / "state"
    first, second = [await run(world.gateway_binary, "key", "--state-dir", str(state)) for _ in range(2)]
    expect(first.succeeded().output, second.succeeded().output, "the key")
    assert re.fullmatch("[A-Za-z0-9+/]{43}=\n", first.output), "the key is not base64 of 32 bytes"
    expect(stat.S_IMODE((state / "encryption.key").stat().st_mode), 0o600, "the mode")


@test("key: processes that start together print the same key")
async def keys_at_once(world: World):
    state = world.directory / "state"
    found = await asyncio.gather(*(run(world.gateway_binary, "key", "--state-dir", str(state)) for _ in range(8)))
    expect(len({each.succeeded().output for each in found}), 1, "the number of keys")


@test("key, check, status, announcement and demo: an answer that cannot be written is an error in one line")
async def full_output(world: World):
    async def refused(*arguments: str):
        with open("/dev/full", "w") as full:
            process = await asyncio.create_subprocess_exec(
                world.gateway_binary, *arguments, stdout=full, stderr=asyncio.subprocess.PIPE, env=environment()
            )
        _, errors = await process.communicate()
        lines = [line for line in errors.decode().splitlines() if "made a new key" not in line]
        expect(process.returncode, 1, f"the exit status of {arguments[0]}")
        expect(len(lines), 1, "the number of lines of errors")
        assert "standard output cannot be written" in lines[0], lines[0]

    async with world.gateway() as gateway:
        for command in ("key", "check", "status", "announcement"):
            await refused(command, "--state-dir", str(gateway.state))
    await refused("demo", "--host", "127.0.0.1", "--port", "0", "--state-dir", str(world.directory / "demo"))


@test("check: prints the settings, from options, environment and file")
async def check(world: World):
    file = world.directory / "gateway.json"
    file.write_text(json.dumps({"name": "hall", "port": 7001, "adapters": ["virtual"]}))
    outcome = await run(
        world.gateway_binary, "check", "--config", str(file), "--connection-limit", "5", BLE_GATEWAY_PORT="7002"
    )
    output = outcome.succeeded().output
    for words in ("hall", "virtual", "port 7002", "at most 5", "required"):
        assert words in output, f"{words!r} is not in {output!r}"


@test("check: names the file, the key, the value and what to do")
async def check_failures(world: World):
    file = world.directory / "gateway.json"
    for text, *words in (
        ('{"prot": 1}', "gateway.json", '"prot"', "use one of"),
        ('{"port": 70000}', '"port"', "70000", "0 to 65535"),
        ('{"adapters": ["usb0"]}', '"adapters"', '"usb0"', "use hci0"),
        ("{", "JSON object"),
    ):
        file.write_text(text)
        outcome = await run(world.gateway_binary, "check", "--config", str(file))
        outcome.failed(*words)
        expect(outcome.status, 1, "the exit status")
    (await run(world.gateway_binary, "check", "--config", str(world.directory / "none"))).failed("does not exist")
    expect((await run(world.gateway_binary, "check", "--prot", "1")).status, 64, "the status of a wrong option")


@test("check: refuses what run refuses, and nothing else")
async def check_like_run(world: World):
    state = world.directory / "state"
    state.mkdir(mode=0o700)
    key = state / "encryption.key"
    key.write_text("no key\n")
    key.chmod(0o600)

    async def refused(*words: str, adapter: bool = True, directory=state, **variables: str):
        options = ["--host", "127.0.0.1", "--port", "0", "--log-level", "critical", "--state-dir", str(directory)]
        if adapter:
            options += ["--adapter", "virtual"]
        for command in ("check", "run"):
            (await run(world.gateway_binary, command, *options, **variables)).failed(*words)

    await refused("encryption.key", "holds no key")
    outcome = await run(world.gateway_binary, "check", "--no-api", "--state-dir", str(state))
    assert "required" not in outcome.succeeded().output, outcome.output
    key.unlink()
    state.chmod(0o777)
    await refused("other users can change files")
    state.chmod(0o700)
    await refused('"usb"', adapter=False, BLE_ADAPTER="usb")
    missing = str(world.directory / "none.pem")
    broker = {"BLE_GATEWAY_MQTT": "mqtts://127.0.0.1"}
    await refused(missing, "cannot be read", **broker, BLE_GATEWAY_MQTT_AUTHORITY=missing)
    pair = {"BLE_GATEWAY_MQTT_CERTIFICATE": missing, "BLE_GATEWAY_MQTT_PRIVATE_KEY": missing}
    await refused(missing, "cannot be read", **broker, **pair)
    await refused("at most 107 bytes", directory=world.directory / ("x" * 108))


@test("run: an adapter that does not exist is an error in one line")
async def no_adapter(world: World):
    (port,) = free_ports(1)
    state = str(world.directory / "state")
    (await run(world.gateway_binary, "run", "--adapter", "usb", "--state-dir", state)).failed("--adapter", "usb")
    (await run(world.gateway_binary, "check", "--port", "x")).failed("--port")


@test("run: a port that is in use is an error in one line")
async def port_in_use(world: World):
    async with world.gateway() as gateway:
        outcome = await run(
            world.gateway_binary, "run", "--adapter", "virtual", "--host", "127.0.0.1", "--port", str(gateway.port),
            "--state-dir", str(world.directory / "other"), "--log-level", "critical",
        )  # fmt: skip
        outcome.failed("in use")


@test("run: a second gateway with the same state directory is refused")
async def same_directory(world: World):
    async with world.gateway() as gateway:
        outcome = await run(
            world.gateway_binary, "run", "--adapter", "virtual", "--host", "127.0.0.1", "--port", "0",
            "--state-dir", str(gateway.state), "--log-level", "critical",
        )  # fmt: skip
        outcome.failed("another gateway runs")
        expect((await gateway.status())["port"], gateway.port, "the port of the first")


@test("run: SIGTERM, SIGINT and SIGHUP end it cleanly, and its socket is gone")
async def signals(world: World):
    async with world.gateway() as gateway:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            await gateway.stop(number)
            (await gateway.command("status")).failed("no gateway runs")
            await gateway.start()


@test("run: lines of the log are JSON objects if requested")
async def json_log(world: World):
    async with world.gateway("--log-format", "json") as gateway:
        await gateway.stop()
        lines = [json.loads(line) for line in gateway.log.read_text().splitlines()]
        assert lines and all({"time", "level", "message"} <= line.keys() for line in lines), lines[:3]
        assert not any(gateway.key in json.dumps(line) for line in lines), "the key is in the log"


@test("status: counts the clients, as text and as JSON")
async def status(world: World):
    async with world.gateway() as gateway:
        await no_clients(gateway)
        async with gateway.connected():
            found = await gateway.status()
            expect([client["information"] for client in found["clients"]], ["test"], "the clients")
            expect([adapter["isOpen"] for adapter in found["adapters"]], [True], "the adapters")
            text = (await gateway.command("status")).succeeded().output
            assert f"port {gateway.port}" in text and "test" in text, text


@test("demo: its sensors and its lamp are found, read, written and notified")
async def demo(world: World):
    import aioesphomeapi
    from api_tests import Advertisements
    from connection_tests import Link

    (port,) = free_ports(1)
    process = await asyncio.create_subprocess_exec(
        world.gateway_binary, "demo", "--host", "127.0.0.1", "--port", str(port), "--state-dir",
        str(world.directory / "state"), stdout=asyncio.subprocess.PIPE, env=environment(),
    )  # fmt: skip
    try:
        introduction = ""
        while "Control-C" not in introduction:
            line = await process.stdout.readline()
            assert line, f"the demo ended after {introduction!r}"
            introduction += line.decode()
        (key,) = re.findall("encryption key ([A-Za-z0-9+/]{43}=)", introduction)
        client = aioesphomeapi.APIClient("127.0.0.1", port, None, noise_psk=key)
        async with asyncio.timeout(10):
            while True:
                try:
                    await client.connect(login=True)
                    break
                except aioesphomeapi.APIConnectionError:
                    await asyncio.sleep(0.05)
        found = Advertisements(client)
        broadcaster, lamp = "C0:DE:00:00:00:02", "C0:DE:00:00:00:03"
        await until(lambda: found.of(broadcaster), "the broadcasting sensor")
        assert bytes.fromhex("d2fc40") in found.of(broadcaster)[0].data, "no service data of BTHome"
        async with Link(client, "C0:DE:00:00:00:01") as link:
            await link.discover()
            values = await link.subscribe("2A6E")
            temperature = int.from_bytes(await values.get(), "little", signed=True) / 100
            assert 15 <= temperature <= 30, temperature
            assert 0 <= (await link.read("2A19"))[0] <= 100
        async with Link(client, lamp) as link:
            await link.discover()
            uuid = "b1e00101-5eed-4000-8000-c0ffee000000"
            states = await link.subscribe(uuid)
            await link.write(uuid, b"\1\x32")
            expect(await states.get(), b"\1\x32", "the state of the lamp")
        await client.disconnect(force=True)
        process.terminate()
        expect(await asyncio.wait_for(process.wait(), 10), 0, "the exit status")
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


@test("run: readings of sensors are lines of JSON, without any client")
async def readings(world: World):
    process = await asyncio.create_subprocess_exec(
        world.gateway_binary, "demo", "--no-api", "--readings", "json", "--state-dir", str(world.directory / "state"),
        stdout=asyncio.subprocess.PIPE, env=environment(),
    )  # fmt: skip
    try:
        lines = []
        async with asyncio.timeout(30):
            while len(lines) < 2:
                lines.append(json.loads(await process.stdout.readline()))
    finally:
        process.send_signal(signal.SIGTERM)
        await process.stdout.read()
        expect(await ended(process), 0, "the exit status")
    first, second = lines
    expect(list(first), ["time", "gateway", "address", "name", "rssi", "format", "readings"], "the fields")
    expect(first["address"], "C0:DE:00:00:00:02", "the address")
    expect(first["format"], "bthome_v2", "the format")
    expect([line["readings"]["packet_id"]["value"] for line in lines], [0, 1], "the packets")
    expect(second["readings"]["temperature"]["unit"], "°C", "the unit")


@test("run: a reader of the readings that goes away ends nothing")
async def readings_without_reader(world: World):
    state = world.directory / "state"
    process = await asyncio.create_subprocess_exec(
        world.gateway_binary, "demo", "--no-api", "--readings", "json", "--state-dir", str(state),
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, env=environment(),
    )  # fmt: skip
    try:
        async with asyncio.timeout(60):
            await process.stdout.readline()
            process._transport.get_pipe_transport(1).close()
            while b"cannot be written" not in await process.stderr.readline():
                pass
        (await run(world.gateway_binary, "status", "--state-dir", str(state))).succeeded()
    finally:
        process.send_signal(signal.SIGTERM)
        await process.stderr.read()
        expect(await ended(process), 0, "the exit status")


@test("run: systemd is told that the gateway serves, lives and stops")
async def notifications(world: World):
    import socket

    path = str(world.directory / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(path)
        manager.setblocking(False)
        received = []

        def receive():
            with contextlib.suppress(BlockingIOError):
                received.append(manager.recv(100).decode())
            return received

        (port,) = free_ports(1)
        process = await asyncio.create_subprocess_exec(
            world.gateway_binary, "run", "--adapter", "virtual", "--host", "127.0.0.1", "--port", str(port),
            "--state-dir", str(world.directory / "state"), "--log-level", "warning",
            env=environment() | {"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "300000"},
        )  # fmt: skip
        try:
            await until(lambda: receive().count("WATCHDOG=1") >= 3, "three signs of life", 30)
            expect(received[0], "READY=1", "the first message")
        finally:
            process.send_signal(signal.SIGTERM)
            expect(await ended(process), 0, "the exit status")
        await until(lambda: "STOPPING=1" in receive(), "the end")
