"""Mistakes of users: one line that describes the mistake, a status that is not 0, and no process left running."""

import asyncio
import contextlib
import socket

import profiles
from harness import World, test

SOME = "F0:01:02:03:04:05"


@test("wrong arguments are reported in one line", presets=())
async def arguments(world: World):
    adapter = "tcp:127.0.0.1:9"
    for arguments, mentioned in (
        (("read", SOME, "12"), "12"),
        (("read", SOME, "GG19"), "GG19"),
        (("read", SOME, "B1E0-5EED"), "B1E0-5EED"),
        (("read", SOME, "180F/"), ""),
        (("read", SOME, "180F/2A19/2A19"), ""),
        (("read", SOME, "#0"), "0"),
        (("read", SOME, "#65536"), "65536"),
        (("read", "F0:01:02:03:04", "2A19"), "F0:01:02:03:04"),
        (("read", "F0:01:02:03:04:XX", "2A19", "--timeout", "0"), ""),
        (("read", "", "2A19"), ""),
        (("read", "service:12345", "2A19"), "12345"),
        (("write", SOME, "2A19", "abc"), "abc"),
        (("write", SOME, "2A19", "zz"), "zz"),
        (("write", SOME, "2A19"), ""),
        (("write", SOME, "2A19", "00", "--text", "x"), ""),
        (("write", SOME, "2A19", "00", "--reliable", "--without-response"), ""),
        (("write", SOME, "2A19", "-", "--io", "keyboard"), "ble pair"),
        (("channel", "open", SOME, "0x80", "--io", "displayYesNo"), "--input"),
        (("subscribe", SOME, "2A19", "--count", "0"), "count"),
        (("subscribe", SOME, "2A19", "--count", "many"), "many"),
        (("scan", "--service", "xyz"), "xyz"),
        (("scan", "--duration", "soon"), "soon"),
        (("scan", "--duration", "-1"), ""),
        (("scan", "--nonsense"), "nonsense"),
        (("explore",), ""),
    ):
        outcome = await world.tool.run(*arguments, adapter=adapter, capture=False, machine_readable=False, deadline=10)
        outcome.failed(mentioned)
        assert outcome.status == 64, f"{arguments}: {outcome.status}"
    for arguments in (("frobnicate",), ("--frobnicate",)):
        outcome = await world.tool.run(*arguments, machine_readable=False, deadline=10)
        outcome.failed("frobnicate")
        assert outcome.status == 64, f"{arguments}: {outcome.status}"


@test("wrong adapters are reported in one line", presets=())
async def adapters(world: World):
    for adapter in (
        "nonsense", "hci", "hciX", "hci0?channel=pink", "tcp:127.0.0.1", "tcp:127.0.0.1:0", "tcp:127.0.0.1:70000",
        "tcp::6402", "unix:", "serial:/dev/ttyS0", "serial:/dev/ttyS0,fast", "usb:0",
    ):  # fmt: skip
        (await world.tool.run("info", adapter=adapter, capture=False, deadline=10)).failed(adapter.split("?")[0])
    for adapter in ("hci99", "unix:/nonexistent/hci", "serial:/nonexistent,115200", "tcp:127.0.0.1:9"):
        (await world.tool.run("info", adapter=adapter, capture=False, deadline=20)).failed()


