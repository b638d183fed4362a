"""Adapters that are plugged in and out, with other numbers than before: `ble` follows them by their addresses."""

import json
import os
import shlex
import shutil
from pathlib import Path

from adapters import AIR, FIRST, SECOND, Adapters, until
from kernel_tests import ADDRESS, HERE, OUT, ROOT, Skipped, World, expect, test


def listed(world: World) -> dict:
    """The addresses of the kernel's adapters."""
    output = world.ble("adapters").succeeded().output
    return {row["adapter"]: row["address"] for row in map(json.loads, output.splitlines())}


def advertiser(world: World):
    """A device that advertises all the time, on the air of the adapters."""
    shutil.copy(HERE / "profile.json", world.machine.out / "profile.json")
    return world.start("serve", f"{OUT}/profile.json", adapter=AIR)


@test("an adapter is named by its address, whatever its number is, and its absence is reported")
def named_by_address(world: World):
    with Adapters(world) as adapters:
        first, second = adapters.plug(FIRST), adapters.plug(SECOND)
        for _ in range(3):
            expect((listed(world)[first], listed(world)[second]), (FIRST, SECOND), "the addresses")
            for address in (FIRST, SECOND):
                found = world.ble("info", adapter=f"addr:{address.lower()}").succeeded().object
                expect(found["publicAddress"], address, "the controller")
            before = first
            first, second = adapters.exchange()
            assert first != before, "the number has not changed"
        world.hciconfig(first, "up")
        found = world.ble("info", adapter=f"addr:{FIRST}?channel=raw").succeeded().object
        expect(found["publicAddress"], FIRST, "the controller on the raw channel")
        world.ble("info", adapter=f"addr:{FIRST}").failed(first, "in use")
        adapters.unplug(FIRST)
        message = world.ble("info", adapter=f"addr:{FIRST}").failed(FIRST, rf"{second} \({SECOND}\)")
        assert "hci0 (" in message, message
        doctor = world.ble("doctor", "--adapter", f"addr:{FIRST}", machine_readable=False)
        assert doctor.status != 0 and f"no adapter with the address {FIRST}" in doctor.output, doctor.output
        doctor = world.ble("doctor", "--adapter", f"addr:{SECOND}", machine_readable=False).succeeded()
        assert f"{second} ({SECOND}) is down and free" in doctor.output, doctor.output


@test("auto takes the first free adapter, and brings one down that no other program uses")
def automatic(world: World):
    def taken() -> str:
        return world.ble("info", adapter="auto").succeeded().object["publicAddress"]

    hci0 = listed(world)["hci0"]
    expect(taken(), hci0, "the first")
    with world.serve("hci0") as server:
        server.event("ready", deadline=40)
        expect(taken(), listed(world)["hci1"], "the second, because the first is in use")
        server.send("quit")
        server.ended().succeeded()
    world.hciconfig("hci0", "up")
    expect(taken(), listed(world)["hci1"], "the second, because the first is up")
    for name in ("hci1", "hci2"):
        world.hciconfig(name, "up")
    try:
        expect(taken(), hci0, "the first, because all are up")
        # The channel of `ble info` has left it down, so it is the first free one.
        doctor = world.ble("doctor", "--adapter", "auto", machine_readable=False).succeeded()
        assert f"hci0 ({hci0}) is down and free" in doctor.output, doctor.output
    finally:
        for name in ("hci0", "hci1", "hci2"):
            world.hciconfig(name, "down")


@test("adapters --watch lists an adapter that is removed, and that is back under another number")
def watched(world: World):
    def rows(output) -> dict:
        listed = json.loads(output.line(r"^\[.*\]$", 40).group())
        return {row["adapter"]: row["address"] for row in listed}

    def lists(output, names: dict) -> None:
        """Skips lists in between: an adapter's state changes several times while the kernel sets it up."""
        found = rows(output)
        while {name: address for name, address in found.items() if address in (FIRST, SECOND)} != names:
            found = rows(output)

    with Adapters(world) as adapters:
        with world.start("adapters", "--watch") as watch:
            lists(watch, {})
            first = adapters.plug(FIRST)
            lists(watch, {first: FIRST})
            adapters.unplug(FIRST)
            lists(watch, {})
            second = adapters.plug(SECOND)
            lists(watch, {second: SECOND})
            again = adapters.plug(FIRST)
            assert again != first, "the number has not changed"
            lists(watch, {second: SECOND, again: FIRST})
            assert not watch.is_over(), watch.output[-5:]


