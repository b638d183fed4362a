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

    func run() async throws {
        let (uuid, handle, value, format) = try await peer.withPeer { [characteristic] peer in
            if case .handle(let handle) = characteristic {
                return (nil as BluetoothUUID?, handle, try await peer.read(handle), nil as PresentationFormat?)
            }
            let found = try await peer.characteristic(characteristic)
            let value = try await peer.read(found.valueHandle)
            return (found.uuid, found.valueHandle, value, try await peer.presentationFormat(of: found))
        }
        if peer.options.output.json {
            let members: [JSON.Member] = [
                .init(key: "characteristic", value: JSON(uuid?.description)),
                .init(key: "handle", value: JSON(Int(handle.rawValue))),
            ]
            try Output.standard.json(.object(members + .value(value, of: uuid, format: format)))
        } else {
            try Output.standard.line(readable(value, of: uuid, format: format))
        }
    }
}
