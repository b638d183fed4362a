"""Compares the CPU time of swift-ble with that of bluetoothd, dbus-daemon and an app on bleak.

Each stack gets the same packets of the kernel controller (Benchmarks/Descriptor/KernelController) in the virtual
machine of Tests/KernelTests. The CPU time, user and system, is that of the processes' control groups. The time of all
kernel threads is counted separately: they process HCI packets, and for BlueZ also L2CAP.

The machine takes a nanosecond for each instruction, unless `--time` is given. So a microsecond of CPU time is a
thousand instructions, and the results do not depend on the load of the host.
"""

import argparse
import contextlib
import json
import shlex
import statistics
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "Tests/KernelTests"))

from machine import Machine, Unexpected, has_virtualization  # noqa: E402

# Idle threads of the start-up end after five seconds.
SETTLING_SECONDS, IDLE_SECONDS = 6, 5
GROUPS = ("controller", "dbus-daemon", "bluetoothd", "app")
STACKS = ("swift-ble", "swift-ble on the loop", "BlueZ")
OPERATIONS = (("read", "reads", 500), ("write", "writes", 500), ("write without response", "commands", 2000))
SUBSCRIPTIONS = (("notification", "subscribe"), ("notification by AcquireNotify", "subscribe acquired"))
SAMPLE = (
    f"echo @uptime $(cat /proc/uptime); for name in {' '.join(GROUPS)}; do "
    "echo @$name $(cat /sys/fs/cgroup/$name/cpu.stat); done; "
    "cat /proc/[0-9]*/stat; grep -H . /proc/[0-9]*/schedstat"
)


class Sample:
    """The CPU time of each group and of each kernel thread so far, in microseconds."""

    def __init__(self, machine: Machine):
        self.groups, self.threads = {}, {}
        kernel = set()
        for line in machine.run(SAMPLE).output.splitlines():
            if line.startswith("@uptime "):
                self.time = float(line.split()[1])
            elif line.startswith("@"):
                words = line[1:].split()
                self.groups[words[0]] = int(words[words.index("usage_usec") + 1])
            elif line.startswith("/proc/"):
                path, times = line.split(":", 1)
                if (identifier := path.split("/")[2]) in kernel:
                    self.threads[identifier] = int(times.split()[0]) / 1000
            elif ") " in line and line.rpartition(") ")[2].split()[1] == "2":
                kernel.add(line.split()[0])

    def since(self, earlier: "Sample") -> dict:
        """The microseconds of each group and of the kernel's threads, and the seconds, since an earlier sample."""
        costs = {name: self.groups[name] - earlier.groups[name] for name in GROUPS}
        threads = (cpu - earlier.threads.get(thread, 0) for thread, cpu in self.threads.items())
        return {**costs, "kernel": sum(threads), "seconds": self.time - earlier.time}


