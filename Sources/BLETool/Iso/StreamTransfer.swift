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
/// Each SDU begins with the number of its part, four bytes, least significant first. The number ``endMark`` announces the
/// number of parts, as four bytes. It is repeated until the receiver closes the stream. Empty SDUs precede the first part,
/// because the receiver may set up its data path later than the sender. One SDU is sent in each SDU interval, also
/// if the controller takes them faster.
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
        var count: UInt32 = 0
        var byteCount = 0
        var rest: [UInt8] = []
        var pace = Pace(interval: stream.sduInterval)
        for _ in 0..<StreamTransfer.preambleLength {
            try await pace.wait()
            try await stream.send([])
        }
        while true {
            let bytes = try await input.next()
            try Task.checkCancellation()
            rest += bytes
            while rest.count >= partLength - 4 || bytes.isEmpty && !rest.isEmpty {
                let part = Array(rest.prefix(partLength - 4))
                rest.removeFirst(part.count)
                try await pace.wait()
                try await stream.send(StreamTransfer.bytes(count) + part)
                count += 1
                byteCount += part.count
            }
            if bytes.isEmpty { break }
        }
        do {
            for _ in 0..<StreamTransfer.endLimit {
                try await pace.wait()
                try await stream.send(StreamTransfer.bytes(StreamTransfer.endMark) + StreamTransfer.bytes(count))
            }
            throw ToolError.streamNotClosed
        } catch BLEError.disconnected(.controller(.remoteUserTerminatedConnection)) {
            // The receiver has the end.
        }
        try teller.sent(parts: Int(count), bytes: byteCount)
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

/// The parts of a file that a connected stream has delivered, in order.
private struct ReceivedParts {
    private(set) var count = 0
    private(set) var byteCount = 0
    /// The number of SDUs that the controller has reported as lost.
    private(set) var reportedLost = 0
    /// The lowest number of the next part.
    private var next: UInt32 = 0

    /// Takes an SDU, and writes its part.
    ///
    /// - Returns: the number of parts that were sent, if the SDU announces it.
    mutating func take(_ sdu: IsochronousSDU, _ output: ByteOutput) throws -> Int? {
        guard sdu.status == .valid else {
            reportedLost += 1
            return nil
        }
        guard let number = StreamTransfer.number(in: sdu.data, at: 0) else { return nil }
        if number == StreamTransfer.endMark { return StreamTransfer.number(in: sdu.data, at: 4).map { Int($0) } }
        guard number >= next else { return nil }
        next = number + 1
        count += 1
        byteCount += sdu.data.count - 4
        try output.write(Array(sdu.data.dropFirst(4)))
        return nil
    }
}

/// The times at which SDUs are sent: one in each interval.
struct Pace {
    let interval: Duration
    private var next = ContinuousClock.now

    init(interval: Duration) {
        self.interval = interval
    }

    /// Waits until the next SDU is to be sent. An SDU that is late does not delay the later ones.
    mutating func wait() async throws {
        next += interval
        try await Task.sleep(until: next, clock: .continuous)
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
