"""Starts the gateway with the command, the user and the capabilities of its unit, and is its service manager.

    service.py SYSTEM TESTS    SYSTEM is the folder of the system, TESTS that of this file
"""

import os
import pathlib
import signal
import socket
import subprocess
import sys

tree, tests = map(pathlib.Path, sys.argv[1:])
unit = (tree / "lib/systemd/system/ble-gateway.service").read_text()
command = next(line.split("=", 1)[1].split() for line in unit.splitlines() if line.startswith("ExecStart="))

manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
manager.settimeout(60)
path = tree / "tmp/notify"
path.unlink(missing_ok=True)
# The path in the system is short, and the one here may be too long for a socket.
os.chdir(path.parent)
manager.bind(path.name)
os.chmod(path, 0o777)

environment = {
    "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
    "NOTIFY_SOCKET": "/tmp/notify",
    "WATCHDOG_USEC": "600000",
    "STATE_DIRECTORY": "/var/lib/ble-gateway",
}
inside = ["unshare", "--mount", "--", tests / "chroot", tree]
gateway = subprocess.Popen([*inside, tests / "as-service", *command], env=environment)
try:
    message = manager.recv(100)
    assert message == b"READY=1", message
    for _ in range(3):
        message = manager.recv(100)
        assert message == b"WATCHDOG=1", message
    # `unshare`, the scripts and setpriv have become the gateway.
    status = pathlib.Path(f"/proc/{gateway.pid}/status").read_text()
    fields = dict(line.split(":", 1) for line in status.splitlines())
    assert fields["Name"].strip() == "ble-gateway", fields["Name"]
    for field in ["CapEff", "CapBnd", "CapAmb"]:
        assert int(fields[field], 16) == 1 << 12 | 1 << 13, (field, fields[field])
    assert "0" not in fields["Uid"].split(), fields["Uid"]
    arguments = ["ble-gateway", "status", "--state-dir", "/var/lib/ble-gateway"]
    answer = subprocess.run([*inside, tests / "as-service", *arguments], env=environment, stdout=subprocess.PIPE)
    assert answer.returncode == 0 and b"virtual" in answer.stdout, answer
    gateway.send_signal(signal.SIGTERM)
    message = b""
    while message != b"STOPPING=1":
        message = manager.recv(100)
        assert message in [b"WATCHDOG=1", b"STOPPING=1"], message
    assert gateway.wait(30) == 0, gateway.returncode
finally:
    gateway.kill()
    gateway.wait()
    path.unlink()
