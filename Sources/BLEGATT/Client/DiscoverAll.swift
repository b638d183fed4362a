import BLEATT
import BLEByteCoding
import BluetoothTypes

/// Discovers the whole database: primary and secondary services, included services, characteristics and descriptors.
///
/// ``DiscoveryLimits`` bounds the attributes and the requests of the whole procedure.
public struct DiscoverAll: ClientProcedure {
    public var outcome: Result<Output, ClientError>?
    private enum State {
        case primaryServices(DiscoverServices)
        case secondaryServices(DiscoverServices)
        case includes(FindIncludedServices, service: Int)
        case characteristics(DiscoverCharacteristics, service: Int)
        case descriptors(DiscoverDescriptors, service: Int, characteristic: Int)
    }

    private var state = State.primaryServices(DiscoverServices())
    private var services: [DiscoveredService] = []
    /// The budget that remains for the current and the following procedures.
    private var budget = DiscoveryBudget()

    /// Creates the procedure, with a fresh budget of ``DiscoveryLimits``.
    public init() {}

    public mutating func start(mtu: Int, into buffer: inout PacketBuffer) -> ClientStep<[DiscoveredService]> {
        take(.start, mtu, &buffer)
    }

    public mutating func receive(
        _ response: RawSpan,
        mtu: Int,
        into buffer: inout PacketBuffer
    ) -> ClientStep<[DiscoveredService]> {
        take(.response(response), mtu, &buffer)
    }

    public mutating func receive(
        _ error: ErrorResponse,
        mtu: Int,
        into buffer: inout PacketBuffer
    ) -> ClientStep<[DiscoveredService]> {
        // Some servers do not support secondary services at all.
        if case .secondaryServices = state, error.error == .unsupportedGroupType { return next(mtu, &buffer) }
        return take(.error(error), mtu, &buffer)
    }

    /// Passes an input to the current procedure.
    private mutating func take(
        _ input: borrowing ProcedureInput,
        _ mtu: Int,
        _ buffer: inout PacketBuffer
    ) -> ClientStep<[DiscoveredService]> {
        switch state {
        case .primaryServices(var procedure):
            procedure.budget = budget
            let step = procedure.take(input, mtu, &buffer)
            budget = procedure.budget
            state = .primaryServices(procedure)
            return advance(step, mtu, &buffer) { $0.services += $1 }
        case .secondaryServices(var procedure):
            procedure.budget = budget
            let step = procedure.take(input, mtu, &buffer)
            budget = procedure.budget
            state = .secondaryServices(procedure)
            return advance(step, mtu, &buffer) { $0.services += $1 }
        case .includes(var procedure, let service):
            procedure.budget = budget
            let step = procedure.take(input, mtu, &buffer)
            budget = procedure.budget
            state = .includes(procedure, service: service)
            return advance(step, mtu, &buffer) { $0.services[service].includedServices = $1 }
        case .characteristics(var procedure, let service):
            procedure.budget = budget
            let step = procedure.take(input, mtu, &buffer)
            budget = procedure.budget
            state = .characteristics(procedure, service: service)
            return advance(step, mtu, &buffer) { $0.services[service].characteristics = $1 }
        case .descriptors(var procedure, let service, let characteristic):
            procedure.budget = budget
            let step = procedure.take(input, mtu, &buffer)
            budget = procedure.budget
            state = .descriptors(procedure, service: service, characteristic: characteristic)
            return advance(step, mtu, &buffer) {
                $0.services[service].characteristics[characteristic].descriptors = $1
            }
        }
    }

    /// Sends the next request of the current procedure, or keeps its result and starts the next procedure.
    private mutating func advance<Part: Sendable>(
        _ step: ClientStep<Part>,
        _ mtu: Int,
        _ buffer: inout PacketBuffer,
        keep: (inout DiscoverAll, Part) -> Void
    ) -> ClientStep<[DiscoveredService]> {
        switch step {
        case .send(let opcode): return .send(opcode)
        case .finished(.failure(let error)): return .finished(.failure(error))
        case .finished(.success(let part)):
            keep(&self, part)
            return next(mtu, &buffer)
        }
    }

    private mutating func next(_ mtu: Int, _ buffer: inout PacketBuffer) -> ClientStep<[DiscoveredService]> {
        switch state {
        case .primaryServices:
            state = .secondaryServices(DiscoverServices(isPrimary: false))
        case .secondaryServices:
            services.sort { $0.handle < $1.handle }
            guard !services.isEmpty else { return .finished(.success([])) }
            state = .includes(FindIncludedServices(range: services[0].range), service: 0)
        case .includes(_, let service):
            state = .characteristics(DiscoverCharacteristics(range: services[service].range), service: service)
        case .characteristics(_, let service):
            return nextDescriptors(service: service, after: -1, mtu, &buffer)
        case .descriptors(_, let service, let characteristic):
            return nextDescriptors(service: service, after: characteristic, mtu, &buffer)
        }
        return start(mtu: mtu, into: &buffer)
    }

    private mutating func nextDescriptors(
        service: Int,
        after characteristic: Int,
        _ mtu: Int,
        _ buffer: inout PacketBuffer
    ) -> ClientStep<[DiscoveredService]> {
        let characteristics = services[service].characteristics
        for index in characteristics.indices where index > characteristic {
            guard let range = characteristics[index].descriptorRange else { continue }
            state = .descriptors(DiscoverDescriptors(range: range), service: service, characteristic: index)
            return start(mtu: mtu, into: &buffer)
        }
        guard service + 1 < services.count else { return .finished(.success(services)) }
        state = .includes(FindIncludedServices(range: services[service + 1].range), service: service + 1)
        return start(mtu: mtu, into: &buffer)
    }
}
