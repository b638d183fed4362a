import BLE
import BLEProfiles
import BluetoothTypes

/// Shows a session of Channel Sounding.
struct SoundingTeller: Sendable {
    let asJSON: Bool

    func ready(at address: DeviceAddress) throws {
        try tell(["event": "ready", "address": .string("\(address)")], "\(address) listens")
    }

    func tell(own capabilities: ChannelSoundingCapabilities) throws {
        try tell("ownCapabilities", "own controller", capabilities)
    }

    /// Shows the events of a session until its end.
    func tell(_ events: ChannelSoundingEvents) async throws {
        for try await event in events {
            switch event {
            case .started(let procedures): try tell(procedures)
            case .subevent(let subevent): try tell(subevent)
            case .eventsDropped(let count):
                try tell(["event": "eventsDropped", "count": .integer(count)], "\(count) events were dropped")
            }
        }
        try Task.checkCancellation()
    }

    private func tell(_ event: String, _ whose: String, _ capabilities: ChannelSoundingCapabilities) throws {
        let roles = [ChannelSoundingRole.initiator, .reflector].filter { capabilities.rolesSupported.contains($0) }
        let counts = (
            Int(capabilities.numConfigSupported), Int(capabilities.numAntennasSupported),
            Int(capabilities.maxAntennaPathsSupported)
        )
        try tell(
            [
                "event": .string(event),
                "roles": .array(roles.map { .string($0.name) }),
                "configurations": .integer(counts.0),
                "antennas": .integer(counts.1),
                "antennaPaths": .integer(counts.2),
                "mode3": .bool(capabilities.modesSupported & 1 == 1),
            ],
            "\(whose): \(roles.map(\.name).joined(separator: " and ")), configurations: \(counts.0), "
                + "antennas: \(counts.1), antenna paths: \(counts.2)"
        )
    }

    private func tell(_ procedures: ChannelSoundingProcedures) throws {
        if let peer = procedures.peerCapabilities { try tell("peerCapabilities", "peer's controller", peer) }
        let (role, mode) = (procedures.configuration.role.name, Int(procedures.configuration.mainMode.rawValue))
        try tell(
            [
                "event": "started",
                "role": .string(role),
                "mode": .integer(mode),
                "procedures": .integer(Int(procedures.procedureCount)),
                "interval": .integer(Int(procedures.procedureInterval)),
                "subeventMicroseconds": .integer(Int(procedures.subeventLength)),
                "transmitPower": JSON(procedures.transmitPower),
            ],
            "started as the \(role): mode \(mode), "
                + (procedures.procedureCount == 0
                    ? "procedures without end" : "\(procedures.procedureCount) procedures")
                + ", one in \(procedures.procedureInterval) connection events"
        )
    }

    private func tell(_ subevent: ChannelSoundingSubevent) throws {
        let (procedure, outcome) = (Int(subevent.procedureCounter), subevent.progress.outcome)
        var steps: [JSON] = []
        var lines = ["procedure \(procedure): \(subevent.stepCount) steps, \(outcome)"]
        do {
            try subevent.forEachStep { step in
                let step = try SoundingStep(step, antennaPaths: subevent.antennaPaths)
                steps.append(step.json)
                lines.append("  \(step.text)")
            }
        } catch {
            lines.append("  the controller's data cannot be decoded: \(error)")
        }
        try tell(
            [
                "event": "subevent",
                "procedure": .integer(procedure),
                "connectionEvent": .integer(Int(subevent.startConnectionEvent)),
                "outcome": .string(outcome),
                "antennaPaths": .integer(Int(subevent.antennaPaths)),
                "referencePower": JSON(subevent.referencePower),
                "truncated": .bool(subevent.isTruncated),
                "steps": .array(steps),
            ],
            lines.joined(separator: "\n")
        )
    }

    private func tell(_ json: JSON, _ text: String) throws {
        if asJSON {
            try Output.standard.json(json)
        } else {
            try Output.standard.line(text)
        }
    }
}

/// A step with the values that a user sees.
private struct SoundingStep {
    let mode: Int
    let channel: Int
    let packet: ChannelSoundingPacket?
    let tones: [ChannelSoundingTone]

    init(_ step: borrowing ChannelSoundingStep, antennaPaths: UInt8) throws {
        mode = Int(step.mode.rawValue)
        channel = Int(step.channel)
        packet = try step.packet(antennaPaths: antennaPaths)
        let found = try step.tones(antennaPaths: antennaPaths)
        var tones: [ChannelSoundingTone] = []
        for index in 0..<found.count {
            if let tone = found[index] { tones.append(tone) }
        }
        self.tones = tones
    }

    var json: JSON {
        var members: [JSON.Member] = [
            .init(key: "mode", value: .integer(mode)), .init(key: "channel", value: .integer(channel)),
        ]
        if let packet {
            members += [
                .init(key: "quality", value: .integer(Int(packet.quality))),
                .init(key: "rssi", value: JSON(packet.rssi.map { Int($0) })),
                .init(key: "frequencyOffset", value: JSON(packet.frequencyOffset.map { Int($0) })),
                .init(key: "timeDifference", value: JSON(packet.timeDifference.map { Int($0) })),
            ]
        }
        if !tones.isEmpty {
            let values = tones.map {
                [
                    "inPhase": .integer(Int($0.inPhase)), "quadrature": .integer(Int($0.quadrature)),
                    "quality": .integer(Int($0.quality)),
                ] as JSON
            }
            members.append(.init(key: "tones", value: .array(values)))
        }
        return .object(members)
    }

    var text: String {
        var parts = ["mode \(mode), channel \(channel)"]
        if let packet {
            if let rssi = packet.rssi { parts.append("\(rssi) dBm") }
            if let offset = packet.frequencyOffset { parts.append("frequency offset \(Double(offset) / 100) ppm") }
            if let time = packet.timeDifference { parts.append("time difference \(Double(time) / 2) ns") }
        }
        if !tones.isEmpty {
            let numbers = tones.map { "\($0.inPhase)\($0.quadrature < 0 ? "" : "+")\($0.quadrature)i" }
            parts.append("tones \(numbers.joined(separator: " "))")
        }
        return parts.joined(separator: "; ")
    }
}

extension ChannelSoundingRole {
    fileprivate var name: String { self == .initiator ? "initiator" : "reflector" }
}

extension ChannelSoundingProgress {
    /// How the subevent ended.
    fileprivate var outcome: String {
        switch subeventDoneStatus {
        case .complete: procedureDoneStatus == .aborted ? "complete, the procedure was aborted" : "complete"
        case .aborted: "aborted"
        default: "incomplete"
        }
    }
}
