import BLEATT
import BLEByteCoding
import BluetoothTypes

/// Discover All Characteristics of a Service, or those of one UUID (Vol 3, Part G, 4.6).
public struct DiscoverCharacteristics: ClientProcedure {
    public var outcome: Result<Output, ClientError>?
    let uuid: BluetoothUUID?
    let range: HandleRange
    private var walk: RangeWalk
    var budget: DiscoveryBudget {
        get { walk.budget }
        set { walk.budget = newValue }
    }

    private var characteristics: [DiscoveredCharacteristic] = []

    /// Creates a discovery in the handles of a service, of all characteristics if `uuid` is nil.
    public init(range: HandleRange, uuid: BluetoothUUID? = nil) {
        walk = RangeWalk(range)
        self.range = range
        self.uuid = uuid
    }

    public mutating func start(mtu: Int, into buffer: inout PacketBuffer) -> ClientStep<[DiscoveredCharacteristic]> {
        guard walk.range.isValid else { return .finished(.failure(.invalidArgument)) }
        if let error = walk.budget.takeRequest() { return .finished(.failure(error)) }
        return send(ReadByTypeRequest(range: walk.range, type: .characteristic), into: &buffer)
    }

    public mutating func receive(
        _ response: RawSpan,
        mtu: Int,
        into buffer: inout PacketBuffer
    ) -> ClientStep<[DiscoveredCharacteristic]> {
        guard let response = try? ReadByTypeResponse(decoding: response), response.length == 7 || response.length == 21
        else { return .finished(.failure(.malformedResponse(.readByTypeRequest))) }
        var entries = response.entries
        while let entry = entries.next() {
            if let error = walk.advance(over: entry.handle, of: .readByTypeRequest) {
                return .finished(.failure(error))
            }
            var reader = ByteReader(entry.value)
            guard let properties = try? reader.readUInt8(), let valueHandle = try? reader.readUInt16(),
                let uuid = try? BluetoothUUID(decoding: reader.readRemaining())
            else { return .finished(.failure(.malformedResponse(.readByTypeRequest))) }
            guard AttributeHandle(valueHandle) > entry.handle, AttributeHandle(valueHandle) <= range.end else {
                return .finished(.failure(.handlesOutOfOrder(.readByTypeRequest)))
            }
            if let last = characteristics.indices.last {
                characteristics[last].endHandle = AttributeHandle(entry.handle.rawValue - 1)
            }
            characteristics.append(
                DiscoveredCharacteristic(
                    uuid: uuid,
                    handle: entry.handle,
                    valueHandle: AttributeHandle(valueHandle),
                    endHandle: range.end,
                    properties: CharacteristicProperties(rawValue: properties)
                )
            )
        }
        return walk.isAtEnd ? finish() : start(mtu: mtu, into: &buffer)
    }

    public mutating func receive(
        _ error: ErrorResponse,
        mtu: Int,
        into buffer: inout PacketBuffer
    ) -> ClientStep<[DiscoveredCharacteristic]> {
        error.error == .attributeNotFound ? finish() : fail(with: error)
    }

    private func finish() -> ClientStep<[DiscoveredCharacteristic]> {
        .finished(.success(uuid.map { uuid in characteristics.filter { $0.uuid == uuid } } ?? characteristics))
    }
}

/// Discover All Characteristic Descriptors (Vol 3, Part G, 4.7.1).
public struct DiscoverDescriptors: ClientProcedure {
    public var outcome: Result<Output, ClientError>?
    let range: HandleRange
    private var walk: RangeWalk
    var budget: DiscoveryBudget {
        get { walk.budget }
        set { walk.budget = newValue }
    }

    private var descriptors: [DiscoveredDescriptor] = []

    /// - Parameter range: from after the characteristic's value to its end.
    public init(range: HandleRange) {
        walk = RangeWalk(range)
        self.range = range
    }

    public mutating func start(mtu: Int, into buffer: inout PacketBuffer) -> ClientStep<[DiscoveredDescriptor]> {
        guard walk.range.isValid else { return .finished(.failure(.invalidArgument)) }
        if let error = walk.budget.takeRequest() { return .finished(.failure(error)) }
        return send(FindInformationRequest(range: walk.range), into: &buffer)
    }

    public mutating func receive(
        _ response: RawSpan,
        mtu: Int,
        into buffer: inout PacketBuffer
    ) -> ClientStep<[DiscoveredDescriptor]> {
        guard let response = try? FindInformationResponse(decoding: response) else {
            return .finished(.failure(.malformedResponse(.findInformationRequest)))
        }
        var entries = response.entries
        while let entry = entries.next() {
            if let error = walk.advance(over: entry.handle, of: .findInformationRequest) {
                return .finished(.failure(error))
            }
            descriptors.append(DiscoveredDescriptor(uuid: entry.type, handle: entry.handle))
        }
        return walk.isAtEnd ? .finished(.success(descriptors)) : start(mtu: mtu, into: &buffer)
    }

    public mutating func receive(
        _ error: ErrorResponse,
        mtu: Int,
        into buffer: inout PacketBuffer
    ) -> ClientStep<[DiscoveredDescriptor]> {
        error.error == .attributeNotFound ? .finished(.success(descriptors)) : fail(with: error)
    }
}
