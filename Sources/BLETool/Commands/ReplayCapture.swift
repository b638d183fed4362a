import ArgumentParser
import BLE
import BLEHCITransport
import BluetoothTesting

struct ReplayCapture: AsyncParsableCommand {
    /// The side of the link whose place the host takes.
    enum Role: String, ExpressibleByArgument, CaseIterable {
        case central
        case peripheral
    }

    static let configuration = CommandConfiguration(
        commandName: "replay",
        abstract: "Play a capture to this host and show the first difference in the packets that it sends.",
        discussion: """
            The host runs without a radio and without waiting. If the capture begins with the bring-up of the \
            controller, the host first receives the recorded answers, and must send the same bytes as the recorded \
            host. This is the case for captures of this host. Then each link is played. The host's server has the \
            attributes that the capture shows, its client sends the recorded requests, and each sent frame is \
            compared. Pairings are played until they depend on secrets. L2CAP channels are left out.
            The host plays the recorded host. With --as it plays the central or the peripheral of each link, and the \
            bring-up is left out, so that captures of other hosts can be played. --link leaves it out too.
            The exit status is 0 if the capture shows no difference.
            """
    )

    @Argument(help: "A capture: btsnoop, pcap, pcapng or Apple PacketLogger.", completion: .file())
    var file: String

    @Option(name: .customLong("as"), help: "The role to play: central or peripheral (default: the recorded host's).")
    var role: Role?

    @Option(help: ArgumentHelp("Play this link only, counted from 1, without the bring-up.", valueName: "number"))
    var link: Int?

    @Option(
        help: ArgumentHelp("Play the packets of this adapter (default: the first in the file).", valueName: "index")
    )
    var adapter: UInt16?

    @Flag(help: "Print lines of JSON.")
    var json = false

    func run() async throws {
        let stop = CancellationToken()
        let recording = try await withTaskCancellationHandler {
            try PacketRecording(path: file, adapter: adapter, stop: stop)
        } onCancel: {
            stop.cancel()
        }
        try Task.checkCancellation()
        if let damage = recording.damage {
            Output.complain("\(file) is \(damage); playing the packets before the damage")
        }
        if recording.isCut {
            Output.complain("\(file) is not played to its end: its packets are cut, too many, or of another section")
        }
        let report = ReplayReport(recording, isJSON: json)
        let playsBringUp = role == nil && link == nil && recording.hasBringUp
        if playsBringUp, try !replayBringUp(recording, report) {
            Output.complain(
                "the bring-up was recorded with another host, or has changed; --as plays the links without it"
            )
            throw ExitCode.failure
        }
        guard try replayLinks(of: recording, isOptional: playsBringUp, report) else { throw ExitCode.failure }
    }

    /// Replays the controller's packets until the host sends something that its app requested.
    private func replayBringUp(_ recording: PacketRecording, _ report: ReplayReport) throws -> Bool {
        let bringUp = recording.bringUp
        let replay = Replay(bringUp, seed: 0)
        do {
            try replay.run {
                $0.stateLocation = .nowhere
            } _: { _ in
                try await replay.waitForEnd()
            }
        } catch let difference as ReplayDifference where difference.expected != nil {
            try report.bringUp(replay.position, difference)
            return false
        } catch is ReplayDifference {
            // All that is compared has passed: that the adapter is closed then is not of the recording.
        } catch let error as BLEError {
            throw ReplayError.notBroughtUp(file, error)
        }
        try report.bringUp(bringUp.packets.count, nil)
        return true
    }

    /// - Parameter isOptional: whether there need be no link.
    private func replayLinks(of recording: PacketRecording, isOptional: Bool, _ report: ReplayReport) throws -> Bool {
        let links = TracedLink.all(in: recording).filter { link == nil || $0.number == link }
        var playedCount = 0
        for link in links {
            try Task.checkCancellation()
            guard let isCentral = role.map({ $0 == .central }) ?? link.isCentral else {
                Output.complain(
                    "link \(link.number) was made before the capture: give the host's role on it with --as"
                )
                continue
            }
            playedCount += 1
            let replay = LinkReplay(link, isCentral: isCentral)
            try replay.run()
            try report.link(replay, isCentral: isCentral)
            if replay.difference != nil { return false }
        }
        if playedCount == 0, !isOptional { throw ReplayError.nothing(file, link: link, hasLinks: !links.isEmpty) }
        return true
    }
}

/// Why a capture cannot be replayed.
enum ReplayError: Error, CustomStringConvertible {
    case nothing(String, link: Int?, hasLinks: Bool)
    case notBroughtUp(String, BLEError)

    var description: String {
        switch self {
        case .notBroughtUp(let file, let error): "a host is not brought up by the controller of \(file): \(error)"
        case .nothing(let file, _, true): "\(file) has no link that can be played without --as"
        case .nothing(let file, let link?, _):
            "\(file) has no LE link \(link); `ble decode --summary` shows those it has"
        case .nothing(let file, nil, _): "\(file) has no LE link to play; `ble decode --summary` shows what it has"
        }
    }
}
