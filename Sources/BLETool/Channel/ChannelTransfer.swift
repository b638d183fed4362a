import BLE
import BLEProfiles
import BluetoothTypes
import Synchronization

/// A transfer of bytes between a channel and files.
final class ChannelTransfer: Sendable {
    private let channel: L2CAPChannel
    private let files: ChannelFiles
    private let closesAtEnd: Bool
    private let teller: ChannelTeller
    private let sent = Atomic(0)
    private let received = Atomic(0)

    init(_ channel: L2CAPChannel, _ files: ChannelFiles, closesAtEnd: Bool, _ teller: ChannelTeller) {
        self.channel = channel
        self.files = files
        self.closesAtEnd = closesAtEnd
        self.teller = teller
    }

    /// Transfers bytes in both directions until the channel ends. If this side closes it, waits until the controller
    /// has sent the last frames.
    func run() async throws {
        try teller.opened(channel, maximumWriteLength: await channel.maximumWriteLength)
        do {
            try await withThrowingTaskGroup(of: Bool.self) { group in
                group.addTask { try await self.receive() }
                group.addTask { try await self.send() }
                defer { group.cancelAll() }
                while let endsBoth = try await group.next(), !endsBoth {}
            }
        } catch {
            await uncancelled { await self.channel.close() }
            throw error
        }
        try teller.closed(
            sent: sent.load(ordering: .relaxed),
            received: received.load(ordering: .relaxed),
            "\(await channel.ending() ?? .byUs)"
        )
    }

    /// Returns whether the transfer ends with this direction.
    ///
    /// It does if the peer has closed the channel. If this side has closed it, ``send()`` ends later: when the
    /// controller has sent the last frames.
    private func receive() async throws -> Bool {
        for try await octets in channel {
            try files.output.write(octets)
            received.add(octets.count, ordering: .relaxed)
        }
        return await channel.ending() != .byUs
    }

    /// Returns false: the transfer does not end with this direction.
    private func send() async throws -> Bool {
        while true {
            let octets = try await files.input.next()
            if octets.isEmpty { break }
            do {
                try await channel.write(octets)
            } catch BLEError.channel(.ended(.byPeer)) {
                // The SDUs that the peer sent before it closed the channel remain to be read.
                return false
            }
            sent.add(octets.count, ordering: .relaxed)
        }
        try Task.checkCancellation()
        if closesAtEnd { await channel.finish() }
        return false
    }
}

/// Prints the events of a channel.
struct ChannelTeller: Sendable {
    let asJSON: Bool

    func listening(psm: UInt16, at address: DeviceAddress) throws {
        try tell(
            ["event": "ready", "psm": JSON(Int(psm)), "address": .string("\(address)")],
            "\(address) listens for a channel at PSM \(psm)"
        )
    }

    func opened(_ channel: L2CAPChannel, maximumWriteLength: Int) throws {
        try tell(
            [
                "event": "opened",
                "psm": JSON(Int(channel.psm)),
                "peer": .string("\(channel.peer)"),
                "peerMTU": .integer(maximumWriteLength),
            ],
            "channel with \(channel.peer)"
        )
    }

    func closed(sent: Int, received: Int, _ reason: String) throws {
        try tell(
            [
                "event": "closed",
                "sent": .integer(sent),
                "received": .integer(received),
                "reason": .string(reason),
            ],
            "\(sent) bytes sent, \(received) received; \(reason)"
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
