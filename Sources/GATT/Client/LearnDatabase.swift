import ATT
import BluetoothTypes
import ByteCoding

/// Makes sure of a server's whole database, so that it need not be discovered again (Vol 3, Part G, 2.5.2).
///
/// It reads the Database Hash. Where that is the one of an earlier connection, what was learnt then is good and nothing else
/// is asked for. Otherwise everything is discovered, the client says that it caches (Client Supported Features, and
/// Service Changed's configuration), and the hash is read again: if it is another one, the database has changed under way
/// and is discovered once more, a bounded number of times.
struct LearnDatabase: ClientProcedure {
    var outcome: Result<Output, ClientError>?
    private enum State {
        case readingHash(ReadDatabaseHash)
        case discovering(DiscoverAll)
        case writing(WriteValue)
        case rereadingHash(ReadDatabaseHash)
    }

    /// How often a database may be discovered before a server that never keeps still is given up.
    private static let attemptLimit = 3

    let known: DatabaseCache?
    private var state = State.readingHash(ReadDatabaseHash())
    private var learnt = DatabaseCache(hash: nil, services: [])
    /// What is still to be written, the next last.
    private var writes: [WriteValue] = []
    private var attempts = 0

    /// - Parameter known: what an earlier connection has learnt.
    init(known: DatabaseCache?) {
        self.known = known
    }

    mutating func start(mtu: Int, into buffer: inout PacketBuffer) -> ClientStep<DatabaseCache> {
        take(.start, mtu, &buffer)
    }

    mutating func receive(
        _ response: RawSpan,
        mtu: Int,
        into buffer: inout PacketBuffer
    ) -> ClientStep<DatabaseCache> {
        take(.response(response), mtu, &buffer)
    }

    mutating func receive(
        _ error: ErrorResponse,
        mtu: Int,
        into buffer: inout PacketBuffer
    ) -> ClientStep<DatabaseCache> {
        if error.error == .databaseOutOfSync { return discover(mtu, &buffer) }
        // A server need not let itself be told.
        if case .writing = state { return write(mtu, &buffer) }
        return take(.error(error), mtu, &buffer)
    }

    private mutating func take(
        _ input: borrowing ProcedureInput,
        _ mtu: Int,
        _ buffer: inout PacketBuffer
    ) -> ClientStep<DatabaseCache> {
        switch state {
        case .readingHash(var procedure):
            let step = procedure.take(input, mtu, &buffer)
            state = .readingHash(procedure)
            return advance(step) { $0.hashRead($1, mtu, &buffer) }
        case .discovering(var procedure):
            let step = procedure.take(input, mtu, &buffer)
            state = .discovering(procedure)
            return advance(step) { $0.discovered($1, mtu, &buffer) }
        case .writing(var procedure):
            let step = procedure.take(input, mtu, &buffer)
            state = .writing(procedure)
            return advance(step) { learning, _ in learning.write(mtu, &buffer) }
        case .rereadingHash(var procedure):
            let step = procedure.take(input, mtu, &buffer)
            state = .rereadingHash(procedure)
            return advance(step) { $0.hashReread($1, mtu, &buffer) }
        }
    }

    private mutating func advance<Part: Sendable>(
        _ step: ClientStep<Part>,
        _ next: (inout LearnDatabase, Part) -> ClientStep<DatabaseCache>
    ) -> ClientStep<DatabaseCache> {
        switch step {
        case .send(let opcode): .send(opcode)
        case .finished(.failure(let error)): .finished(.failure(error))
        case .finished(.success(let part)): next(&self, part)
        }
    }

    private mutating func hashRead(
        _ hash: UInt128?,
        _ mtu: Int,
        _ buffer: inout PacketBuffer
    ) -> ClientStep<DatabaseCache> {
        // A server without a hash tells a bonded client of each change, or never changes.
        if let known, known.hash == hash { return .finished(.success(known)) }
        learnt.hash = hash
        return discover(mtu, &buffer)
    }

    private mutating func discover(_ mtu: Int, _ buffer: inout PacketBuffer) -> ClientStep<DatabaseCache> {
        guard attempts < LearnDatabase.attemptLimit else {
            return .finished(.failure(.attribute(.databaseOutOfSync, handle: .invalid, request: .readByTypeRequest)))
        }
        attempts += 1
        state = .discovering(DiscoverAll())
        return take(.start, mtu, &buffer)
    }

    private mutating func discovered(
        _ services: [DiscoveredService],
        _ mtu: Int,
        _ buffer: inout PacketBuffer
    ) -> ClientStep<DatabaseCache> {
        learnt.services = services
        writes = []
        let serviceChanged = learnt.genericAttribute(.serviceChanged)
        if let descriptor = serviceChanged?.descriptors.first(where: { $0.uuid == .clientCharacteristicConfiguration })
        {
            let indication = UInt8(truncatingIfNeeded: ClientConfiguration.indication.rawValue)
            writes.append(WriteValue(handle: descriptor.handle, value: [indication, 0]))
        }
        if let features = learnt.genericAttribute(.clientSupportedFeatures) {
            let supported = ClientSupportedFeatures.supported.rawValue
            writes.append(WriteValue(handle: features.valueHandle, value: [supported]))
        }
        return write(mtu, &buffer)
    }

    private mutating func write(_ mtu: Int, _ buffer: inout PacketBuffer) -> ClientStep<DatabaseCache> {
        if let next = writes.popLast() {
            state = .writing(next)
        } else if learnt.hash != nil {
            state = .rereadingHash(ReadDatabaseHash())
        } else {
            return .finished(.success(learnt))
        }
        return take(.start, mtu, &buffer)
    }

    private mutating func hashReread(
        _ hash: UInt128?,
        _ mtu: Int,
        _ buffer: inout PacketBuffer
    ) -> ClientStep<DatabaseCache> {
        if hash == learnt.hash { return .finished(.success(learnt)) }
        learnt.hash = hash
        return discover(mtu, &buffer)
    }
}
