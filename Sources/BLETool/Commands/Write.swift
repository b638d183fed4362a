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
        if value?.isStandardInput == true {
            try peer.pairing.validate(
                inputHas: "the values",
                remedy: "give a value as an argument; or pair first with `ble pair`"
            )
        }
    }

    /// A write that the peer has received.
    private struct Written: Sendable {
        /// Nil if the user has named a handle.
        var uuid: BluetoothUUID?
        var handle: AttributeHandle
        /// The number of bytes.
        var count: Int
    }

    func run() async throws {
        let (characteristic, value) = (characteristic, value ?? .value(Array((text ?? "").utf8)))
        let kind: WriteKind =
            withoutResponse ? .withoutResponse : reliable ? .reliable : signed ? .signed : .withResponse
        // A signature takes the place of encryption.
        try await peer.withPeer(encryptsBondedLinks: !signed, inputHasData: value.isStandardInput) { peer in
            let (uuid, handle) = try await peer.attribute(characteristic)
            let count = try await Write.write(value, to: handle, of: peer, kind: kind)
            return Written(uuid: uuid, handle: handle, count: count)
        } show: { (written: Written) in
            if peer.options.output.json {
                try Output.standard.json([
                    "characteristic": JSON(written.uuid?.description),
                    "handle": JSON(Int(written.handle.rawValue)),
                    "written": .integer(written.count),
                ])
            } else {
                let place = written.uuid.map { "\($0.withName) at \(written.handle)" } ?? "\(written.handle)"
                let bytes = written.count == 1 ? "byte" : "bytes"
                try Output.standard.line("wrote \(written.count) \(bytes) to \(place)")
            }
        }
    }

    /// Writes one value, or all that standard input has.
    ///
    /// - Returns: the number of bytes.
    private static func write(
        _ value: WrittenValue,
        to handle: AttributeHandle,
        of peer: RemotePeripheral,
        kind: WriteKind
    ) async throws -> Int {
        switch value {
        case .value(let value):
            try await peer.write(value, to: handle, kind: kind)
            return value.count
        case .standardInput:
            // The next line may take longer than the link lasts.
            return try await peer.whileConnected {
                var count = 0
                for try await line in StandardInput.lines() {
                    let value = try [UInt8](argument: line)
                    try await peer.write(value, to: handle, kind: kind)
                    count += value.count
                }
                try Task.checkCancellation()
                return count
            }
        }
    }
}

/// The values to write.
enum WrittenValue: Sendable {
    case value([UInt8])
    /// Each line of standard input is a value.
    case standardInput

    var isStandardInput: Bool {
        if case .standardInput = self { true } else { false }
    }

    init(argument text: String) throws(ArgumentProblem) {
        self = text == "-" ? .standardInput : .value(try [UInt8](argument: text))
    }
}
