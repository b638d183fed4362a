"""BlueZ in the machine: its daemon, and bluetoothctl to control it."""

import contextlib
import re

from machine import Unexpected

HCI0, HCI1 = "00:AA:01:00:00:00", "00:AA:01:01:00:01"


class BlueZ:
    """bluetoothd, and a bluetoothctl that controls hci1, while the context is entered."""

    def __init__(self, machine, channels: int = 1):
        """`channels` is how many bearers of the Attribute Protocol BlueZ uses on a link, the fixed channel included."""
        self.machine = machine
        self.channels = channels
        self.stack = contextlib.ExitStack()

    def __enter__(self):
        machine, stack = self.machine, self.stack
        try:
            machine.run("[ -e /run/dbus/pid ] || dbus-daemon --system --fork").succeeded()
            command = "bluetoothd -n -d"
            if self.channels > 1:
                # Enhanced bearers need L2CAP's enhanced credit-based channels, which the kernel has off by default.
                machine.run("echo Y > /sys/module/bluetooth/parameters/enable_ecred").succeeded()
                stack.callback(machine.run, "echo N > /sys/module/bluetooth/parameters/enable_ecred")
                settings = f"[Policy]\\nAutoEnable = false\\n[GATT]\\nChannels = {self.channels}\\n"
                machine.run(f"printf '{settings}' > /run/main.conf").succeeded()
                command += " -f /run/main.conf"
            self.daemon = stack.enter_context(machine.start(f"{command} 2>&1"))
            self.daemon.line("Adapter /org/bluez/hci1 registered", 30)
            self.control = self.start_control()
            self.tell("list", HCI1)
            self.tell(f"select {HCI1}")
            self.tell("power on", "Changing power on succeeded", 30)
        except BaseException:
            stack.close()
            raise
        return self

    def __exit__(self, *details):
        with contextlib.suppress(Exception):
            self.control.send("quit")
            self.control.ended(5)
        self.stack.close()

    def start_control(self):
        """Starts bluetoothctl until it stays alive: sometimes it crashes while it looks for the daemon."""
        # If its output is not a terminal, the program writes only when its buffer is full, unless this is changed.
        script = "env LD_PRELOAD=/usr/libexec/coreutils/libstdbuf.so _STDBUF_O=L bluetoothctl 2>&1"
        for remaining in range(9, -1, -1):
            with contextlib.ExitStack() as stack:
                control = stack.enter_context(self.machine.start(script))
                try:
                    control.line("Agent registered", 30)
                except Unexpected:
                    if control.ended(5).status == 0 or not remaining:
                        raise
                else:
                    self.stack.push(stack.pop_all())
                    return control

    def tell(self, command: str, answer: str | None = None, deadline: float = 20) -> re.Match | None:
        """Gives bluetoothctl a command and waits for a line of its answer."""
        self.control.send(command)
        return self.control.line(answer, deadline) if answer else None

    def answer(self, pattern: str, deadline: float = 20) -> re.Match:
        return self.control.line(pattern, deadline)

    def answers(self, *patterns: str, deadline: float = 40):
        """Waits for lines in any order, one for each pattern."""
        left = list(patterns)
        while left:
            line = self.answer("|".join(left), deadline).string
            left.remove(next(pattern for pattern in left if re.search(pattern, line)))

    def find(self, device: str, attempts: int = 10):
        """Scans until a device is found. btvirt reports it once for each scan that begins, at a moment at which BlueZ
        may not listen yet. BlueZ reports it before or after it reports the start of the scan."""
        for remaining in range(attempts - 1, -1, -1):
            self.control.send("scan on")
            try:
                self.answers("Discovery started", rf"NEW.*Device {device}", deadline=10)
            except Unexpected:
                if not remaining:
                    raise
            else:
                return
            finally:
                self.tell("scan off", "Discovery stopped")
            # A device that was reported without its name is not new again.
            self.forget(device.split()[0])

    def take_up_agent(self, capability: str):
        """Makes bluetoothctl answer for a user with these IO capabilities when devices pair."""
        self.tell("agent off", "Agent unregistered")
        self.tell(f"agent {capability}", "Agent registered")
        self.tell("default-agent", "Default agent request successful")
        self.tell("pairable on", "Changing pairable on succeeded")

    def forget(self, address: str):
        """Removes BlueZ's record of a device, including its bond."""
        self.tell(f"remove {address}", "Device has been removed|not available")
