import BLEHCITransport
import BLEProfiles
import BluetoothTesting

/// Prints the result of a replay, as text or as JSON.
struct ReplayReport {
    private let recording: PacketRecording
    private let isJSON: Bool

    init(_ recording: PacketRecording, isJSON: Bool) {
        self.recording = recording
        self.isJSON = isJSON
    }

    /// - Parameter count: number of packets that matched, to the controller and from it.
    func bringUp(_ count: Int, _ difference: ReplayDifference?) throws(OutputError) {
        guard isJSON else {
            try Output.standard.line("bring-up: \(count) packets as recorded")
            guard let difference else { return }
            for line in DifferenceReport(recording).lines(of: difference) { try Output.standard.line(line) }
            return
        }
        try Output.standard.json(
            .object([
                .init(key: "event", value: .string("bringUp")),
                .init(key: "packets", value: JSON(count)),
                .init(key: "same", value: .bool(difference == nil)),
            ])
        )
        guard let difference else { return }
        try Output.standard.json(json(difference.expected, difference.expected?.bytes, difference.sent, link: nil))
    }

    func link(_ replay: LinkReplay, isCentral: Bool) throws(OutputError) {
        let role = isCentral ? "central" : "peripheral"
        guard isJSON else {
            let peer = replay.link.peer.map { " with \($0)" } ?? ""
            let leftOut = replay.leftOutCount == 0 ? "" : ", \(replay.leftOutCount) of all left out"
            try Output.standard.line(
                "link \(replay.link.number)\(peer), as the \(role): "
                    + "\(replay.comparedCount) frames sent as recorded\(leftOut)"
            )
            guard let difference = replay.difference else { return }
            for line in DifferenceReport(recording).lines(of: difference, on: replay.link) {
                try Output.standard.line(line)
            }
            return
        }
        try Output.standard.json(
            .object([
                .init(key: "event", value: .string("link")),
                .init(key: "link", value: JSON(replay.link.number)),
                .init(key: "peer", value: replay.link.peer.map { .string("\($0)") } ?? nil),
                .init(key: "role", value: .string(role)),
                .init(key: "frames", value: JSON(replay.comparedCount)),
                .init(key: "leftOut", value: JSON(replay.leftOutCount)),
                .init(key: "same", value: .bool(replay.difference == nil)),
            ])
        )
        guard let difference = replay.difference else { return }
        let packet = difference.expected.map { recording.packets[$0.index] }
        try Output.standard.json(json(packet, difference.expected?.payload, difference.sent, link: replay.link.number))
    }

    /// - Parameters:
    ///   - packet: the expected packet, or the packet that ends the expected frame.
    ///   - expected: the bytes of the packet, or the payload of a link's frame.
    private func json(_ packet: PacketRecording.Packet?, _ expected: [UInt8]?, _ sent: [UInt8]?, link: Int?) -> JSON {
        .object([
            .init(key: "event", value: .string("difference")),
            .init(key: "link", value: JSON(link)),
            .init(key: "packet", value: JSON(packet?.number)),
            .init(key: "expected", value: expected.map { .string($0.hexadecimal) } ?? nil),
            .init(key: "sent", value: sent.map { .string($0.hexadecimal) } ?? nil),
            .init(key: "offset", value: JSON(DifferenceReport.offset(expected, sent))),
        ])
    }
}
