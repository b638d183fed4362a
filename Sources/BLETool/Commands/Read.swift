import ArgumentParser
import BLE
import BLEProfiles
import BluetoothSensors
import BluetoothTypes

struct Read: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "read",
        abstract: "Connect to a peer and read a value.",
        discussion: """
            The value is shown in hexadecimal digits. If its format is known from its UUID or from a Characteristic \
            Presentation Format descriptor, the meaning follows.
            """
    )

    @OptionGroup var peer: PeerOptions

    @Argument(
        help: "The value to read: UUID, SERVICE/UUID or #HANDLE.",
        transform: { try CharacteristicSelector(argument: $0) }
    )
    var characteristic: CharacteristicSelector

    /// A value that was read.
    private struct Reading: Sendable {
        /// Nil if the user has named a handle.
        var uuid: BluetoothUUID?
        var handle: AttributeHandle
        var value: [UInt8]
        var format: PresentationFormat?
    }

    func run() async throws {
        let characteristic = characteristic
        try await peer.withPeer { peer in
            try await Read.read(characteristic, of: peer)
        } show: { (reading: Reading) in
            if peer.options.output.json {
                let members: [JSON.Member] = [
                    .init(key: "characteristic", value: JSON(reading.uuid?.description)),
                    .init(key: "handle", value: JSON(Int(reading.handle.rawValue))),
                ]
                try Output.standard.json(
                    .object(members + .value(reading.value, of: reading.uuid, format: reading.format))
                )
            } else {
                try Output.standard.line(readable(reading.value, of: reading.uuid, format: reading.format))
            }
        }
    }

    private static func read(
        _ characteristic: CharacteristicSelector,
        of peer: RemotePeripheral
    ) async throws -> Reading {
        if case .handle(let handle) = characteristic {
            return Reading(handle: handle, value: try await peer.read(handle))
        }
        let found = try await peer.characteristic(characteristic)
        let value = try await peer.read(found.valueHandle)
        let format = try await peer.presentationFormat(of: found)
        return Reading(uuid: found.uuid, handle: found.valueHandle, value: value, format: format)
    }
}
