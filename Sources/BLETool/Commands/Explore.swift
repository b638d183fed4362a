import ArgumentParser
import BLE
import BLEATT
import BLEProfiles

struct Explore: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "explore",
        abstract: "Connect to a peer and show all services, characteristics and values."
    )

    @OptionGroup var peer: PeerOptions

    @Option(
        help: ArgumentHelp(
            "How long the exploration may take once the peer is connected; 10min by default.",
            valueName: "s"
        ),
        transform: { try Seconds(argument: $0) }
    )
    var limit = Seconds(.seconds(600))

    func run() async throws {
        try await peer.withPeerAsItIs { [limit] peer in
            try await Explore.within(limit) { try await Exploration(of: peer) }
        } show: { (exploration: Exploration) in
            if peer.options.output.json {
                try Output.standard.json(exploration.json)
            } else {
                for line in exploration.tree { try Output.standard.line(line) }
            }
        }
    }

    /// Runs `body`, and cancels it if it has not ended in time: a peer may answer each of its requests late.
    private static func within<Value: Sendable>(
        _ limit: Seconds,
        _ body: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        try await withThrowingTaskGroup(of: Value?.self) { group in
            group.addTask { try await body() }
            group.addTask {
                try await Task.sleep(for: limit.duration)
                return nil
            }
            defer { group.cancelAll() }
            guard let value = try await group.next() ?? nil else { throw ToolError.unexplored(limit) }
            return value
        }
    }
}

extension Exploration {
    /// Discovers all attributes and reads those that can be read.
    init(of peer: RemotePeripheral) async throws {
        address = peer.address
        let discovered = try await peer.discoverAll()
        // By now the MTU has been exchanged, which is the first thing on each link.
        mtu = await peer.mtu
        services = []
        enhancedBearerMTUs = []
        for service in discovered {
            services.append(
                Service(
                    uuid: service.uuid,
                    isPrimary: service.isPrimary,
                    handle: service.handle,
                    endHandle: service.endHandle,
                    includes: service.includedServices.map(\.handle),
                    characteristics: try await Exploration.read(service.characteristics, of: peer)
                )
            )
        }
        // They are opened while the values are read.
        enhancedBearerMTUs = try await peer.linkInformation.enhancedBearerMTUs
    }

    /// Reads the values of characteristics: one after another, or at the same time if the link has enhanced bearers.
    private static func read(
        _ characteristics: [RemoteCharacteristic],
        of peer: RemotePeripheral
    ) async throws -> [Characteristic] {
        if try await peer.linkInformation.enhancedBearerMTUs.isEmpty {
            var found: [Characteristic] = []
            for characteristic in characteristics { found.append(try await Characteristic(characteristic, of: peer)) }
            return found
        }
        return try await withThrowingTaskGroup(of: (index: Int, value: Characteristic).self) { group in
            for (index, characteristic) in characteristics.enumerated() {
                group.addTask { (index, try await Characteristic(characteristic, of: peer)) }
            }
            var found: [(index: Int, value: Characteristic)] = []
            for try await characteristic in group { found.append(characteristic) }
            return found.sorted { $0.index < $1.index }.map(\.value)
        }
    }
}

extension Exploration.Characteristic {
    fileprivate init(_ characteristic: RemoteCharacteristic, of peer: RemotePeripheral) async throws {
        uuid = characteristic.uuid
        handle = characteristic.handle
        valueHandle = characteristic.valueHandle
        properties = CharacteristicProperty.all(in: characteristic.properties.rawValue)
        if characteristic.properties.contains(.read) {
            value = try await Exploration.Reading(characteristic.valueHandle, of: peer)
        }
        descriptors = []
        for descriptor in characteristic.descriptors {
            let value = try await Exploration.Reading(descriptor.handle, of: peer)
            descriptors.append(
                Exploration.Descriptor(uuid: descriptor.uuid, handle: descriptor.handle, value: value)
            )
        }
    }
}

extension Exploration.Reading {
    /// A refusal is a result; any other error ends the exploration.
    fileprivate init(_ handle: AttributeHandle, of peer: RemotePeripheral) async throws {
        do throws(BLEError) {
            self = .value(try await peer.read(handle))
        } catch .attribute(let error, _) {
            self = .failed(error)
        } catch {
            throw error
        }
    }
}
