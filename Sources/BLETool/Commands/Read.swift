import ArgumentParser
import BLE
import BLEProfiles

struct Read: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "read",
        abstract: "Connect to a peer and read a value."
    )

    @OptionGroup var peer: PeerOptions

    @Argument(
        help: "The value to read: UUID, SERVICE/UUID or #HANDLE.",
        transform: { try CharacteristicSelector(argument: $0) }
    )
    var characteristic: CharacteristicSelector

    func run() async throws {
        let (uuid, handle, value) = try await peer.withPeer { [characteristic] peer in
            let (uuid, handle) = try await peer.attribute(characteristic)
            return (uuid, handle, try await peer.read(handle))
        }
        if peer.options.output.json {
            try Output.standard.json([
                "characteristic": JSON(uuid?.description),
                "handle": JSON(Int(handle.rawValue)),
                "value": JSON(value),
            ])
        } else {
            try Output.standard.line(readable(value))
        }
    }
}
