import BLEByteCoding
import BLECapture
import BLEHCI
import BLEHCITransport
import BLEL2CAP
import Foundation
import FuzzTargets

/// Writes the inputs for a target that captures contain, each into a separate file.
func writeSeeds(of target: FuzzTarget, from captures: ArraySlice<String>, to folder: String) throws {
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    for (number, path) in captures.enumerated() {
        var trace = SeedTrace(target: target)
        var reader = try CaptureFileReader(path: path)
        while let record = try reader.next() {
            if case .packet(let kind, let direction, let bytes) = record.content {
                trace.take([UInt8](copying: bytes), kind, direction)
            }
        }
        for (index, input) in trace.inputs.enumerated() {
            try Data(input).write(to: URL(fileURLWithPath: folder).appendingPathComponent("\(number)-\(index)"))
        }
    }
    var others = target.madeSeeds
    if target == .trace {
        others += try captures.map { try [UInt8](Data(contentsOf: URL(fileURLWithPath: $0)).prefix(3000)) }
    }
    if target == .capture {
        others += try captures.flatMap { try rewritten(capture: Data(contentsOf: URL(fileURLWithPath: $0))) }
    }
    for (index, input) in others.enumerated() {
        try Data(input).write(to: URL(fileURLWithPath: folder).appendingPathComponent("made-\(index)"))
    }
}

/// The beginning of a capture, unchanged and converted to the other formats.
private func rewritten(capture: Data) throws -> [[UInt8]] {
    let start = [UInt8](capture.prefix(3000))
    return [start]
        + [CaptureWriter.Format.btsnoopMonitor, .pcapng, .pcapngMonitor].map { format in
            PacketBuffer.bytes { buffer in
                var reader = CaptureReader()
                reader.append(start.rawSpan)
                var writer = CaptureWriter(format)
                writer.encodeHeader(into: &buffer)
                while (try? reader.advance()) == .record, let record = reader.record {
                    _ = writer.encode(record, into: &buffer)
                }
            }
        }
}

/// Extracts the inputs for a target from a capture, packet by packet.
private struct SeedTrace {
    /// The maximum number of packets in one script, and of inputs from one capture.
    private static let scriptLength = 40
    private static let limit = 200

    let target: FuzzTarget
    private var single: Set<[UInt8]> = []
    private var packets: [Script.Packet] = []
    /// The packets that each side has sent, as on a wire, up to the length of an input.
    private var streams: [Bool: [UInt8]] = [:]
    private var scripts: [[UInt8]] = []
    private var reassemblers: [Bool: Reassembler] = [:]

    init(target: FuzzTarget) {
        self.target = target
    }

    var inputs: [[UInt8]] {
        let last = packets.isEmpty ? [] : [Script(packets).octets]
        let single = single.union(streams.values)
        return Array((single.sorted { $0.lexicographicallyPrecedes($1) } + scripts + last).prefix(SeedTrace.limit))
    }

    mutating func take(_ bytes: [UInt8], _ kind: CapturedPacketKind, _ direction: CaptureDirection?) {
        let isFromHost = direction == .hostToController
        switch (target, kind) {
        case (.event, .event): single.insert(bytes)
        case (.advertising, .event): takeAdvertising(bytes)
        case (.stream, _): takeStream([kind.rawValue] + bytes, isFromHost)
        case (.acl, .acl) where bytes.count >= ACLHeader.length:
            // The choice of the target: the boundary flag.
            add(.init(choice: bytes[1] >> 4 & 0b11, octets: Array(bytes.dropFirst(ACLHeader.length))))
        case (.command, .command): takeCommand(bytes)
        case (.command, .event): takeReturnParameters(bytes)
        case (.controller, _) where isFromHost: add(.init(delay: 5, octets: [kind.rawValue] + bytes))
        case (.host, .event) where !isFromHost, (.host, .acl) where !isFromHost:
            add(.init(choice: 1, octets: [kind.rawValue] + bytes))
        case (_, .acl): takeFrames(bytes, isFromHost)
        default: break
        }
    }

    /// Takes the opcode and the parameters of a command.
    private mutating func takeCommand(_ bytes: [UInt8]) {
        guard bytes.count >= CommandHeader.length else { return }
        single.insert(Array(bytes.prefix(2)) + [0] + bytes.dropFirst(CommandHeader.length))
    }

    /// Takes the opcode and the return parameters of a command that has succeeded.
    private mutating func takeReturnParameters(_ bytes: [UInt8]) {
        guard bytes.count >= 6, bytes[0] == CommandComplete.code, bytes[5] == 0 else { return }
        single.insert(Array(bytes[3...4]) + [1] + bytes.dropFirst(6))
    }

    private mutating func takeStream(_ packet: [UInt8], _ isFromHost: Bool) {
        // The choice of the target: the sender of the stream, and pieces of 32 bytes.
        let stream = streams[isFromHost] ?? [62 | (isFromHost ? 1 : 0)]
        if stream.count < 2000 { streams[isFromHost] = stream + packet }
    }

    private mutating func takeAdvertising(_ bytes: [UInt8]) {
        guard let event = try? Event(decoding: bytes.rawSpan) else { return }
        if case .leAdvertisingReport(let event) = event {
            var reports = event.reports
            while let report = try? reports.next() { single.insert([UInt8](copying: report.data)) }
        } else if case .leExtendedAdvertisingReport(let event) = event {
            var reports = event.reports
            while let report = try? reports.next() { single.insert([UInt8](copying: report.data)) }
        }
    }

    private mutating func takeFrames(_ bytes: [UInt8], _ isFromHost: Bool) {
        guard let packet = try? ACLPacket(decoding: bytes.rawSpan) else { return }
        var found: [(ChannelIdentifier, [UInt8])] = []
        let isStart = packet.header.packetBoundaryFlag != .continuing
        _ = reassemblers[isFromHost, default: Reassembler()].receive(packet.payload, isStart: isStart) { frame in
            found.append((frame.channel, [UInt8](copying: frame.payload)))
        }
        for (channel, payload) in found { take(payload, of: channel) }
    }

    private mutating func take(_ payload: [UInt8], of channel: ChannelIdentifier) {
        switch (target, channel) {
        // The PDUs of both sides are mixed; each target ignores the PDUs of the other.
        case (.server, .attribute), (.client, .attribute): add(.init(choice: 0x17, octets: payload))
        case (.security, .securityManager): add(.init(choice: UInt8(packets.count % 2) | 0x0A, octets: payload))
        case (.signaling, .signaling): add(.init(octets: payload))
        case (.signaling, let channel) where channel.isDynamic: add(.init(choice: 1, octets: payload))
        default: break
        }
    }

    private mutating func add(_ packet: Script.Packet) {
        packets.append(packet)
        guard packets.count == SeedTrace.scriptLength else { return }
        scripts.append(Script(packets).octets)
        packets = []
    }
}
