import BLECapture
import BLEHCI

/// The state of one adapter.
final class AdapterState {
    /// Maximum number of links. A further link replaces the oldest. The limits of peers and commands work alike.
    private static let linkLimit = 64
    private static let peerLimit = 64
    private static let commandLimit = 64

    struct PendingCommand {
        let opcode: UInt16
        let index: Int
        let time: Int64
    }

    let localDatabase = ObservedDatabase()
    private var links: [UInt16: LinkState] = [:]
    private var peers: [PeerReference: ObservedDatabase] = [:]
    private var peerOrder: [PeerReference] = []
    /// The commands without an answer, in the order of the capture.
    private var commands: [PendingCommand] = []
    /// The index of the latest command that has an answer.
    private var lastAnswered = 0

    func command(_ opcode: UInt16, index: Int, time: Int64) {
        // This command has no answer (Vol 4, Part E, 7.3.40).
        guard opcode != HostNumberOfCompletedPackets.opcode.rawValue else { return }
        if commands.count >= AdapterState.commandLimit { commands.removeFirst() }
        commands.append(PendingCommand(opcode: opcode, index: index, time: time))
    }

    /// Removes and returns the command that an event with this opcode answers: the oldest one.
    ///
    /// If another command that was sent later has been answered already, the answer to the oldest one is probably not
    /// in the capture. A command that was sent after that other command takes precedence then.
    func answer(_ opcode: UInt16) -> PendingCommand? {
        guard
            let command = commands.first(where: { $0.opcode == opcode && $0.index > lastAnswered })
                ?? commands.first(where: { $0.opcode == opcode })
        else { return nil }
        commands.removeAll { $0.opcode == opcode && $0.index <= command.index }
        lastAnswered = max(lastAnswered, command.index)
        return command
    }

    /// Removes all links after a reset, and returns them.
    func reset() -> [LinkState] {
        defer { links.removeAll() }
        return Array(links.values)
    }

    func link(_ handle: UInt16) -> LinkState? { links[handle] }

    /// Adds a link. Returns it, and a link that it replaces.
    func open(
        number: Int,
        handle: UInt16,
        peer: PeerReference?,
        isCentral: Bool?
    ) -> (link: LinkState, ended: LinkState?) {
        let link = LinkState(
            number: number,
            handle: handle,
            peer: peer,
            isCentral: isCentral,
            peerDatabase: peer.map(database) ?? ObservedDatabase(),
            localDatabase: localDatabase
        )
        var ended = links[handle]
        if ended == nil, links.count >= AdapterState.linkLimit,
            let oldest = links.min(by: { $0.value.number < $1.value.number })
        {
            ended = links.removeValue(forKey: oldest.key)
        }
        links[handle] = link
        return (link, ended)
    }

    func close(_ handle: UInt16) -> LinkState? {
        links.removeValue(forKey: handle)
    }

    /// A peer's attributes are kept after its links end, because clients discover them only once.
    private func database(of peer: PeerReference) -> ObservedDatabase {
        if let database = peers[peer] { return database }
        if peerOrder.count >= AdapterState.peerLimit { peers[peerOrder.removeFirst()] = nil }
        let database = ObservedDatabase()
        peers[peer] = database
        peerOrder.append(peer)
        return database
    }
}
