import BLEATT
import BLEByteCoding
import BluetoothTypes

/// Discover All Primary Services (Vol 3, Part G, 4.4.1); secondary services are discovered in the same way.
public struct DiscoverServices: ClientProcedure {
    public var outcome: Result<Output, ClientError>?
    let isPrimary: Bool
    private var walk = RangeWalk(.all)
    var budget: DiscoveryBudget {
        get { walk.budget }
        set { walk.budget = newValue }
    }

    private var services: [DiscoveredService] = []

    /// Creates a discovery of all primary services, or of all secondary services if `isPrimary` is false.
    public init(isPrimary: Bool = true) { self.isPrimary = isPrimary }

    public mutating func start(mtu: Int, into buffer: inout PacketBuffer) -> ClientStep<[DiscoveredService]> {
        if let error = walk.budget.takeRequest() { return .finished(.failure(error)) }
        return send(
            ReadByGroupTypeRequest(range: walk.range, groupType: isPrimary ? .primaryService : .secondaryService),
            into: &buffer
        )
    }

    public mutating func receive(
        _ response: RawSpan,
        mtu: Int,
        into buffer: inout PacketBuffer
    ) -> ClientStep<[DiscoveredService]> {
        guard let response = try? ReadByGroupTypeResponse(decoding: response) else {
            return .finished(.failure(.malformedResponse(.readByGroupTypeRequest)))
        }
        var entries = response.entries
        while let entry = entries.next() {
            guard entry.value.byteCount != 4, let uuid = try? BluetoothUUID(decoding: entry.value) else {
                return .finished(.failure(.malformedResponse(.readByGroupTypeRequest)))
            }
            if let error = walk.advance(over: entry.handle, endingAt: entry.endGroupHandle, of: .readByGroupTypeRequest)
            {
                return .finished(.failure(error))
            }
            services.append(
                DiscoveredService(
                    uuid: uuid,
                    isPrimary: isPrimary,
                    handle: entry.handle,
                    endHandle: entry.endGroupHandle
                )
            )
        }
        return walk.isAtEnd ? .finished(.success(services)) : start(mtu: mtu, into: &buffer)
    }

    public mutating func receive(
        _ error: ErrorResponse,
        mtu: Int,
        into buffer: inout PacketBuffer
    ) -> ClientStep<[DiscoveredService]> {
        error.error == .attributeNotFound ? .finished(.success(services)) : fail(with: error)
    }
}

/// Discover Primary Service by Service UUID (Vol 3, Part G, 4.4.2).
public struct DiscoverServicesByUUID: ClientProcedure {
    public var outcome: Result<Output, ClientError>?
    let uuid: BluetoothUUID
    private var walk = RangeWalk(.all)
    private var services: [DiscoveredService] = []

    /// Creates a discovery of the primary services with this UUID. A server may have several.
    public init(uuid: BluetoothUUID) { self.uuid = uuid }

    public mutating func start(mtu: Int, into buffer: inout PacketBuffer) -> ClientStep<[DiscoveredService]> {
        if let error = walk.budget.takeRequest() { return .finished(.failure(error)) }
        let value = PacketBuffer.bytes { (uuid.width == .bits32 ? uuid.attributeForm : uuid).encode(into: &$0) }
        return send(FindByTypeValueRequest(range: walk.range, type: 0x2800, value: value.rawSpan), into: &buffer)
    }

    public mutating func receive(
        _ response: RawSpan,
        mtu: Int,
        into buffer: inout PacketBuffer
    ) -> ClientStep<[DiscoveredService]> {
        guard let response = try? FindByTypeValueResponse(decoding: response) else {
            return .finished(.failure(.malformedResponse(.findByTypeValueRequest)))
        }
        var entries = response.entries
        while let entry = entries.next() {
            if let error = walk.advance(over: entry.handle, endingAt: entry.endGroupHandle, of: .findByTypeValueRequest)
            {
                return .finished(.failure(error))
            }
            services.append(
                DiscoveredService(uuid: uuid, isPrimary: true, handle: entry.handle, endHandle: entry.endGroupHandle)
            )
        }
        return walk.isAtEnd ? .finished(.success(services)) : start(mtu: mtu, into: &buffer)
    }

