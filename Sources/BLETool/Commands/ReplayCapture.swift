import ArgumentParser
import BLE
import BluetoothTesting
import HCITransport

struct ReplayCapture: AsyncParsableCommand {
    /// In whose place the host is put.
    enum Role: String, ExpressibleByArgument, CaseIterable {
        case central
        case peripheral
    }

    static let configuration = CommandConfiguration(
        commandName: "replay",
        abstract: "Play a capture to this host and show the first difference of what it sends.",
        discussion: """
            Each link of the capture is played to a host without a radio and without waiting. Its server is built from what \
            the capture shows of the recorded device's, its client asks what that device asked; what the host sends is \
            compared with what was recorded, frame by frame. Pairings are played up to where they depend on secrets, \
            L2CAP channels are left out. The host takes the place of the recorded host, or with --as, where that was the \
            other, of its peer.
            With --exact, all that the recorded host sent to its controller until it first did something of its own accord \
            is compared octet by octet, which holds for captures of this host only. The exit status is 0 where nothing \
            differs.
            """
    )

    @Argument(help: "A capture: btsnoop, pcap, pcapng or Apple PacketLogger.")
    var file: String

    @Option(name: .customLong("as"), help: "The role to play: central or peripheral; else the recorded host's.")
    var role: Role?

    @Option(help: ArgumentHelp("Play this link only, counted from 1.", valueName: "number"))
    var link: Int?

    @Option(help: ArgumentHelp("Play this adapter's packets; else those of the first in the file.", valueName: "index"))
    var adapter: UInt16?

    @Flag(help: "Compare the bring-up of the controller octet by octet.")
    var exact = false

    @Option(help: ArgumentHelp("With --exact, the seed that the recorded host was given.", valueName: "number"))
    var seed: UInt64 = 0

    func run() async throws {
        let recording = try PacketRecording(path: file, adapter: adapter)
        if let damage = recording.damage { Output.complain("\(file) is \(damage); playing what is before") }
        if recording.isCut { Output.complain("\(file) is not played to its end: its packets are cut, or too many") }
        let isSame = try exact ? replayBringUp(recording) : replayLinks(recording)
        if !isSame { throw ExitCode.failure }
    }

    private func replayLinks(_ recording: PacketRecording) throws -> Bool {
        let links = TracedLink.all(in: recording).filter { link == nil || $0.number == link }
        guard !links.isEmpty else { throw ReplayError.noLink(file) }
        var isSame = true
        for link in links {
            guard let isCentral = role.map({ $0 == .central }) ?? link.isCentral else {
                throw ReplayError.unknownRole(link.number)
            }
            let replay = LinkReplay(link, isCentral: isCentral)
            try replay.run()
            try Output.standard.line(summary(of: replay, isCentral: isCentral))
            guard let difference = replay.difference else { continue }
            isSame = false
            for line in DifferenceReport(recording).lines(of: difference, on: link) { try Output.standard.line(line) }
        }
        return isSame
    }

    private func summary(of replay: LinkReplay, isCentral: Bool) -> String {
        let peer = replay.link.peer.map { " with \($0)" } ?? ""
        let leftOut = replay.leftOutCount == 0 ? "" : ", \(replay.leftOutCount) of all left out"
        return "link \(replay.link.number)\(peer), as the \(isCentral ? "central" : "peripheral"): "
            + "\(replay.comparedCount) frames sent as recorded\(leftOut)"
    }

    /// Plays what the controller said until the host does something that its app had asked for.
    private func replayBringUp(_ recording: PacketRecording) throws -> Bool {
        let bringUp = recording.bringUp
        let replay = Replay(bringUp, seed: seed)
        do {
            try replay.run {
                $0.stateLocation = .nowhere
            } _: { _ in
                try await replay.waitForEnd()
            }
        } catch let difference as ReplayDifference {
            // What closes the adapter comes after all that is compared.
            if difference.expected == nil {
                try Output.standard.line("bring-up: \(bringUp.packets.count) packets as recorded")
                return true
            }
            for line in DifferenceReport(recording).lines(of: difference) { try Output.standard.line(line) }
            return false
        }
        return true
    }
}

/// Why a capture cannot be replayed.
enum ReplayError: Error, CustomStringConvertible {
    case noLink(String)
    case unknownRole(Int)

    var description: String {
        switch self {
        case .noLink(let file): "\(file) has no such LE link; `ble decode --summary` shows what it has"
        case .unknownRole(let number):
            "link \(number) was made before the capture; say with --as what the host was on it"
        }
    }
}