@test("a controller that sends nothing, or nonsense, is reported in one line", presets=())
async def strange_controllers(world: World):
    async def silent(reader, writer):
        await reader.read()

    async def nonsense(reader, writer):
        writer.write(b"HTTP/1.0 400 Bad Request\r\n\r\n" * 50)
        with contextlib.suppress(OSError):
            await reader.read()

    async def truncated(reader, writer):
        writer.write(b"\x04\x0e\xff\x01")
        writer.close()

    for behaviour in (silent, nonsense, truncated):
        server = await asyncio.start_server(behaviour, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        outcome = await world.tool.run("info", adapter=f"tcp:127.0.0.1:{port}", capture=False, deadline=45)
        assert outcome.status > 0 and outcome.errors.strip(), f"{behaviour.__name__}: {outcome}"
        server.close()


@test("a wrong profile is reported in one line that names the place", presets=())
async def wrong_profiles(world: World):
    def changed(place: list, value):
        profile = profiles.profile()
        target = profile
        for step in place[:-1]:
            target = target[step]
        target[place[-1]] = value
        return profile

    characteristic = ["services", 3, "characteristics", 0]
    for content, *mentioned in (
        ("", ),
        ("{", ),
        ("[]", ),
        ('{"name": "x",}', ),
        ('{"name": 5}', "name"),
        ('{"nmae": "x"}', "nmae"),
        (changed(["services", 1, "uuid"], "xyz"), "services[1].uuid", "xyz"),
        (changed([*characteristic, "uuid"], 5), "services[3].characteristics[0].uuid"),
        (changed([*characteristic, "value"], "0g"), "services[3].characteristics[0].value"),
        (changed([*characteristic, "value"], "00" * 513), "services[3].characteristics[0].value"),
        (changed([*characteristic, "properties"], ["reed"]), "services[3].characteristics[0].properties", "reed"),
        (changed([*characteristic, "permissions"], ["all"]), "services[3].characteristics[0].permissions", "all"),
        (changed([*characteristic, "colour"], "red"), "colour"),
        (changed([*characteristic, "descriptors", 0, "handle"], 70000), "[3].characteristics[0].descriptors[0]"),
        (changed(["services", 8, "includes"], [42]), "services[8].includes"),
        (changed(["advertise", "services"], ["1"]), "advertise.services[0]"),
        (changed(["advertise", "manufacturerData"], {"4C": "00"}), "advertise.manufacturerData"),
        (changed(["address"], "12:34"), "address"),
    ):  # fmt: skip
        path = world.file("wrong.json", content)
        outcome = await world.tool.run("serve", path, adapter="tcp:127.0.0.1:9", capture=False, deadline=10)
        outcome.failed("wrong.json", *mentioned)
    (await world.tool.run("serve", "/nonexistent.json", adapter="tcp:127.0.0.1:9", capture=False)).failed(
        "/nonexistent.json"
    )


@test("a profile whose handles collide is reported in one line", presets=("DEFAULT",))
async def colliding_profile(world: World):
    profile = profiles.profile()
    profile["services"][1]["handle"] = profile["services"][0]["handle"]
    del profile["services"][1]["characteristics"][0]["handle"]
    (await world.ble("serve", world.file("wrong.json", profile))).failed()


@test("a capture that cannot be written is reported in one line", presets=("DEFAULT",))
async def capture(world: World):
    outcome = await world.tool.run(
        "info", "--capture", "/nonexistent/capture", adapter=world.adapter, capture=False, deadline=10
    )
    outcome.failed("/nonexistent/capture")


@test("an adapter that another program uses is refused", presets=())
async def port_without_answer(world: World):
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]  # bound, but without a listener
        (await world.tool.run("scan", adapter=f"tcp:127.0.0.1:{port}", capture=False, deadline=15)).failed()


@test("adapters and doctor answer with any adapters, or none", presets=())
async def doctor(world: World):
    outcome = await world.tool.run("adapters", capture=False, deadline=10)
    assert outcome.status == 0, outcome.errors
    outcome = await world.tool.run("doctor", capture=False, deadline=10)
    assert outcome.status in (0, 1) and (outcome.status == 0 or outcome.errors.strip()), outcome
    for arguments in (("--help",), ("--version",), ("scan", "--help")):
        outcome = await world.tool.run(*arguments, capture=False, machine_readable=False, deadline=10)
        assert outcome.status == 0 and outcome.output.strip(), f"{arguments}: {outcome}"


@test("doctor reports a controller that cannot be opened", presets=())
async def doctor_without_controller(world: World):
    for adapter in ("unix:/nonexistent/controller", "serial:/dev/null,115200", "tcp:127.0.0.1:9"):
        outcome = await world.tool.run("doctor", adapter=adapter, capture=False, machine_readable=False, deadline=15)
        assert outcome.status == 1 and "cannot be opened" in outcome.output, f"{adapter}: {outcome}"


@test("Ctrl-C ends a command that waits for the end of its input", presets=())
async def interrupted_input(world: World):
    for arguments in (
        ("serve", "-"),
        ("bonds", "import", "-"),
        ("scan", "--decode", "--bind-keys", "-"),
        ("demo", "texttransfer", "--text", "-"),
        ("pair", SOME, "--oob", "-"),
    ):
        async with world.tool.start(*arguments, capture=False, machine_readable=False) as process:
            # More than a pipe holds, so the command reads when all is written.
            process.process.stdin.write(b" " * (1 << 18))
            await process.process.stdin.drain()
            # The command would be ended after 10 s in any case.
            outcome = await process.interrupt(deadline=5)
            assert outcome.status == 130, f"{arguments}: status {outcome.status}: {outcome.errors}"


@test("a wrong command line names the help of its command, with status 64", presets=())
async def help_of_the_command(world: World):
    for arguments, mentioned in (
        (("bonds", "remove"), "`ble bonds remove --help`"),
        (("link", SOME, "--interval", "5ms"), "--interval: 0.005 s is out of range"),
        (("decode", "/nonexistent", "--summary", "--filter", "layer=att"), "--filter"),
    ):
        outcome = await world.tool.run(*arguments, capture=False, machine_readable=False, deadline=10)
        outcome.failed(mentioned)
        assert outcome.status == 64, f"{arguments}: {outcome.status}"
