"""A virtual machine with its own Linux kernel and virtual controllers. Programs are run in it from outside."""

import contextlib
import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from pathlib import Path

SHELLS = 6
TERMINAL = re.compile(
    r"^.*\r|\x1b\[[0-9;?]*[A-Za-z]|[\x01\x02]"
)  # sequences that only move a terminal's cursor, or text that they hide
OUT = "/run/out"  # in the machine: the folder that it shares with the host


class Unexpected(AssertionError):
    """The awaited event did not occur."""


def has_virtualization() -> bool:
    """Whether KVM works. /dev/kvm alone proves nothing: on a processor without virtualization, a kernel hangs with it."""
    flags = re.search(r"^flags\s*:.*\b(vmx|svm)\b", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return bool(flags) and os.access("/dev/kvm", os.W_OK)


class Machine:
    """Boots, and runs programs in separate shells, until the context is left.

    If the machine `counts_instructions`, it has one emulated processor that takes a nanosecond of the machine's time
    for each instruction. So the CPU time of its processes does not depend on the host.
    """

    def __init__(self, image: Path, out: Path, limit: float = 1800, counts_instructions: bool = False):
        self.image = image
        self.out = out
        self.limit = limit
        self.counts_instructions = counts_instructions

    def __enter__(self):
        self.out.mkdir(parents=True, exist_ok=True)
        self.sockets = Path(tempfile.mkdtemp())
        listeners, devices = [], []
        for index in range(SHELLS):
            path = self.sockets / f"shell{index}"
            listener = socket.socket(socket.AF_UNIX)
            listener.bind(str(path))
            listener.listen()
            listeners.append(listener)
            devices += ["-chardev", f"socket,id=shell{index},path={path}"]
            devices += ["-device", f"virtserialport,chardev=shell{index},name=shell{index}"]
        for tag, path, options in (("out", self.out, ""), ("host", "/", ",readonly=on,multidevs=remap")):
            devices += ["-fsdev", f"local,id={tag},path={path},security_model=none{options}"]
            devices += ["-device", f"virtio-9p-pci,fsdev={tag},mount_tag={tag}"]
        if self.counts_instructions:
            processor = ["-smp", "1", "-accel", "tcg,thread=single", "-icount", "shift=0", "-cpu", "max"]
        elif has_virtualization():
            processor = ["-smp", "2", "-accel", "kvm", "-cpu", "host"]
        else:
            processor = ["-smp", "2", "-accel", "tcg,thread=multi", "-cpu", "max"]
        self.process = subprocess.Popen(
            ["qemu-system-x86_64", "-machine", "q35", "-m", "768", "-no-reboot", "-nodefaults", *processor]
            + ["-no-user-config", "-display", "none", "-serial", f"file:{self.out}/console.log"]
            + ["-kernel", str(self.image / "kernel"), "-initrd", str(self.image / "initramfs")]
            + ["-append", "console=ttyS0 quiet panic=-1 nokaslr mitigations=off random.trust_cpu=on tsc=reliable"]
            + ["-device", "virtio-serial-pci", *devices],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=open(self.out / "qemu.log", "wb"),
        )
        self.killer = threading.Timer(self.limit, self.process.kill)
        self.killer.start()
        try:
            self.shells = []
            for listener in listeners:
                listener.settimeout(30)
                self.shells.append(Shell(listener.accept()[0]))
                listener.close()
            self.free = list(self.shells)
            patience = 300 if self.counts_instructions else 60
            self.free[0].await_line(lambda line: line == "@ready", patience, "the machine's start", ask="echo @ready")
            self.wait_for_controllers()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            with contextlib.suppress(Exception):
                self.run("dmesg > /run/out/dmesg; sync; poweroff -f", deadline=5)
            try:
                self.process.wait(3)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.killer.cancel()
        shutil.rmtree(self.sockets, ignore_errors=True)

    def wait_for_controllers(self):
        """Returns when the kernel has set up all controllers; until then no program can use them."""
        script = (
            "n=0; until [ $n = 200 ]; do flags=$(hciconfig); "
            '[ $(echo "$flags" | grep -c Address) = 3 ] && ! echo "$flags" | grep -q INIT && exit 0; '
            "usleep 50000; n=$((n+1)); done; hciconfig -a; exit 1"
        )
        outcome = self.run(script, deadline=60)
        if outcome.status != 0:
            raise Unexpected(f"no controllers: {outcome.output}")

    @contextlib.contextmanager
    def start(self, script: str):
        """A shell script that runs while the context is entered."""
        shell = self.free.pop()
        running = Running(self, shell, script)
        try:
            yield running
        finally:
            running.stop()
            if shell.healthy:
                self.free.append(shell)

    def run(self, script: str, deadline: float = 60):
        """Runs a shell script to its end."""
        with self.start(f"( {script} ) </dev/null") as running:
            return running.ended(deadline)


class Shell:
    """One shell of the machine, with lines as input and output."""

    def __init__(self, connection: socket.socket):
        self.connection = connection
        self.lines: list[str] = []
        self.changed = threading.Condition()
        self.healthy = True
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        rest = b""
        while True:
            try:
                data = self.connection.recv(65536)
            except OSError:
                data = b""
            with self.changed:
                *complete, rest = (rest + data).split(b"\n")
                self.lines += [TERMINAL.sub("", line.decode(errors="replace").rstrip("\r")) for line in complete]
                if not data:
                    self.healthy = False
                self.changed.notify_all()
            if not data:
                return

    def send(self, line: str):
        self.connection.sendall(line.encode() + b"\n")

    def await_line(self, accept, deadline: float, what: str, start: int = 0, ask: str | None = None) -> int:
        """The position of the first accepted line from `start` on; `ask` is sent repeatedly until then."""
        end = time.monotonic() + deadline
        place = start
        with self.changed:
            while True:
                if ask is not None:
                    self.send(ask)
                while place < len(self.lines):
                    if accept(self.lines[place]):
                        return place
                    place += 1
                left = end - time.monotonic()
                if left <= 0 or not self.healthy:
                    raise Unexpected(f"no {what} within {deadline} s; last lines {self.lines[start:][-8:]}")
                self.changed.wait(min(left, 0.5) if ask is not None else left)


class Outcome:
    """A script that has ended."""

    def __init__(self, script: str, status: int, output: str, errors: str):
        self.script = script if len(script) < 300 else f"{script[:300]}..."
        self.status, self.output, self.errors = status, output, errors

    def succeeded(self) -> "Outcome":
        if self.status != 0:
            raise AssertionError(
                f"{self.script}: status {self.status}: {self.errors.strip() or self.output.strip()[-400:]}"
            )
        return self

    @property
    def object(self) -> dict:
        """The one line of JSON on standard output."""
        (line,) = self.output.splitlines()
        return json.loads(line)

    def failed(self, *mentions: str) -> str:
        """The message of a call that must fail: one line on standard error, with these words somewhere in it."""
        lines = [line for line in self.errors.splitlines() if line.strip()]
        if self.status == 0 or len(lines) != 1:
            raise AssertionError(
                f"{self.script}: status {self.status}, errors {self.errors!r}: not one line of failure"
            )
        for words in mentions:
            if not re.search(words, lines[0], re.IGNORECASE):
                raise AssertionError(f"{self.script}: {words!r} is not mentioned in {lines[0]!r}")
        return lines[0]


class Running:
    """A script that may still be running."""

    def __init__(self, machine: Machine, shell: Shell, script: str):
        self.machine, self.shell, self.script = machine, shell, script
        self.first = len(shell.lines)
        errors = f"/run/errors.{machine.shells.index(shell)}"
        quoted = shlex.quote(
            f'echo "@pid $$"; exec {script}' if not script.startswith("(") else f'echo "@pid $$"; {script}'
        )
        # All on one line: the shell must have read it when the program begins to read its input.
        shell.send(f"sh -c {quoted} 2>{errors}; s=$?; echo; echo @status $s; cat {errors}; echo; echo @end")
        place = shell.await_line(lambda line: line.startswith("@pid "), 20, "start", self.first)
        self.pid = int(shell.lines[place].split()[1])
        self.first = self.place = place + 1

    @property
    def output(self) -> list[str]:
        return self.shell.lines[self.first :]

    def send(self, line: str):
        """Writes a line to standard input."""
        self.shell.send(line)

    def line(self, pattern: str, deadline: float = 20) -> re.Match:
        """The next line of output that contains the pattern; earlier lines are skipped."""
        found = []

        def accept(line):
            if line.startswith("@status "):
                raise Unexpected(f"{self.script} ended before {pattern!r}: {self.output[-8:]}")
            match = re.search(pattern, line)
            if match:
                found.append(match)
            return match

        self.place = self.shell.await_line(accept, deadline, repr(pattern), self.place) + 1
        return found[0]

    def event(self, name: str, deadline: float = 20, **fields) -> dict:
        """The next line of JSON with this event and these fields."""
        end = time.monotonic() + deadline
        while True:
            event = json.loads(self.line(r"^\{.*\}$", max(0.1, end - time.monotonic())).group())
            if event.get("event") == name and all(event.get(key) == value for key, value in fields.items()):
                return event

    def is_over(self) -> bool:
        return any(line == "@end" for line in self.output)

    def ended(self, deadline: float = 20) -> Outcome:
        """The outcome of the script, once it has ended."""
        end = self.shell.await_line(lambda line: line == "@end", deadline, f"end of {self.script}", self.first)
        lines = self.shell.lines[self.first : end]
        at = max(index for index, line in enumerate(lines) if line.startswith("@status "))
        output = "\n".join(lines[:at]).rstrip("\n")
        return Outcome(self.script, int(lines[at].split()[1]), output, "\n".join(lines[at + 1 :]))

    def signal(self, name: str):
        subprocess_shell = self.machine.run(f"kill -{name} {self.pid}", deadline=10)
        return subprocess_shell.status

    def stop(self):
        """Ends everything that is left of the script, in any case."""
        if self.is_over() or not self.shell.healthy or self.machine.process.poll() is not None:
            return
        for name, patience in (("TERM", 8), ("KILL", 5)):
            with contextlib.suppress(Unexpected, IndexError):
                self.signal(name)
                self.ended(patience)
                return
        self.shell.healthy = False
