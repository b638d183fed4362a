import ArgumentParser
import BLE
import BluetoothTypes

struct Write: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "write",
        abstract: "Connect to a peer and write a value."
    )

    @OptionGroup var peer: PeerOptions

    @Argument(
        help: "What to write to: UUID, SERVICE/UUID or #HANDLE.",
        transform: { try CharacteristicSelector(argument: $0) }
    )
    var characteristic: CharacteristicSelector

    @Argument(
        help: ArgumentHelp("The value in hexadecimal digits.", valueName: "hex"),
        transform: { try [UInt8](argument: $0) }
    )
    var value: [UInt8]?

    @Option(help: ArgumentHelp("The value as text, sent in UTF-8.", valueName: "text"))
    var text: String?

    @Flag(help: "Do not ask the peer for a confirmation.")
    var withoutResponse = false

    @Flag(help: "Let the peer repeat the value before it takes effect.")
    var reliable = false

    func validate() throws {
        if (value == nil) == (text == nil) {
            throw ValidationError("Give the value either in hexadecimal digits or with --text")
        }
        if withoutResponse && reliable {
            throw ValidationError("--without-response and --reliable exclude each other")
        }
    }

    func run() async throws {
        let value = value ?? Array((text ?? "").utf8)
        let kind: WriteKind = withoutResponse ? .withoutResponse : reliable ? .reliable : .withResponse
        let (uuid, handle) = try await peer.withPeer { [characteristic] peer in
            let (uuid, handle) = try await peer.attribute(characteristic)
            try await peer.write(value, to: handle, kind: kind)
            return (uuid, handle)
        }
        if peer.options.output.json {
            try Output.standard.json([
                "characteristic": JSON(uuid?.description),
                "handle": JSON(Int(handle.rawValue)),
                "written": .integer(value.count),
            ])
        } else {
            let place = uuid.map { "\($0.withName) at \(handle)" } ?? "\(handle)"
            try Output.standard.line("wrote \(value.count) \(value.count == 1 ? "octet" : "octets") to \(place)")
        }
    }
}