class Stack:
    """A stack with its app, `scan` or `connect`, on a controller of its own, while the context is entered."""

    def __init__(self, machine: Machine, name: str, mode: str, binaries: Path):
        self.machine, self.name, self.mode, self.binaries = machine, name, mode, binaries
        self.context = contextlib.ExitStack()

    def __enter__(self):
        try:
            self.controller = self.start("controller", f"chroot /host {self.binaries}/kernel-controller")
            adapter = f"hci{self.answer(self.controller)['index']}"
            if self.name == "BlueZ":
                program = f"{ROOT}/.build-bluez/venv/bin/python -B {HERE}/counting_app.py"
                self.start_bluez(adapter)
            else:
                place = "loop" if self.name.endswith("loop") else "threads"
                program = f"/usr/bin/env MEASURED_APP={place} {self.binaries}/counting-app"
            if self.mode == "connect":
                self.ask(self.controller, "peer")
            self.app = self.start("app", f"chroot /host {program} {adapter} {self.mode} 2>&1")
            if not self.answer(self.app, 90).get("ready"):
                raise Unexpected(f"the app of {self.name} is not ready")
        except BaseException:
            self.context.close()
            raise
        return self

    def __exit__(self, *_):
        self.context.close()

    def start(self, group: str, command: str):
        script = f"echo $$ >/sys/fs/cgroup/{group}/cgroup.procs; exec {command}"
        return self.context.enter_context(self.machine.start(f"sh -c {shlex.quote(script)}"))

    def start_bluez(self, adapter: str):
        start = "echo $$ >/sys/fs/cgroup/dbus-daemon/cgroup.procs; exec dbus-daemon --system --fork"
        self.machine.run(f"[ -e /run/dbus/pid ] || sh -c {shlex.quote(start)}").succeeded()
        # The settings are bluetoothd's defaults; the image's own file keeps it from taking adapters.
        self.machine.run("rm -rf /var/lib/bluetooth/*; : >/run/main.conf").succeeded()
        self.start("bluetoothd", "bluetoothd -n -f /run/main.conf 2>&1")
        self.machine.run(wait_until(f"hciconfig {adapter} | grep -q RUNNING")).succeeded()

    def answer(self, program, deadline: float = 60) -> dict:
        return json.loads(program.line(r"^\{.*\}$", deadline).group())

    def ask(self, program, command: str, deadline: float = 60) -> dict:
        program.send(command)
        return self.answer(program, deadline)

    def cost_of(self, work) -> dict:
        """The cost of a function's work; the function returns the numbers of sent and of delivered packets."""
        before = Sample(self.machine)
        sent, delivered = work()
        return {**Sample(self.machine).since(before), "sent": sent, "delivered": delivered}

    def settle(self):
        self.machine.run(f"sleep {SETTLING_SECONDS}")

    def rest(self) -> tuple[int, int]:
        self.machine.run(f"sleep {IDLE_SECONDS}")
        return 0, 0

    def deliver(self, command: str) -> tuple[int, int]:
        """Makes the controller send reports or notifications, and lets the app finish with them."""
        sent = self.ask(self.controller, command, 120)["sent"]
        self.machine.run("usleep 500000")
        return sent, self.ask(self.app, "count")["received"]

    def perform(self, operation: str, count: int) -> tuple[int, int]:
        """Makes the app perform operations, and waits until the controller has received them all."""
        self.ask(self.app, f"{operation} {count}", 120)
        received, end = 0, time.monotonic() + 60
        while received < count and time.monotonic() < end:
            self.machine.run("usleep 100000")
            received += self.ask(self.controller, "count")[operation]
        return count, received


def scan(stack: Stack) -> dict:
    stack.deliver("reports 300 100")
    stack.settle()
    costs = {"idle scan": stack.cost_of(stack.rest)}
    for rate, count in ((100, 300), (1000, 3000)):
        costs[f"advertisement, {rate:,}/s"] = stack.cost_of(lambda: stack.deliver(f"reports {count} {rate}"))
    return costs


def operate(stack: Stack) -> dict:
    stack.perform("reads", 100)
    stack.settle()
    costs = {"idle connection": stack.cost_of(stack.rest)}
    for name, operation, count in OPERATIONS:
        costs[name] = stack.cost_of(lambda: stack.perform(operation, count))
    for place, (name, subscribe) in enumerate(SUBSCRIPTIONS[: 2 if stack.name == "BlueZ" else 1]):
        if place:
            stack.ask(stack.app, "unsubscribe")
        stack.ask(stack.app, subscribe)
        stack.deliver("notifications 100 100")
        for rate, count in ((100, 300), (1000, 3000)):
            costs[f"{name}, {rate:,}/s"] = stack.cost_of(lambda: stack.deliver(f"notifications {count} {rate}"))
    return costs


MODES = {"scan": scan, "connect": operate}


def run(machine: Machine, binaries: Path) -> dict:
    """One measurement of all stacks: the costs of each operation, by stack."""
    results = {}
    for mode, body in MODES.items():
        for name in STACKS:
            with Stack(machine, name, mode, binaries) as stack:
                costs = body(stack)
            idle = next(iter(costs.values()))
            for operation, cost in costs.items():
                results.setdefault(operation, {})[name] = per_operation(cost, idle)
    return results


def per_operation(cost: dict, idle: dict) -> dict:
    """Microseconds for each delivered packet, less the idle cost; for the idle cost itself, for each second."""
    is_idle = cost is idle
    share = 0 if is_idle else cost["seconds"] / idle["seconds"]
    count = cost["seconds"] if is_idle else max(cost["delivered"], 1)
    each = {name: (cost[name] - share * idle[name]) / count for name in (*GROUPS, "kernel")}
    each["processes"] = sum(each[name] for name in GROUPS if name != "controller")
    return each | {name: cost[name] for name in ("sent", "delivered", "seconds")}


