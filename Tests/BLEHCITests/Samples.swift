import BLEByteCoding
import BLEHCI
import BluetoothTypes
import Testing

/// A command and its packet, from a source outside this module.
struct CommandSample: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let opcode: HCIOpcode
    let packet: [UInt8]
    let encoded: @Sendable () -> [UInt8]
    /// Decodes parameters. Returns whether they are the command's; throws the decoder's error.
    let isDecoded: @Sendable ([UInt8]) throws(PacketDecodingError) -> Bool
    /// Decodes parameters and encodes them again.
    let reencoded: @Sendable ([UInt8]) throws(PacketDecodingError) -> [UInt8]

    init<C: Command & Equatable>(_ command: C, _ packet: String) {
        testDescription = "\(C.self)"
        opcode = C.opcode
        self.packet = bytes(packet)
        encoded = { PacketBuffer.bytes { command.encodePacket(into: &$0) } }
        isDecoded = { (bytes) throws(PacketDecodingError) in
            try CommandPacket(decoding: bytes.span.bytes).decode(C.self) == command
        }
        reencoded = { (bytes) throws(PacketDecodingError) in
            let command = try C(decoding: bytes.span.bytes)
            return PacketBuffer.bytes { command.encode(into: &$0) }
        }
    }

    static let all =
        controllerCommandSamples + leControllerCommandSamples + leAdvertisingCommandSamples
        + leConnectionCommandSamples + channelSoundingCommandSamples + periodicResponsesCommandSamples
        + leIsochronousCommandSamples
}

/// An event of fixed length and its packet, from a source outside this module.
struct EventSample: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let packet: [UInt8]
    let encoded: @Sendable () -> [UInt8]
    /// Decodes parameters. Returns whether they are the event's.
    let isDecoded: @Sendable ([UInt8]) throws(PacketDecodingError) -> Bool
    /// The number of bytes before the parameters.
    let headerLength: Int

    init<E: EventParameters & Equatable & Sendable>(_ event: E, _ packet: String) {
        testDescription = "\(E.self)"
        self.packet = bytes(packet)
        headerLength = event is any LEEventParameters ? 3 : 2
        encoded = { PacketBuffer.bytes { event.encodePacket(into: &$0) } }
        isDecoded = { (parameters) throws(PacketDecodingError) in
            try E(decoding: parameters.span.bytes) == event
        }
    }
}

/// A command's return parameters and its Command Complete packet, from a source outside this module.
struct ReturnParametersSample: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let packet: [UInt8]
    let encoded: @Sendable () -> [UInt8]
    /// Decodes a packet. Returns whether it has the expected parameters; throws the decoder's error.
    let isDecoded: @Sendable ([UInt8]) throws(PacketDecodingError) -> Bool
    /// The error that a packet returns.
    let error: @Sendable ([UInt8]) throws(PacketDecodingError) -> HCIErrorCode?
    /// Encodes the event of a command for a connection that is disallowed.
    let refusal: @Sendable (ConnectionHandle?) -> [UInt8]
    /// Whether the return parameters begin with a connection handle.
    let beginsWithHandle: Bool

    init<C: Command>(
        _ command: C.Type,
        returning value: C.ReturnParameters,
        _ packet: String
    ) where C.ReturnParameters: Equatable {
        testDescription = "\(C.self)"
        self.packet = bytes(packet)
        encoded = {
            PacketBuffer.bytes { CommandComplete.encodePacket(answering: C.self, with: .success(value), into: &$0) }
        }
        isDecoded = { (packet) throws(PacketDecodingError) in
            try commandComplete(packet, C.self) == .success(value)
        }
        error = { (packet) throws(PacketDecodingError) in
            guard case .failure(let error) = try commandComplete(packet, C.self) else { return nil }
            return error
        }
        refusal = { handle in
            PacketBuffer.bytes {
                CommandComplete.encodePacket(
                    answering: C.self,
                    with: .failure(.commandDisallowed),
                    connectionHandle: handle,
                    into: &$0
                )
            }
        }
        beginsWithHandle = Mirror(reflecting: value).children.first?.value is ConnectionHandle
    }
}

/// Decodes a Command Complete packet for one command.
func commandComplete<C: Command>(
    _ packet: [UInt8],
    _ command: C.Type
) throws(PacketDecodingError) -> Result<C.ReturnParameters, HCIErrorCode> {
    let event = try Event(decoding: packet.span.bytes)
    guard case .commandComplete(let complete) = event else { throw .invalidValue(0, field: "no Command Complete") }
    return try complete.decode(C.self)
}

/// The bytes that hexadecimal digits represent; records a failure if they are invalid.
func bytes(_ hexadecimal: String) -> [UInt8] {
    guard let bytes = [UInt8](hexadecimal: hexadecimal) else {
        Issue.record("not hexadecimal: \(hexadecimal)")
        return []
    }
    return bytes
}

/// The bytes with one bit flipped, for each of their bits.
func bitFlips(of bytes: [UInt8]) -> [[UInt8]] {
    (0..<bytes.count * 8).map { bit in
        var flipped = bytes
        flipped[bit / 8] ^= 1 << UInt8(bit % 8)
        return flipped
    }
}

/// Iterates over everything that an event packet lends, and encodes the event again.
func walk(_ packet: [UInt8]) throws(PacketDecodingError) -> [UInt8] {
    let event = try Event(decoding: packet.span.bytes)
    switch event {
    case .leAdvertisingReport(let event):
        var reports = event.reports
        while let report = try reports.next() { _ = report.data.byteCount }
    case .leExtendedAdvertisingReport(let event):
        var reports = event.reports
        while let report = try reports.next() { _ = report.data.byteCount }
    case .leDirectedAdvertisingReport(let event):
        var reports = event.reports
        while reports.next() != nil {}
    case .lePeriodicAdvertisingResponseReport(let event):
        var responses = event.responses
        while let response = try responses.next() { _ = response.data.byteCount }
    case .numberOfCompletedPackets(let event):
        var completions = event.completions
        while completions.next() != nil {}
    case .leCSSubeventResult(let event):
        var steps = event.steps
        while let step = try steps.next() { _ = step.data.byteCount }
    case .leCSSubeventResultContinue(let event):
        var steps = event.steps
        while let step = try steps.next() { _ = step.data.byteCount }
    default:
        break
    }
    return PacketBuffer.bytes { event.encodePacket(into: &$0) }
}
