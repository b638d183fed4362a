"""Adapters of the kernel that tests plug in and out."""

import contextlib
import re
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
FIRST, SECOND = "00:1A:7D:DA:71:01", "00:1A:7D:DA:71:02"
AIR = "unix:/run/tmp/air"  # connections to it get controllers of their own, on the same air


class Adapters:
    """Two controllers with fixed addresses on one air, and the kernel's adapters on them."""

    def __init__(self, world):
        self.world, self.machine = world, world.machine
        self.processes: dict[str, str] = {}
        self.plugs = 0

    def __enter__(self):
        places = [word for each in (FIRST, SECOND) for word in ("--listen", self.place(each), "--address", each)]
        self.stack = contextlib.ExitStack()
        script = self.world.script("controller", *places, "--listen", AIR)
        server = self.stack.enter_context(self.machine.start(script))
        for _ in range(3):
            server.line("listening", 40)
        return self

    def __exit__(self, *_):
        with contextlib.suppress(Exception):
            for address in [*self.processes]:
                self.unplug(address)
        self.stack.close()

    @staticmethod
    def place(address: str) -> str:
        return f"unix:/run/tmp/{address.replace(':', '')}"

    def plug(self, address: str) -> str:
        """Makes an adapter, and returns its name once the kernel has set it up."""
        self.plugs += 1
        log = f"/run/tmp/plug{self.plugs}"
        path = self.place(address).removeprefix("unix:")
        program = f"chroot /host /usr/bin/python3 -B {HERE}/vhci_adapter.py {path}"
        started = self.machine.run(f"setsid {program} >{log} 2>&1 & echo @process $!").succeeded()
        self.processes[address] = re.search(r"@process (\d+)", started.output).group(1)
        # The kernel has read the address when it has set the adapter up.
        ready = (
            f"n=0; until [ $n = 400 ]; do name=$(grep -o '^hci[0-9]*' {log}); "
            f'if [ -n "$name" ] && hciconfig $name | grep -q "{address}" && ! hciconfig $name | grep -q INIT; '
            f"then echo $name; exit 0; fi; usleep 50000; n=$((n+1)); done; cat {log}; hciconfig -a; exit 1"
        )
        return self.machine.run(ready, 60).succeeded().output.strip()

    def unplug(self, address: str):
        """Removes an adapter at once."""
        process = self.processes.pop(address)
        self.machine.run(f"kill -KILL {process}; while [ -e /proc/{process} ]; do usleep 10000; done", 20).succeeded()

    def exchange(self) -> tuple[str, str]:
        """Plugs both adapters out and in again in the other order, and returns the names of the first and second."""
        order = [*self.processes]
        for address in order:
            self.unplug(address)
        names = {address: self.plug(address) for address in reversed(order)}
        return names[FIRST], names[SECOND]


def until(condition, what: str, patience: float = 40):
    """Repeats a condition until it returns something true."""
    end = time.monotonic() + patience
    while not (found := condition()):
        assert time.monotonic() < end, f"not within {patience} s: {what}"
        time.sleep(0.05)
    return found
