"""The brokers of the tests of a fleet under load: mosquitto, and three clustered nodes of nats-server."""

import asyncio
import contextlib
import shutil
import signal
import socket
from pathlib import Path

from controllers import free_ports

MOSQUITTO = shutil.which("mosquitto") or "/usr/sbin/mosquitto"
NATS = shutil.which("nats-server") or "/usr/sbin/nats-server"


async def until_listening(port: int, process: asyncio.subprocess.Process, log: Path):
    async with asyncio.timeout(30):
        while True:
            assert process.returncode is None, f"the broker ended: {log.read_text()[-500:]}"
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    return
            await asyncio.sleep(0.05)


async def end(process: asyncio.subprocess.Process | None, limit: float = 60):
    """Ends a broker. It is killed, and the test fails, if it takes longer than the limit in seconds."""
    if process is None or process.returncode is not None:
        return
    process.terminate()
    try:
        async with asyncio.timeout(limit):
            await process.wait()
    except TimeoutError:
        raise AssertionError(f"the broker has not ended within {limit:g} s") from None
    finally:
        await kill(process)


async def kill(process: asyncio.subprocess.Process | None):
    """Kills a broker, if it runs."""
    if process is not None and process.returncode is None:
        process.kill()
        await process.wait()


class Mosquitto:
    """A mosquitto that can be stopped and started, and keeps the messages of its sessions."""

    def __init__(self, directory: Path):
        self.ports = free_ports(1)
        self.process: asyncio.subprocess.Process | None = None
        self.file, self.log = directory / "mosquitto.conf", directory / "mosquitto.log"
        self.file.write_text(
            f"listener {self.ports[0]} 127.0.0.1\nallow_anonymous true\nuser root\nmax_queued_messages 0\n"
            f"persistence true\npersistence_location {directory}/\n"
        )

    async def __aenter__(self):
        try:
            await self.start()
        except BaseException:
            await kill(self.process)
            raise
        return self

    async def __aexit__(self, *_):
        await self.stop()

    async def start(self):
        log = self.log.open("ab")
        self.process = await asyncio.create_subprocess_exec(MOSQUITTO, "-c", self.file, stdout=log, stderr=log)
        await until_listening(self.ports[0], self.process, self.log)

    async def stop(self):
        """Ends the broker, which writes its messages to its file. It would lose them by SIGKILL."""
        await end(self.process)


class NatsCluster:
    """Three nodes of nats-server with JetStream and MQTT. Each stream has three replicas."""

    def __init__(self, directory: Path, count: int = 3):
        ports = free_ports(3 * count)
        clients, routes, self.ports = ports[:count], ports[count : 2 * count], ports[2 * count :]
        self.directory = directory
        self.processes: list[asyncio.subprocess.Process | None] = [None] * count
        for number in range(count):
            others = ", ".join(f'"nats://127.0.0.1:{port}"' for port in routes)
            (directory / f"node-{number}.conf").write_text(
                f'server_name: "node-{number}"\nlisten: "127.0.0.1:{clients[number]}"\n'
                f'jetstream {{ store_dir: "{directory}/node-{number}" }}\n'
                f'cluster {{ name: fleet, listen: "127.0.0.1:{routes[number]}", routes: [{others}] }}\n'
                f'mqtt {{ listen: "127.0.0.1:{self.ports[number]}", ack_wait: "10s", stream_replicas: {count} }}\n'
                "accounts { SYSTEM { users: [{user: system, password: system}] },"
                " FLEET { jetstream: enabled, users: [{user: fleet, password: fleet}] } }\n"
                "system_account: SYSTEM\nno_auth_user: fleet\n"
            )

    async def __aenter__(self):
        try:
            async with asyncio.TaskGroup() as group:
                for number in range(len(self.processes)):
                    group.create_task(self.start_node(number))
            # The nodes choose a leader before the first client can subscribe.
            await self.until_accepting()
        except BaseException:
            for process in self.processes:
                await kill(process)
            raise
        return self

    async def until_accepting(self):
        """Waits until the cluster accepts a client with MQTT."""
        async with asyncio.timeout(60):
            while True:
                with contextlib.suppress(OSError, asyncio.IncompleteReadError, TimeoutError):
                    async with asyncio.timeout(5):
                        reader, writer = await asyncio.open_connection("127.0.0.1", self.ports[0])
                        writer.write(bytes.fromhex("100f00044d5154540402001e0003") + b"one")
                        answer = await reader.readexactly(4)
                        writer.close()
                        if answer == b"\x20\x02\0\0":
                            return
                await asyncio.sleep(0.5)

    async def __aexit__(self, *_):
        try:
            for process in self.processes:
                await end(process)
        finally:
            for process in self.processes:
                await kill(process)

    async def start_node(self, number: int):
        log = self.directory / f"node-{number}.log"
        process = await asyncio.create_subprocess_exec(
            NATS, "-c", self.directory / f"node-{number}.conf", stdout=log.open("ab"), stderr=log.open("ab")
        )
        self.processes[number] = process
        await until_listening(self.ports[number], process, log)

    async def kill(self, number: int):
        self.processes[number].send_signal(signal.SIGKILL)
        await self.processes[number].wait()
