"""BlueZ in the machine: its daemon, and its own program to command it with."""

import contextlib
import re

HCI1 = "00:AA:01:01:00:01"
SERVICE, VALUE, NOTIFIED, INDICATED = (f"7e57000{n}-5eed-4000-8000-c0ffee000000" for n in (0, 1, 2, 3))
INITIAL = bytes(range(64))  # bluetoothctl takes no longer values later than the first one


class BlueZ:
    """bluetoothd and a bluetoothctl that commands hci1, while the context is entered."""

    def __init__(self, machine):
        self.machine = machine
        self.stack = contextlib.ExitStack()

    def __enter__(self):
        machine, stack = self.machine, self.stack
        try:
            machine.run("[ -e /run/dbus/pid ] || dbus-daemon --system --fork").succeeded()
            self.daemon = stack.enter_context(machine.start("bluetoothd -n -d 2>&1"))
            self.daemon.line("Adapter /org/bluez/hci1 registered", 30)
            # Into anything but a terminal the program writes only when its buffer is full, unless it is told otherwise.
            self.control = stack.enter_context(
                machine.start("env LD_PRELOAD=/usr/libexec/coreutils/libstdbuf.so _STDBUF_O=L bluetoothctl 2>&1")
            )
            self.answer("Agent registered", 30)
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

    def tell(self, command: str, answer: str | None = None, deadline: float = 20) -> re.Match | None:
        """Gives bluetoothctl a command and waits for a line of its answer."""
        self.control.send(command)
        return self.control.line(answer, deadline) if answer else None

    def answer(self, pattern: str, deadline: float = 20) -> re.Match:
        return self.control.line(pattern, deadline)

    def register(self):
        """A battery service, and one of no known kind with values to write to and to be notified of."""
        self.tell("menu gatt")
        for service, characteristics in (
            ("0000180f-0000-1000-8000-00805f9b34fb", (("00002a19-0000-1000-8000-00805f9b34fb", "read,notify", "0x55"),)),
            (
                SERVICE,
                (
                    (VALUE, "read,write,write-without-response", " ".join(f"{octet:#04x}" for octet in INITIAL)),
                    (NOTIFIED, "read,write,notify", "0x00 0x00 0x00"),
                    (INDICATED, "read,write,indicate", "0x00 0x00 0x00"),
                ),
            ),
        ):
            # What is registered is printed, and then, on a line without an end, what is asked for.
            self.tell(f"register-service {service}", r"/org/bluez/app/service\d+$")
            self.answer(service)
            self.tell("yes")
            for uuid, flags, value in characteristics:
                self.tell(f"register-characteristic {uuid} {flags}", r"/org/bluez/app/service\d+/chrc\d+$")
                self.answer(uuid)
                self.tell(value)
        self.tell("register-application", "Application registered")
        self.tell("back")