def prepare(machine: Machine):
    """Removes the controllers of the tests, and makes the control groups."""
    groups = " ".join(f"/sys/fs/cgroup/{name}" for name in GROUPS)
    machine.run(f"killall btvirt && mount -t cgroup2 none /sys/fs/cgroup && mkdir {groups}").succeeded()
    machine.run(wait_until('[ -z "$(ls /sys/class/bluetooth)" ]')).succeeded()


def wait_until(condition: str) -> str:
    """A shell script that ends when the condition is true, and fails if it is not within 20 seconds."""
    return f"n=0; until {condition}; do usleep 50000; n=$((n+1)); [ $n -lt 400 ] || exit 1; done"


def table(heads: list, rows: list):
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)], *rows]
    for cells in lines:
        print("| " + " | ".join(str(cell) for cell in cells) + " |")


class Results:
    """The results of several runs."""

    def __init__(self, runs: list):
        self.runs = runs

    def values(self, operation: str, stack: str, name: str) -> list:
        """The values of all runs. Another way of BlueZ to do an operation is compared with our only way."""
        key = operation if stack == "BlueZ" else operation.replace(" by AcquireNotify", "")
        return [each[key][stack][name] for each in self.runs]

    def median(self, operation: str, stack: str, name: str) -> float:
        return statistics.median(self.values(operation, stack, name))

    def cell(self, operation: str, stack: str) -> str:
        values = self.values(operation, stack, "processes")
        return f"{statistics.median(values):,.1f} ({min(values):,.1f})"

    def ratio(self, operation: str, stack: str, *names: str) -> str:
        ours, theirs = (sum(self.median(operation, each, name) for name in names) for each in (stack, "BlueZ"))
        return f"{theirs / ours:.1f} x" if theirs >= 1 else ""

    def delivered(self, operation: str, stack: str) -> str:
        return f"{sum(self.values(operation, stack, 'delivered')):,} of {sum(self.values(operation, stack, 'sent')):,}"

    def print(self, unit: str):
        operations = list(self.runs[0])
        print(f"\n{unit} for each operation, or each idle second: median and minimum of {len(self.runs)} runs\n")
        heads = ["operation", *STACKS, "ratio", "ratio on the loop"]
        rows = [
            [operation, *(self.cell(operation, stack) for stack in STACKS)]
            + [self.ratio(operation, stack, "processes") for stack in list(STACKS)[:2]]
            for operation in operations
        ]
        table(heads, rows)
        print("\nThe parts, medians\n")
        heads = ["operation", "bluetoothd", "dbus-daemon", "bleak"]
        heads += ["kernel threads, swift-ble", "kernel threads, BlueZ", "ratio with kernel threads"]
        heads += ["delivered, swift-ble", "delivered, BlueZ"]
        rows = [
            [operation]
            + [f"{self.median(operation, 'BlueZ', name):,.1f}" for name in ("bluetoothd", "dbus-daemon", "app")]
            + [f"{self.median(operation, stack, 'kernel'):,.1f}" for stack in ("swift-ble", "BlueZ")]
            + [self.ratio(operation, "swift-ble", "processes", "kernel")]
            + [self.delivered(operation, stack) for stack in ("swift-ble", "BlueZ")]
            for operation in operations
        ]
        table(heads, rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--time", action="store_true", help="measure time instead of instructions; needs KVM")
    parser.add_argument("--binaries", type=Path, default=ROOT / "Benchmarks/Descriptor/.build/release")
    parser.add_argument("--out", type=Path, default=ROOT / ".build-bluez", help="the folder of logs and results.json")
    options = parser.parse_args()
    if options.time and not has_virtualization():
        parser.error("without KVM, only instructions are comparable")
    counts, runs = not options.time, []
    with Machine(ROOT / ".vm", options.out / "machine", limit=7200, counts_instructions=counts) as machine:
        prepare(machine)
        for number in range(options.runs):
            try:
                runs.append(run(machine, options.binaries.resolve()))
            except Unexpected as error:
                print(f"run {number + 1} failed: {error}", file=sys.stderr, flush=True)
                continue
            print(f"run {number + 1} of {options.runs} is done", file=sys.stderr, flush=True)
            (options.out / "results.json").write_text(json.dumps(runs, indent=1))
    if not runs:
        raise SystemExit("no run succeeded")
    Results(runs).print("Thousands of instructions" if counts else "Microseconds of CPU")
    if len(runs) < options.runs:
        raise SystemExit(f"{options.runs - len(runs)} of {options.runs} runs failed")


if __name__ == "__main__":
    main()
