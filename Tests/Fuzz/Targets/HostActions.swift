import BLE
import BluetoothTesting
import BluetoothTypes

/// The concurrent actions of a fuzzed host's app and of its peers. Each runs on its own while the controller sends
/// further packets.
struct HostActions {
    /// Maximum number of actions in one script, because pairings take long.
    private static let limit = 6
    /// The PSM of the services that channels are opened to.
    private static let psm: UInt16 = 0x0080

    let world: World
    let adapter: Adapter
    let lamp: ScriptedPeripheral
    /// The lamp, from the side of the host.
    let peer: RemotePeripheral
    /// The host, from the side of the phone.
    let client: RemotePeripheral
    /// A value of the host's server.
    let value: AttributeHandle
    private var tasks: [Task<Void, Never>] = []

    init(
        world: World,
        adapter: Adapter,
        lamp: ScriptedPeripheral,
        peer: RemotePeripheral,
        client: RemotePeripheral,
        value: AttributeHandle
    ) {
        self.world = world
        self.adapter = adapter
        self.lamp = lamp
        self.peer = peer
        self.client = client
        self.value = value
    }

    /// Begins the action with a number; none for zero.
    mutating func begin(_ number: UInt8, _ octets: [UInt8]) {
        guard number != 0, tasks.count < HostActions.limit else { return }
        tasks.append(
            Task(executorPreference: world.taskExecutor) { [self] in
                switch number {
                case 1: await pairAsCentral()
                case 2: await pairAsPeripheral()
                case 3: await openChannel(from: peer, to: lamp.adapter, octets)
                case 4: await openChannel(from: client, to: adapter, octets)
                case 5: await subscribe(octets)
                case 6: await changeLink(octets)
                case 8: await broadcast(octets)
                default: await reconnect()
                }
            }
        )
    }

    func cancel() {
        for task in tasks { task.cancel() }
    }

    /// Waits until all actions have ended.
    func end() async {
        for task in tasks { await task.value }
    }

    private func pairAsCentral() async {
        await lamp.adapter.setPairingDelegate(Consent())
        _ = try? await peer.pair(again: true)
        try? await peer.write([1], to: AttributeHandle(rawValue: 0x0011), kind: .signed)
    }

    private func pairAsPeripheral() async {
        _ = try? await client.pair()
        for handle in UInt16(1)...20 { _ = try? await client.read(AttributeHandle(rawValue: handle)) }
    }

    private func openChannel(from opener: RemotePeripheral, to listening: Adapter, _ octets: [UInt8]) async {
        let listener = try? await listening.peripheral.publishChannel(psm: HostActions.psm)
        let results = await opener.openChannels(2, psm: HostActions.psm)
        let single = try? await opener.openChannel(psm: HostActions.psm)
        for channel in results.compactMap({ try? $0.get() }) + [single].compactMap({ $0 }) {
            try? await channel.write(octets)
            try? await channel.reconfigure(mtu: 4096, mps: 512)
            await channel.finish()
        }
        await listener?.close()
    }

    /// Subscribes each side to the other's values, which then change.
    private func subscribe(_ octets: [UInt8]) async {
        for peer in [peer, client] {
            for service in (try? await peer.discoverAll()) ?? [] {
                for characteristic in service.characteristics {
                    _ = try? await peer.subscribe(to: characteristic)
                    try? await peer.write(octets, to: characteristic.valueHandle, kind: .reliable)
                }
            }
        }
        try? await lamp.send(octets, of: "FFE1")
        try? await adapter.peripheral.notify(octets, of: value)
        try? await adapter.peripheral.indicate(octets, of: value)
    }

    private func changeLink(_ octets: [UInt8]) async {
        _ = try? await peer.readRSSI()
        try? await peer.updateConnectionParameters(.init(latencyInEvents: UInt16(octets.first ?? 0)))
        try? await peer.setDataLength(bytes: 27 + UInt16(octets.last ?? 0))
        try? await client.updateConnectionParameters(.init())
    }

    /// Sends a broadcast isochronous group, and receives one of the lamp.
    private func broadcast(_ octets: [UInt8]) async {
        let train = AdvertisementConfiguration(
            isConnectable: false,
            isScannable: false,
            periodic: PeriodicAdvertisingConfiguration(interval: .milliseconds(50))
        )
        guard let sent = try? await adapter.peripheral.startAdvertising(train),
            let received = try? await lamp.adapter.peripheral.startAdvertising(train)
        else { return }
        let groups = [try? await sent.startBroadcast(), try? await received.startBroadcast()]
        for group in groups { try? await group?.streams.first?.send(octets) }
        let request = try? await firstTrain(of: lamp.address)
        guard let request, let reception = try? await adapter.central.receiveBroadcast(of: request) else { return }
        try? await groups[1]?.streams.first?.send(octets)
        var sdus = reception.streams[0].makeAsyncIterator()
        _ = try? await sdus.next()
    }

    private func firstTrain(of address: DeviceAddress) async throws -> PeriodicTrainRequest? {
        for try await advertisement in adapter.central.scan() where advertisement.address == address {
            guard let sid = advertisement.advertisingSetIdentifier, !advertisement.isConnectable else { continue }
            return PeriodicTrainRequest(address: address, sid: sid)
        }
        return nil
    }

    private func reconnect() async {
        await peer.disconnect()
        guard let other = try? await adapter.central.connect(to: lamp.address) else { return }
        _ = try? await other.discoverServices()
        await other.disconnect()
    }
}

/// Consents to every pairing.
struct Consent: PairingDelegate {
    func answer(_ inquiry: PairingInquiry) async -> PairingAnswer { .accept }
}
