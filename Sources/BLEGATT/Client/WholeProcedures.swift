import BLEATT
import BLEByteCoding
import BluetoothTypes

/// Writes a whole value: by one request if it fits (Vol 3, Part G, 4.9.3), else part by part (4.9.4).
///
/// The procedure decides between the two when it starts, by the ATT_MTU at that time.
public struct WriteWholeValue: ClientProcedure {
    public var outcome: Result<Output, ClientError>?
    private enum State {
        case short(WriteValue)
        case long(PreparedWrites)
    }

    private let handle: AttributeHandle
    private let value: [UInt8]
    private var state: State

    /// Creates a write of at most 512 bytes.
    public init(handle: AttributeHandle, value: [UInt8]) {
        self.handle = handle
        self.value = value
        state = .short(WriteValue(handle: handle, value: value))
    }

    public mutating func start(mtu: Int, into buffer: inout PacketBuffer) -> ClientStep<Void> {
        if value.count <= mtu - 3 {
            var procedure = WriteValue(handle: handle, value: value)
            defer { state = .short(procedure) }
            return procedure.start(mtu: mtu, into: &buffer)
        }
        var procedure = PreparedWrites([.init(handle: handle, value: value)])
        defer { state = .long(procedure) }
        return procedure.start(mtu: mtu, into: &buffer)
    }

    public mutating func receive(_ response: RawSpan, mtu: Int, into buffer: inout PacketBuffer) -> ClientStep<Void> {
        switch state {
        case .short(var procedure):
            defer { state = .short(procedure) }
            return procedure.receive(response, mtu: mtu, into: &buffer)
        case .long(var procedure):
            defer { state = .long(procedure) }
            return procedure.receive(response, mtu: mtu, into: &buffer)
        }
    }

    public mutating func receive(
        _ error: ErrorResponse,
        mtu: Int,
        into buffer: inout PacketBuffer
    ) -> ClientStep<Void> {
        switch state {
        case .short(var procedure):
            defer { state = .short(procedure) }
            return procedure.receive(error, mtu: mtu, into: &buffer)
        case .long(var procedure):
            defer { state = .long(procedure) }
            return procedure.receive(error, mtu: mtu, into: &buffer)
        }
    }
}

/// Finds the Client Characteristic Configuration of a characteristic and writes it (Vol 3, Part G, 4.7.1 and 4.12.3).
///
/// Both steps are one procedure, so procedures queued later are sent after the write. It ends in Attribute Not Found if
/// the characteristic has no such descriptor.
public struct SetClientConfiguration: ClientProcedure {
    public var outcome: Result<Output, ClientError>?
    private enum State {
        case finding(DiscoverDescriptors)
        case writing(WriteValue)
    }

    private let range: HandleRange
    private let configuration: ClientConfiguration
    /// The descriptors, if they are known and need not be discovered.
    private var known: [DiscoveredDescriptor]?
    private var state: State

    /// - Parameters:
    ///   - configuration: the value to write.
    ///   - range: the handles after the characteristic's value, to its end.
    public init(_ configuration: ClientConfiguration, inDescriptors range: HandleRange) {
        self.range = range
        self.configuration = configuration
        state = .finding(DiscoverDescriptors(range: range))
    }

    public mutating func cachedOutput(from services: [DiscoveredService]) -> Void? {
        var procedure = DiscoverDescriptors(range: range)
        known = procedure.cachedOutput(from: services)
        return nil
    }

    public mutating func start(mtu: Int, into buffer: inout PacketBuffer) -> ClientStep<Void> {
        if let known { return follow(.finished(.success(known)), mtu, &buffer) }
        var procedure = DiscoverDescriptors(range: range)
        let step = procedure.start(mtu: mtu, into: &buffer)
        state = .finding(procedure)
        return follow(step, mtu, &buffer)
    }

    public mutating func receive(_ response: RawSpan, mtu: Int, into buffer: inout PacketBuffer) -> ClientStep<Void> {
        switch state {
        case .finding(var procedure):
            let step = procedure.receive(response, mtu: mtu, into: &buffer)
            state = .finding(procedure)
            return follow(step, mtu, &buffer)
        case .writing(var procedure):
            return procedure.receive(response, mtu: mtu, into: &buffer)
        }
    }

    public mutating func receive(
        _ error: ErrorResponse,
        mtu: Int,
        into buffer: inout PacketBuffer
    ) -> ClientStep<Void> {
        switch state {
        case .finding(var procedure):
            let step = procedure.receive(error, mtu: mtu, into: &buffer)
            state = .finding(procedure)
            return follow(step, mtu, &buffer)
        case .writing(var procedure):
            return procedure.receive(error, mtu: mtu, into: &buffer)
        }
    }

    private mutating func follow(
        _ step: ClientStep<[DiscoveredDescriptor]>,
        _ mtu: Int,
        _ buffer: inout PacketBuffer
    ) -> ClientStep<Void> {
        switch step {
        case .send(let opcode): return .send(opcode)
        case .finished(.failure(let error)): return .finished(.failure(error))
        case .finished(.success(let descriptors)):
            guard let descriptor = descriptors.first(where: { $0.uuid == .clientCharacteristicConfiguration }) else {
                return .finished(
                    .failure(.attribute(.attributeNotFound, handle: range.start, request: .findInformationRequest))
                )
            }
            let bits = configuration.rawValue
            var procedure = WriteValue(
                handle: descriptor.handle,
                value: [UInt8(truncatingIfNeeded: bits), UInt8(truncatingIfNeeded: bits >> 8)]
            )
            let step = procedure.start(mtu: mtu, into: &buffer)
            state = .writing(procedure)
            return step
        }
    }
}
