import BLECapture

/// The state of one adapter.
final class AdapterState {
    /// Maximum number of links. A further link replaces the oldest. The limit of peers works alike. If there are too
    /// many commands, all are removed.
    private static let linkLimit = 64
    private static let peerLimit = 64
    private static let commandLimit = 64

    struct PendingCommand {
        let index: Int
        let time: Int64
    }

    let localDatabase = ObservedDatabase()
    private var links: [UInt16: LinkState] = [:]
    private var peers: [PeerReference: ObservedDatabase] = [:]
    private var peerOrder: [PeerReference] = []
    private var commands: [UInt16: PendingCommand] = [:]

    func command(_ opcode: UInt16, index: Int, time: Int64) {
        if commands.count >= AdapterState.commandLimit { commands.removeAll() }
        commands[opcode] = PendingCommand(index: index, time: time)
    }

    func answer(_ opcode: UInt16) -> PendingCommand? {
        commands.removeValue(forKey: opcode)
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
