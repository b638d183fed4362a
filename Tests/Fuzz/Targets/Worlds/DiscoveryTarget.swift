import BLE
import BLEHCI
import BluetoothHost
import BluetoothTesting
import BluetoothTypes

/// Fuzzes the Generic Access Profile of a host: scans, advertisements, connection attempts and private addresses.
///
/// The host is in a world with a tag that advertises and may be bonded to it, a phone that connects to it, and an
/// observer that hears everything. The app scans, advertises and connects at the same time. Its controller also sends
/// packets of the script, above all advertising reports.
enum DiscoveryFuzzing {
    /// - Parameter script: the first packet selects the controllers and the settings. The choice of each other packet
    ///   selects an action, and its bytes are the parameters. The delay, in units of 20 ms, passes before it.
    static func run(_ script: Script) {
        guard let first = script.packets.first else { return }
        let setup = DiscoverySetup(first)
        runWorld { world in
            let device = world.device("host", configure: setup.configure)
            let tag = world.device("tag", configure: setup.configureTag)
            let phone = world.device("phone")
            let adapter = try await device.openAdapter(setup.configure)
            let observer = try await world.device("observer").openAdapter()
            let heard = HeardAddresses()
            let observation = Task(executorPreference: world.taskExecutor) {
                await heard.observe(observer)
            }
            if setup.isPrivate { heard.forbid(try await adapter.information.identityAddress) }
            var actions = try await DiscoveryActions(
                world: world,
                device: device,
                adapter: adapter,
                tag: tag,
                phone: phone,
                heard: heard,
                setup: setup
            )
            if setup.isBonded { try await actions.bond() }
            for packet in script.packets.dropFirst() {
                if packet.delay > 0 { try await world.sleep(for: .milliseconds(Int(packet.delay) * 20)) }
                await actions.perform(packet)
                await requireConsistency(of: adapter)
            }
            await actions.end()
            observation.cancel()
            await observation.value
            // What ended calls have left behind is cleaned up on the loop.
            try await world.sleep(for: .milliseconds(1))
            let held = await adapter.host.inspect()
            require(held.scans == 0, "\(held.scans) scans without a caller")
            require(held.advertisements == 0, "\(held.advertisements) advertisements without a caller")
            // A packet of the script may be a refusal.
            let isInjected = script.packets.dropFirst().contains(where: DiscoveryActions.isInjected)
            let unremoved = held.unremovedAdvertisingSets
            require(isInjected || unremoved == 0, "\(unremoved) advertising sets that were not removed")
            require(held.synchronizations == 0, "\(held.synchronizations) synchronizations without a caller")
            require(held.subeventTrains == 0, "\(held.subeventTrains) trains without a caller")
            require(held.connectionAttempts == 0, "\(held.connectionAttempts) connection attempts without a caller")
            require(held.calls == 0, "\(held.calls) calls without a caller")
            await closeCompletely(adapter)
            await closeCompletely(observer)
        }
    }
}

/// The settings of a run.
struct DiscoverySetup: Sendable {
    let isPrivate: Bool
    let isBonded: Bool
    private let usesExtendedCommands: Bool
    private let usesNetworkPrivacy: Bool
    private let kind: UInt8
    private let tagKind: UInt8
    private let listSize: UInt8
    private let setCount: UInt8
    private let timeout: Duration

    init(_ packet: Script.Packet) {
        var choices = Choices(packet.octets)
        isPrivate = packet.choice & 1 != 0
        isBonded = packet.choice & 2 != 0
        usesExtendedCommands = packet.choice & 4 == 0
        usesNetworkPrivacy = packet.choice & 8 != 0
        kind = packet.choice >> 4
        tagKind = packet.choice >> 6
        listSize = choices.next(below: 4)
        setCount = 1 + choices.next(below: 3)
        timeout = .seconds(1 + Int(choices.next(below: 30)))
    }

    func configure(_ configuration: inout ControllerConfiguration) {
        configuration.features = ControllerFeatures.features(kind)
        configuration.resolvingListSize = listSize
        configuration.filterAcceptListSize = 1 + listSize
        configuration.advertisingSetCount = setCount
    }

    func configureTag(_ configuration: inout ControllerConfiguration) {
        configuration.features = ControllerFeatures.features(tagKind)
    }

    func configure(_ configuration: inout Adapter.Configuration) {
        configuration.usesPrivateAddresses = isPrivate
        configuration.usesNetworkPrivacy = usesNetworkPrivacy
        configuration.privateAddressTimeout = timeout
        configuration.usesExtendedCommands = usesExtendedCommands
        configuration.pairingDelegate = Consent()
        configuration.scanSilenceTimeout = .seconds(3)
    }
}
