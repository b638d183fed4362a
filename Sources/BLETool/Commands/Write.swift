import ArgumentParser
import BLE
import BLEProfiles
import BluetoothTypes

struct Write: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "write",
        abstract: "Connect to a peer and write a value."
    )

    @OptionGroup var peer: PeerOptions

    @Argument(
        help: "The value to write: UUID, SERVICE/UUID or #HANDLE.",
        transform: { try CharacteristicSelector(argument: $0) }
    )
    var characteristic: CharacteristicSelector

    @Argument(
        help: ArgumentHelp(
            "The value in hexadecimal digits; - reads values from standard input, one on each line, and writes them in order.",
            valueName: "hex"
        ),
        transform: { try WrittenValue(argument: $0) }
    )
    var value: WrittenValue?

    @Option(help: ArgumentHelp("The value as text, sent in UTF-8.", valueName: "text"))
    var text: String?

    @Flag(help: "Do not ask the peer for a confirmation.")
    var withoutResponse = false

    @Flag(help: "Verify the value that the peer echoes before it takes effect.")
    var reliable = false

    @Flag(
        help: "Sign the value for a bonded peer, over a link that is not encrypted, and do not ask for a confirmation."
    )
    var signed = false

    func validate() throws {
        if [withoutResponse, reliable, signed].filter({ $0 }).count > 1 {
            throw ValidationError("--without-response, --reliable and --signed exclude each other")
        }
        if (value == nil) == (text == nil) {
            throw ValidationError("Give the value either in hexadecimal digits or with --text")
        }
    }

    func run() async throws {
        let value = value ?? .value(Array((text ?? "").utf8))
        let kind: WriteKind =
            withoutResponse ? .withoutResponse : reliable ? .reliable : signed ? .signed : .withResponse
        // A signature takes the place of encryption.
        let (uuid, handle, count) = try await peer.withPeer(encryptsBondedLinks: !signed) { [characteristic] peer in
            let (uuid, handle) = try await peer.attribute(characteristic)
            var count = 0
            switch value {
            case .value(let value):
                try await peer.write(value, to: handle, kind: kind)
                count = value.count
            case .standardInput:
                for try await line in StandardInput.lines() {
                    let value = try [UInt8](argument: line)
                    try await peer.write(value, to: handle, kind: kind)
                    count += value.count
                }
                try Task.checkCancellation()
            }
            return (uuid, handle, count)
        }
        if peer.options.output.json {
            try Output.standard.json([
                "characteristic": JSON(uuid?.description),
                "handle": JSON(Int(handle.rawValue)),
                "written": .integer(count),
            ])
        } else {
            let place = uuid.map { "\($0.withName) at \(handle)" } ?? "\(handle)"
            try Output.standard.line("wrote \(count) \(count == 1 ? "byte" : "bytes") to \(place)")
        }
    }
}

/// The values to write.
enum WrittenValue: Sendable {
    case value([UInt8])
    /// Each line of standard input is a value.
    case standardInput

    init(argument text: String) throws(ArgumentProblem) {
        self = text == "-" ? .standardInput : .value(try [UInt8](argument: text))
    }
}