@test("scan continues as soon as its adapter is back, under another number too")
def scan_continues(world: World):
    with Adapters(world) as adapters, advertiser(world) as server:
        server.event("ready", deadline=40)
        names = [adapters.plug(FIRST)]
        arguments = ("scan", "--name", "Kernel", "--duplicates", "--verbose")
        with world.start(*arguments, adapter=f"addr:{FIRST}") as scan:
            log = f"/run/errors.{world.machine.shells.index(scan.shell)}"

            def long_pauses() -> int:
                return int(world.machine.run(f"grep -c 'again in 12.8 seconds' {log}").output)

            scan.event("advertisement", address=ADDRESS, deadline=40)
            for times in (1, 2, 3):
                adapters.unplug(FIRST)
                # The host tries again at growing intervals, up to 30 seconds. The pauses are short again only if the
                # adapter's return has ended one, so each further pause of 12.8 seconds proves that for the last return.
                until(lambda: long_pauses() >= times, f"long pause {times}", patience=90)
                if times == 3:
                    break
                if times == 1:
                    adapters.plug(SECOND)
                names.append(adapters.plug(FIRST))
                count = len(scan.output)
                until(lambda: any('"advertisement"' in line for line in scan.output[count:]), "advertisements")
                assert not scan.is_over(), scan.output[-5:]
            assert names[0] != names[1], f"the number has not changed: {names}"


def gateway_binary() -> Path | None:
    """The `ble-gateway` that BLE_GATEWAY names, or the last build."""
    named = os.environ.get("BLE_GATEWAY")
    builds = [ROOT / "Gateway" / ".build" / kind / "ble-gateway" for kind in ("release", "debug")]
    found = [path for path in ([Path(named)] if named else builds) if path.is_file()]
    return found[0].resolve() if found else None


@test("ble-gateway follows its adapters while advertisements arrive")
def gateway_follows(world: World):
    binary = gateway_binary()
    if binary is None:
        raise Skipped("there is no ble-gateway: run make gateway, or name one in BLE_GATEWAY")
    state = "/run/tmp/gateway"
    program = f"chroot /host /usr/bin/env STATE_DIRECTORY={state} {shlex.quote(str(binary))}"
    run = f"{program} run --no-api --adapter addr:{FIRST} --adapter addr:{SECOND}"

    def status() -> dict:
        return world.machine.run(f"{program} status --json").succeeded().object

    def reached(condition, what: str) -> dict:
        return until(lambda: found if condition(found := status()) else None, what, 60)

    def receives() -> None:
        count = status()["advertisementCount"]
        reached(lambda found: found["advertisementCount"] > count, "advertisements")

    with Adapters(world) as adapters, advertiser(world) as server:
        server.event("ready", deadline=40)
        names = [adapters.plug(FIRST), adapters.plug(SECOND)]
        with world.machine.start(run) as gateway:
            until(lambda: world.machine.run(f"test -S {state}/status.sock").status == 0, "the gateway's socket", 60)

            def follows(names: list[str]):
                found = reached(lambda found: all(each["isScanning"] for each in found["adapters"]), "both scan")
                expect([each["kernelName"] for each in found["adapters"]], names, "the names")
                expect([each["address"] for each in found["adapters"]], [FIRST, SECOND], "the addresses")
                receives()

            follows(names)
            for _ in range(3):
                adapters.unplug(FIRST)
                lost = reached(lambda found: not found["adapters"][0]["isOpen"], "the loss of the first adapter")
                assert lost["adapters"][0]["failure"], lost
                receives()
                assert status()["adapters"][1]["isScanning"], "the other adapter does not scan"
                names = [adapters.plug(FIRST), names[1]]
                follows(names)
                names = list(adapters.exchange())
                follows(names)
            assert not gateway.is_over(), gateway.output[-5:]
