import BLE
import BLEHCI
import BluetoothHost
import BluetoothTesting
import BluetoothTypes
import Synchronization

/// The actions of the app of a fuzzed host, of its peers and of its controller, concerning scans, advertisements,
/// connection attempts and addresses.
struct DiscoveryActions {
    private static let name = AdvertisingData([.completeLocalName("tag"), .serviceUUIDs(["180F"], isComplete: true)])

    let world: World
    let device: Device
    let adapter: Adapter
    let tag: Device
    let phone: Device
    let heard: HeardAddresses
    let setup: DiscoverySetup
    var calls: ConcurrentCalls
    private var tagAdapter: Adapter
    private let phoneAdapter: Adapter
    let advertisements = AdvertisementList()

    init(
        world: World,
        device: Device,
        adapter: Adapter,
        tag: Device,
        phone: Device,
        heard: HeardAddresses,
        setup: DiscoverySetup
    ) async throws {
        self.world = world
        self.device = device
        self.adapter = adapter
        self.tag = tag
        self.phone = phone
        self.heard = heard
        self.setup = setup
        calls = ConcurrentCalls(world: world)
        tagAdapter = try await DiscoveryActions.openTag(tag, isPrivate: true, identity: nil)
        phoneAdapter = try await phone.openAdapter { $0.pairingDelegate = Consent() }
    }

    private static func openTag(_ tag: Device, isPrivate: Bool, identity: DeviceAddress?) async throws -> Adapter {
        let adapter = try await tag.openAdapter {
            $0.usesPrivateAddresses = isPrivate
            $0.privateAddressTimeout = .seconds(5)
            $0.identityAddress = identity
            $0.pairingDelegate = Consent()
        }
        let configuration = AdvertisementConfiguration(advertisingData: name)
        // Advertises until the adapter is closed.
        _ = try await adapter.host.startAdvertising(configuration)
        return adapter
    }

    /// Pairs with the tag, so that each side resolves the other's private addresses.
    func bond() async throws {
        for try await found in adapter.central.scan(ScanOptions(name: "tag")) {
            let peer = try await adapter.central.connect(to: found.address, timeout: .seconds(5))
            try await peer.pair()
            return await peer.disconnect()
        }
        fatalError("the scan for the tag has ended")
    }

    mutating func end() async {
        await calls.end()
        await advertisements.stopAll()
        await closeCompletely(tagAdapter)
        await closeCompletely(phoneAdapter)
    }

    /// Whether a packet of the script is sent to the host as it is.
    static func isInjected(_ packet: Script.Packet) -> Bool { packet.choice & 15 == 0 }

    mutating func perform(_ packet: Script.Packet) async {
        var choices = Choices(packet.octets)
        switch packet.choice & 15 {
        case 0: device.inject(packet.octets.rawSpan)
        case 1: report(&choices)
        case 2: reportLegacy(&choices)
        case 3, 4: scan(&choices)
        case 5: calls.cancel(choices.next())
        case 6, 7: advertise(&choices)
        case 8: stopAdvertisement(choices.next())
        case 9, 10: connect(&choices)
        case 11: await changeBond(choices.next())
        case 12: await restartTag(&choices)
        case 13: changeController(choices.next())
        case 14: callFromPhone(&choices)
        default: await endLinks(choices.next())
        }
    }

    // MARK: Reports

    /// Sends an LE Extended Advertising Report event, which may be one part of several.
    private func report(_ choices: inout Choices) {
        let type = choices.next()
        let status = choices.next()
        let address = heard[choices.next()]
        let identifier = choices.next(below: 18)
        let sender = addressBytes(of: address)
        let tail: [UInt8] = [1, 1, identifier == 17 ? 0xFF : identifier, 0x7F, 0xC4, 0, 0, 0, 0, 0, 0, 0, 0, 0]
        let data = Array(choices.remaining().prefix(229))
        send([0x0D, 1, type & 0x7F, status & 1] + sender + tail + [UInt8(data.count)] + data)
    }

    /// Sends an LE Advertising Report event.
    private func reportLegacy(_ choices: inout Choices) {
        let type = choices.next(below: 5)
        let address = heard[choices.next()]
        let data = Array(choices.remaining().prefix(31))
        send([0x02, 1, type] + addressBytes(of: address) + [UInt8(data.count)] + data + [0xC4])
    }

    private func send(_ event: [UInt8]) {
        device.inject(([PacketType.event.rawValue, 0x3E, UInt8(event.count)] + event).rawSpan)
    }

    private func addressBytes(of address: DeviceAddress) -> [UInt8] {
        [address.isRandom ? 1 : 0] + (0..<6).map { UInt8(truncatingIfNeeded: address.value >> (8 * $0)) }
    }

    // MARK: Calls of the app

    private mutating func scan(_ choices: inout Choices) {
        let flags = choices.next()
        var options = ScanOptions()
        if flags & 1 != 0 { options.serviceUUIDs = ["180F"] }
        if flags & 2 != 0 { options.name = "ta" }
        options.isActive = flags & 4 == 0
        options.reportsDuplicates = flags & 8 != 0
        options.interval = .milliseconds(5 + Int(choices.next()))
        options.window = .milliseconds(5 + Int(choices.next()))
        let count = Int(choices.next())
        calls.begin { [adapter, options] in
            var seen = 0
            do throws(BLEError) {
                for try await advertisement in adapter.central.scan(options) {
                    require(advertisement.data.length <= 2 * 1650, "\(advertisement.data.length) bytes of data")
                    seen += 1
                    // The app ends the scan by leaving the loop.
                    if seen == count { return }
                }
            } catch {}
        }
    }