    public mutating func receive(
        _ error: ErrorResponse,
        mtu: Int,
        into buffer: inout PacketBuffer
    ) -> ClientStep<[DiscoveredService]> {
        error.error == .attributeNotFound ? .finished(.success(services)) : fail(with: error)
    }
}

/// Find Included Services (Vol 3, Part G, 4.5.1). The include declaration does not have the UUID of a service with a
/// 128-bit UUID. The client reads it from the declaration of the included service.
public struct FindIncludedServices: ClientProcedure {
    public var outcome: Result<Output, ClientError>?
    private struct Include {
        let declaration: AttributeHandle
        let handle: AttributeHandle
        let end: AttributeHandle
    }

    let range: HandleRange
    private var walk: RangeWalk
    var budget: DiscoveryBudget {
        get { walk.budget }
        set { walk.budget = newValue }
    }

    private var services: [IncludedService] = []
    /// Includes whose UUID is still to be read, the next one last.
    private var unresolved: [Include] = []

    /// Creates a discovery of the services that the service with the handles `range` includes.
    public init(range: HandleRange) {
        walk = RangeWalk(range)
        self.range = range
    }

    public mutating func start(mtu: Int, into buffer: inout PacketBuffer) -> ClientStep<[IncludedService]> {
        guard walk.range.isValid else { return .finished(.failure(.invalidArgument)) }
        if let error = walk.budget.takeRequest() { return .finished(.failure(error)) }
        return send(ReadByTypeRequest(range: walk.range, type: .include), into: &buffer)
    }

    public mutating func receive(
        _ response: RawSpan,
        mtu: Int,
        into buffer: inout PacketBuffer
    ) -> ClientStep<[IncludedService]> {
        if let include = unresolved.popLast() {
            guard let response = try? ReadResponse(decoding: response),
                let uuid = try? BluetoothUUID(decoding: response.value)
            else { return .finished(.failure(.malformedResponse(.readRequest))) }
            append(include, uuid)
        } else if let error = receiveDeclarations(response) {
            return .finished(.failure(error))
        }
        return next(mtu: mtu, into: &buffer)
    }

    private mutating func receiveDeclarations(_ response: RawSpan) -> ClientError? {
        guard let response = try? ReadByTypeResponse(decoding: response), response.length == 8 || response.length == 6
        else { return .malformedResponse(.readByTypeRequest) }
        var includes: [Include] = []
        var entries = response.entries
        while let entry = entries.next() {
            if let error = walk.advance(over: entry.handle, of: .readByTypeRequest) { return error }
            var reader = ByteReader(entry.value)
            guard let handle = try? reader.readUInt16(), let end = try? reader.readUInt16(), handle != 0, handle <= end
            else { return .malformedResponse(.readByTypeRequest) }
            let include = Include(
                declaration: entry.handle,
                handle: AttributeHandle(handle),
                end: AttributeHandle(end)
            )
            if let uuid = try? reader.readUInt16() {
                append(include, BluetoothUUID(uuid))
            } else {
                includes.append(include)
            }
        }
        unresolved = includes.reversed()
        return nil
    }

    private mutating func append(_ include: Include, _ uuid: BluetoothUUID) {
        services.append(
            IncludedService(
                uuid: uuid,
                declarationHandle: include.declaration,
                handle: include.handle,
                endHandle: include.end
            )
        )
    }

    private mutating func next(mtu: Int, into buffer: inout PacketBuffer) -> ClientStep<[IncludedService]> {
        if let include = unresolved.last {
            if let error = walk.budget.takeRequest() { return .finished(.failure(error)) }
            return send(ReadRequest(handle: include.handle), into: &buffer)
        }
        return walk.isAtEnd ? .finished(.success(services)) : start(mtu: mtu, into: &buffer)
    }

    public mutating func receive(
        _ error: ErrorResponse,
        mtu: Int,
        into buffer: inout PacketBuffer
    ) -> ClientStep<[IncludedService]> {
        unresolved.isEmpty && error.error == .attributeNotFound ? .finished(.success(services)) : fail(with: error)
    }
}
