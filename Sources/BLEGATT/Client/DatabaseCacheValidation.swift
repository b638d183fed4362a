import BLEATT
import BLEByteCoding
import BluetoothTypes

/// Validates the cache of a server's database, or discovers the whole database (Vol 3, Part G, 2.5.2).
///
/// The procedure reads the Database Hash. If the hash is the same as on an earlier connection, the cache is valid and
/// nothing else is requested. Otherwise the procedure:
///
/// 1. discovers everything;
/// 2. writes Client Supported Features and the configuration of Service Changed;
/// 3. reads the hash again, if the server has one.
///
/// If the second hash differs, the database has changed during discovery, and the procedure discovers it again, a
/// limited number of times. A write that the server has accepted on this connection is not repeated. Some servers
/// indicate Service Changed whenever its configuration is written. The client would then discover the database without
/// end.
struct DatabaseCacheValidation: ClientProcedure {
    var outcome: Result<Output, ClientError>?
    private enum State {
        case readingHash(ReadDatabaseHash)
        case discovering(DiscoverAll)
        case writing(WriteValue)
        case rereadingHash(ReadDatabaseHash)
    }

    /// Maximum number of discoveries before the client gives up on a server whose database keeps changing.
    private static let attemptLimit = 3

    let known: DatabaseCache?
    /// Whether the first request was written.
    private(set) var hasStarted = false
    private let supportedFeatures: ClientSupportedFeatures
    private var state = State.readingHash(ReadDatabaseHash())
    /// The last values that the server has accepted on this connection, by handle: at most that of Client Supported
    /// Features and that of the configuration of Service Changed.
    private(set) var acceptedWrites: [AttributeHandle: [UInt8]]
    private var database = DatabaseCache(hash: nil, services: [])
    /// The remaining writes, the next one last.
    private var writes: [WriteValue] = []
    private var attempts = 0

    /// - Parameters:
    ///   - known: the cache of an earlier connection.
    ///   - supportedFeatures: the value for Client Supported Features.
    ///   - acceptedWrites: the values that the server has accepted on this connection.
    init(
        known: DatabaseCache?,
        supportedFeatures: ClientSupportedFeatures,
        acceptedWrites: [AttributeHandle: [UInt8]]
    ) {
        self.known = known
        self.supportedFeatures = supportedFeatures
        self.acceptedWrites = acceptedWrites
    }

    mutating func start(mtu: Int, into buffer: inout PacketBuffer) -> ClientStep<DatabaseCache> {
        hasStarted = true
        return take(.start, mtu, &buffer)
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
        // A server need not accept these writes.
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
            return advance(step) { validation, _ in validation.accepted(procedure, mtu, &buffer) }
        case .rereadingHash(var procedure):
            let step = procedure.take(input, mtu, &buffer)
            state = .rereadingHash(procedure)
            return advance(step) { $0.hashReread($1, mtu, &buffer) }
        }
    }

    private mutating func advance<Part: Sendable>(
        _ step: ClientStep<Part>,
        _ next: (inout DatabaseCacheValidation, Part) -> ClientStep<DatabaseCache>
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
        // A server without a hash reports each change to a bonded client, or never changes.
        if let known, known.hash == hash { return .finished(.success(known)) }
        database.hash = hash
        return discover(mtu, &buffer)
    }

    private mutating func discover(_ mtu: Int, _ buffer: inout PacketBuffer) -> ClientStep<DatabaseCache> {
        guard attempts < DatabaseCacheValidation.attemptLimit else {
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
        database.services = services
        var wanted: [WriteValue] = []
        let serviceChanged = database.genericAttribute(.serviceChanged)
        if let descriptor = serviceChanged?.descriptors.first(where: { $0.uuid == .clientCharacteristicConfiguration })
        {
            let indication = UInt8(truncatingIfNeeded: ClientConfiguration.indication.rawValue)
            wanted.append(WriteValue(handle: descriptor.handle, value: [indication, 0]))
        }
        if let features = database.genericAttribute(.clientSupportedFeatures) {
            wanted.append(WriteValue(handle: features.valueHandle, value: [supportedFeatures.rawValue]))
        }
        let accepted = acceptedWrites
        writes = wanted.filter { accepted[$0.handle] != $0.value }
        acceptedWrites = accepted.filter { entry in wanted.contains { $0.handle == entry.key } }
        return write(mtu, &buffer)
    }

    private mutating func accepted(
        _ write: WriteValue,
        _ mtu: Int,
        _ buffer: inout PacketBuffer
    ) -> ClientStep<DatabaseCache> {
        acceptedWrites[write.handle] = write.value
        return self.write(mtu, &buffer)
    }

    private mutating func write(_ mtu: Int, _ buffer: inout PacketBuffer) -> ClientStep<DatabaseCache> {
        if let next = writes.popLast() {
            state = .writing(next)
        } else if database.hash != nil {
            state = .rereadingHash(ReadDatabaseHash())
        } else {
            return .finished(.success(database))
        }
        return take(.start, mtu, &buffer)
    }

    private mutating func hashReread(
        _ hash: UInt128?,
        _ mtu: Int,
        _ buffer: inout PacketBuffer
    ) -> ClientStep<DatabaseCache> {
        if hash == database.hash { return .finished(.success(database)) }
        database.hash = hash
        return discover(mtu, &buffer)
    }
}