    private mutating func advertise(_ choices: inout Choices) {
        let flags = choices.next()
        if flags & 0xC0 == 0x40 { return advertiseTrain(&choices) }
        if flags & 0xC0 == 0x80 { return followTrain(&choices) }
        var configuration = AdvertisementConfiguration()
        configuration.isConnectable = flags & 1 == 0
        configuration.isScannable = flags & 2 == 0
        if flags & 4 != 0 { configuration.usesExtendedPDUs = flags & 8 != 0 }
        if flags & 0x10 != 0 { configuration.peer = heard[choices.next()] }
        if flags & 0x20 != 0 {
            configuration.address = DeviceAddress(0xC000_0000_0000 | UInt64(choices.next(below: 3)), isRandom: true)
        }
        configuration.interval = .milliseconds(18 + 4 * Int(choices.next()))
        let length = Int(choices.next())
        let data = choices.remaining()
        configuration.advertisingData = AdvertisingData(decoding: Array(data.prefix(length)))
        configuration.scanResponseData = AdvertisingData(decoding: Array(data.dropFirst(length)))
        calls.begin { [adapter, advertisements, configuration] in
            if let set = try? await adapter.peripheral.startAdvertising(configuration) { advertisements.add(set) }
        }
    }

    private mutating func stopAdvertisement(_ number: UInt8) {
        guard let set = advertisements.remove(number) else { return }
        calls.begin { if number & 0x80 == 0 { await set.stop() } }
    }

    private mutating func connect(_ choices: inout Choices) {
        let flags = choices.next()
        let addresses = (0...(flags & 3)).map { _ in heard[choices.next()] }
        let timeout: Duration? = flags & 4 == 0 ? .milliseconds(100 * (1 + Int(choices.next()))) : nil
        calls.begin { [adapter] in
            let peer = try? await adapter.central.connect(toAnyOf: addresses, timeout: timeout)
            guard let peer else { return }
            if flags & 8 != 0 { _ = try? await peer.pair() }
            if flags & 16 != 0 { await peer.disconnect() }
        }
    }

    private func changeBond(_ number: UInt8) async {
        let bonds = await adapter.bonds()
        guard !bonds.isEmpty else { return }
        let identity = bonds[Int(number >> 2) % bonds.count].identity
        if number & 3 == 0 {
            await adapter.setBondPrivileged(number & 4 != 0, for: identity)
        } else {
            await adapter.removeBond(identity)
        }
    }

    private func endLinks(_ number: UInt8) async {
        for link in await adapter.host.linkIdentifiers() { await adapter.host.beginDisconnecting(link) }
        if number & 1 != 0 {
            for link in await phoneAdapter.host.linkIdentifiers() { await phoneAdapter.host.beginDisconnecting(link) }
        }
    }

    // MARK: Peers and the controller

    /// Opens the tag's host again, possibly with another identity. It has no bonds then.
    private mutating func restartTag(_ choices: inout Choices) async {
        let flags = choices.next()
        await tagAdapter.close()
        let identity = DeviceAddress(0xC000_0000_1000 | UInt64(flags >> 4), isRandom: true)
        tag.comeBack()
        tagAdapter = await setUp {
            try await DiscoveryActions.openTag(
                tag,
                isPrivate: flags & 1 == 0,
                identity: flags & 2 == 0 ? nil : identity
            )
        }
    }

    private func changeController(_ number: UInt8) {
        switch number & 7 {
        case 0: device.vanish()
        case 1: device.failWithHardwareError()
        case 2: tag.vanish()
        case 3: tag.comeBack()
        case 4: world.conditions = RadioConditions(loss: 0.5)
        case 5: world.conditions = .perfect
        default: device.comeBack()
        }
    }

    private mutating func callFromPhone(_ choices: inout Choices) {
        let flags = choices.next()
        let address = heard[choices.next()]
        calls.begin { [phoneAdapter] in
            guard let peer = try? await phoneAdapter.central.connect(to: address, timeout: .seconds(3)) else { return }
            if flags & 1 != 0 { _ = try? await peer.pair() }
            if flags & 2 != 0 { await peer.disconnect() }
        }
    }
}

/// The advertisements that the app has started and not stopped.
final class AdvertisementList: Sendable {
    private let sets = Mutex<[AdvertisingSet]>([])

    func add(_ set: AdvertisingSet) {
        sets.withLock { $0.append(set) }
    }

    /// Removes an advertisement; nil if there is none.
    func remove(_ number: UInt8) -> AdvertisingSet? {
        sets.withLock { sets in sets.isEmpty ? nil : sets.remove(at: Int(number) % sets.count) }
    }

    func stopAll() async {
        let all = sets.withLock { sets in
            defer { sets = [] }
            return sets
        }
        for set in all { await set.stop() }
    }
}
