import ArgumentParser
import BLE
import BLEProfiles
import BluetoothTypes

/// The file of a transfer over a stream, and its direction.
struct StreamFileOptions: ParsableArguments {
    @Option(help: ArgumentHelp("The file to send.", valueName: "file"), completion: .file())
    var send: String?

    @Option(help: ArgumentHelp("The file for the received bytes.", valueName: "file"), completion: .file())
    var receive: String?

    @Option(
        name: .customLong("sdu"),
        help: ArgumentHelp("The length of each SDU, 8 to 4095 bytes.", valueName: "bytes")
    )
    var partLength = 100

    func validate() throws {
        guard (send == nil) != (receive == nil) else { throw ValidationError("give one of --send and --receive") }
        guard (8...4095).contains(partLength) else { throw ValidationError("--sdu is 8 to 4095 bytes") }
    }

    /// - Throws: ``FileError``, or `CancellationError` at once if the task is cancelled: a named pipe may have no other
    ///   end yet.
    func openFiles() async throws -> StreamFile {
        if let send { return .send(try await ByteInput.opened(send)) }
        return .receive(try await ByteOutput.opened(receive))
    }
}

enum StreamFile: Sendable {
    case send(ByteInput)
    case receive(ByteOutput)
}

/// A transfer of a file over a stream.
///
/// Each SDU begins with the number of its part, four bytes, least significant first. The number ``endMark`` announces
/// the number of parts, as four bytes. It is repeated until the receiver closes the stream. Empty SDUs precede the
/// first part, because the receiver may set up its data path later than the sender. One SDU is sent in each SDU
/// interval, also if the controller takes them faster.
struct StreamTransfer {
    static let endMark: UInt32 = 0xFFFF_FFFF
    /// The number of empty SDUs before the first part.
    private static let preambleLength = 10
    /// How often the end is announced at most.
    private static let endLimit = 1000

    private let stream: IsochronousStream
    private let teller: StreamTeller
    private let partLength: Int
    private let patience: Duration

    /// - Parameters:
    ///   - partLength: the length of each SDU that is sent.
    ///   - patience: how long to wait for the first SDU of a stream that does not receive, according to the controller.
    init(
        _ stream: IsochronousStream,
        _ teller: StreamTeller,
        partLength: Int,
        patience: Duration = .seconds(5)
    ) {
        self.stream = stream
        self.teller = teller
        self.partLength = partLength
        self.patience = patience
    }

    func run(_ file: StreamFile) async throws {
        try teller.opened(stream)
        switch file {
        case .send(let input): try await send(input)
        case .receive(let output): try await receive(output)
        }
    }

    private func send(_ input: ByteInput) async throws {
        guard stream.canSend else { throw ToolError.sameDirections }
        var pace = Pace(interval: stream.sduInterval)
        for _ in 0..<StreamTransfer.preambleLength {
            try await pace.wait()
            try await stream.send([])
        }
        var parts = FileParts(input, partLength: partLength)
        while let part = try await parts.next() {
            try await pace.wait()
            try await stream.send(part)
        }
        let end = StreamTransfer.bytes(StreamTransfer.endMark) + StreamTransfer.bytes(UInt32(parts.count))
        do {
            for _ in 0..<StreamTransfer.endLimit {
                try await pace.wait()
                try await stream.send(end)
            }
            throw ToolError.streamNotClosed
        } catch BLEError.disconnected(.controller(.remoteUserTerminatedConnection)) {
            // The receiver has the end.
        }
        try teller.sent(parts: parts.count, bytes: parts.byteCount)
    }

    private func receive(_ output: ByteOutput) async throws {
        var parts = ReceivedParts()
        var sdus = stream.makeAsyncIterator()
        var next = try await firstSDU()
        while let sdu = next {
            if let count = try parts.take(sdu, output) {
                await stream.close()
                return try teller.received(
                    parts: parts.count,
                    bytes: parts.byteCount,
                    lost: count - parts.count,
                    reportedLost: parts.reportedLost
                )
            }
            next = try await sdus.next()
        }
    }

    /// Waits for the first SDU.
    ///
    /// Some controllers of peripherals report the directions of a stream in the wrong order, but deliver the SDUs. So a
    /// stream that does not receive according to the controller gets some time.
    private func firstSDU() async throws -> IsochronousSDU? {
        let stream = stream
        let first = try await within(stream.canReceive ? nil : patience) { () async throws -> IsochronousSDU? in
            var sdus = stream.makeAsyncIterator()
            return try await sdus.next()
        }
        guard let first else { throw ToolError.sameDirections }
        return first
    }

    static func bytes(_ number: UInt32) -> [UInt8] {
        (0..<4).map { UInt8(truncatingIfNeeded: number >> (8 * UInt32($0))) }
    }

    static func number(in bytes: [UInt8], at offset: Int) -> UInt32? {
        guard bytes.count >= offset + 4 else { return nil }
        return (0..<4).reduce(0) { $0 | UInt32(bytes[offset + $1]) << (8 * UInt32($1)) }
    }
}

/// Prints the events of a transfer.
struct StreamTeller: Sendable {
    let asJSON: Bool

    func ready(at address: DeviceAddress) throws {
        try tell(["event": "ready", "address": .string("\(address)")], "\(address) listens for a stream")
    }

    func broadcasts(at address: DeviceAddress, _ parameters: BroadcastGroupParameters) throws {
        let isEncrypted = parameters.code != nil
        try tell(
            ["event": "ready", "address": .string("\(address)"), "isEncrypted": .bool(isEncrypted)],
            "\(address) broadcasts\(isEncrypted ? " with a code" : "")"
        )
    }

    func opened(_ stream: IsochronousStream) throws {
        let milliseconds = Double(stream.interval / .microseconds(1)) / 1000
        try tell(
            ["event": "opened", "canSend": .bool(stream.canSend), "canReceive": .bool(stream.canReceive)],
            "stream with an event each \(milliseconds) ms"
        )
    }

    func sent(parts: Int, bytes: Int) throws {
        try tell(
            ["event": "sent", "sdus": .integer(parts), "bytes": .integer(bytes)],
            "\(bytes) bytes sent in \(parts) SDUs"
        )
    }

    func received(parts: Int, bytes: Int, lost: Int, reportedLost: Int) throws {
        try tell(
            [
                "event": "received",
                "sdus": .integer(parts),
                "bytes": .integer(bytes),
                "lost": .integer(lost),
                "reportedLost": .integer(reportedLost),
            ],
            "\(bytes) bytes received in \(parts) SDUs; \(lost) lost"
        )
    }

    private func tell(_ json: JSON, _ line: String) throws {
        if asJSON {
            try Output.standard.json(json)
        } else {
            Output.complain(line)
        }
    }
}
