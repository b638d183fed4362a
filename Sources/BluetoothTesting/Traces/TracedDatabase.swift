import BLEATT
import BLEByteCoding
import BLEGATT
import BluetoothTypes

/// A server's attributes as far as a trace shows them: the discovered attributes, and the result of each access.
struct TracedDatabase {
    typealias Answer = Result<[UInt8], ATTErrorCode>

    private struct Service {
        var end: UInt16
        var uuid: BluetoothUUID
        var isPrimary: Bool
    }

    private struct Characteristic {
        var properties: UInt8
        var uuid: BluetoothUUID
    }

    private var services: [UInt16: Service] = [:]
    private var includes: [UInt16: UInt16] = [:]
    /// The characteristics by the handles of their declarations, each below 0xFFFF; the handles of the values follow
    /// them.
    private var characteristics: [UInt16: Characteristic] = [:]
    private var types: [UInt16: BluetoothUUID] = [:]
    private var accessed: Set<UInt16> = []
    private var reads: [UInt16: [Answer]] = [:]
    private var writes: [UInt16: [Answer]] = [:]
    private var executions: [Answer] = []
    /// The errors with which accesses to an attribute were refused.
    private var refusals: [UInt16: Set<ATTErrorCode>] = [:]

    /// - Parameter pdus: the PDUs between the server and its client, and whether the server has sent each.
    init(_ pdus: [(bytes: [UInt8], isServers: Bool)]) {
        var request: [UInt8]?
        for (bytes, isServers) in pdus {
            guard let opcode = bytes.first.flatMap(ATTOpcode.init(rawValue:)) else { continue }
            if !isServers {
                if opcode.kind == .request { request = bytes }
            } else if let asked = request, opcode == .errorResponse || opcode.kind == .response {
                note(asked, bytes)
                request = nil
            }
        }
    }

    // MARK: Analyzing

    private mutating func note(_ request: [UInt8], _ response: [UInt8]) {
        let answer: Answer
        if let error = try? ErrorResponse(decoding: response.rawSpan) {
            answer = .failure(error.error)
            if error.handle != .invalid, error.error != .invalidHandle, !LinkInitiative.isDiscovery(request) {
                accessed.insert(error.handle.rawValue)
                refusals[error.handle.rawValue, default: []].insert(error.error)
            }
        } else {
            answer = .success(Array(response.dropFirst()))
            noteDiscovery(request, response)
        }
        if let read = try? ReadRequest(decoding: request.rawSpan) {
            noteRead(read.handle, answer)
        } else if let read = try? ReadBlobRequest(decoding: request.rawSpan) {
            noteRead(read.handle, answer)
        } else if let write = try? WriteRequest(decoding: request.rawSpan) {
            accessed.insert(write.handle.rawValue)
            writes[write.handle.rawValue, default: []].append(answer.map { _ in [] })
        } else if request == [ATTOpcode.executeWriteRequest.rawValue, 1] {
            executions.append(answer.map { _ in [] })
        }
    }

    private mutating func noteRead(_ handle: AttributeHandle, _ answer: Answer) {
        if case .failure(.invalidHandle) = answer { return }
        accessed.insert(handle.rawValue)
        reads[handle.rawValue, default: []].append(answer)
    }

    private mutating func noteDiscovery(_ request: [UInt8], _ response: [UInt8]) {
        if let asked = try? ReadByGroupTypeRequest(decoding: request.rawSpan),
            let told = try? ReadByGroupTypeResponse(decoding: response.rawSpan)
        {
            var entries = told.entries
            while let entry = entries.next() {
                guard let uuid = try? BluetoothUUID(decoding: entry.value) else { continue }
                services[entry.handle.rawValue] = Service(
                    end: entry.endGroupHandle.rawValue,
                    uuid: uuid,
                    isPrimary: asked.groupType == .primaryService
                )
            }
        } else if let asked = try? FindByTypeValueRequest(decoding: request.rawSpan),
            let told = try? FindByTypeValueResponse(decoding: response.rawSpan),
            let uuid = try? BluetoothUUID(decoding: asked.value)
        {
            var entries = told.entries
            while let entry = entries.next() {
                services[entry.handle.rawValue] = Service(
                    end: entry.endGroupHandle.rawValue,
                    uuid: uuid,
                    isPrimary: true
                )
            }
        } else if let asked = try? ReadByTypeRequest(decoding: request.rawSpan),
            let told = try? ReadByTypeResponse(decoding: response.rawSpan)
        {
            var entries = told.entries
            while let entry = entries.next() { note(entry.handle, asked.type, [UInt8](copying: entry.value)) }
        } else if let told = try? FindInformationResponse(decoding: response.rawSpan) {
            var entries = told.entries
            while let entry = entries.next() { types[entry.handle.rawValue] = entry.type }
        }
    }

    private mutating func note(_ handle: AttributeHandle, _ type: BluetoothUUID, _ value: [UInt8]) {
        var reader = ByteReader(value.rawSpan)
        switch type {
        case .include: includes[handle.rawValue] = try? reader.readUInt16()
        case .characteristic:
            // A declaration at 0xFFFF has no handle for its value.
            guard let properties = try? reader.readUInt8(), let valueHandle = try? reader.readUInt16(),
                handle != .last, valueHandle == handle.rawValue + 1,
                let uuid = try? BluetoothUUID(decoding: reader.readRemaining())
            else { return }
            characteristics[handle.rawValue] = Characteristic(properties: properties, uuid: uuid)
        default:
            types[handle.rawValue] = type
            noteRead(handle, .success(value))
        }
    }

    // MARK: Building

    /// The definitions of the services for a server; the app answers every value.
    var definitions: [ServiceDefinition] {
        var whole = self
        whole.supplyWhatWasNotDiscovered()
        return whole.services.keys.sorted().map { whole.definition($0) }
    }

    /// Adds places for attributes that were accessed but not discovered: clients that already know the database do not
    /// discover it.
    private mutating func supplyWhatWasNotDiscovered() {
        for handle in characteristics.keys.sorted() where service(of: handle) == nil {
            supplyService(before: handle, through: handle + 1)
        }
        for handle in accessed.sorted() where !isKnown(handle) {
            let owner = characteristics.keys.filter { $0 < handle }.max()
            if let service = service(of: handle), let owner, owner > service {
                types[handle] = types[handle] ?? (isConfiguration(handle) ? .clientCharacteristicConfiguration : nil)
            } else if service(of: handle) == nil, handle > 2, !isKnown(handle - 1), service(of: handle - 1) == nil {
                characteristics[handle - 1] = Characteristic(properties: 0x3E, uuid: types[handle] ?? "FFFF")
                supplyService(before: handle - 1, through: handle)
            }
        }
    }

    private mutating func supplyService(before handle: UInt16, through end: UInt16) {
        guard handle > 1, service(of: handle - 1) == nil else { return }
        services[handle - 1] = Service(end: end, uuid: "FFFF", isPrimary: true)
    }

    private func service(of handle: UInt16) -> UInt16? {
        services.first { $0.key <= handle && handle <= $0.value.end }?.key
    }

    private func isKnown(_ handle: UInt16) -> Bool {
        characteristics[handle] != nil || handle > 0 && characteristics[handle - 1] != nil || services[handle] != nil
            || includes[handle] != nil
    }

    /// Whether the value read of an attribute looks like a client's configuration.
    private func isConfiguration(_ handle: UInt16) -> Bool {
        guard case .success(let value)? = reads[handle]?.first else { return writes[handle] != nil }
        return value.count == 2 && value[1] == 0 && value[0] < 4
    }

    private func definition(_ handle: UInt16) -> ServiceDefinition {
        guard let service = services[handle] else { return ServiceDefinition(uuid: "FFFF") }
        let range = handle...max(handle, service.end)
        let declarations = characteristics.keys.filter { range.contains($0) }.sorted()
        return ServiceDefinition(
            uuid: service.uuid,
            isPrimary: service.isPrimary,
            handle: AttributeHandle(handle),
            endHandle: AttributeHandle(range.upperBound),
            includes: includes.keys.filter { range.contains($0) }.sorted().compactMap { includes[$0] }
                .filter { services[$0] != nil }.map { .handle(AttributeHandle($0)) },
            characteristics: declarations.enumerated().map { place, declaration in
                let last = place + 1 < declarations.count ? declarations[place + 1] - 1 : range.upperBound
                return definition(characteristic: declaration, through: last)
            }
        )
    }

    private func definition(characteristic handle: UInt16, through last: UInt16) -> CharacteristicDefinition {
        let characteristic = characteristics[handle] ?? Characteristic(properties: 0, uuid: "FFFF")
        let descriptors = Set(types.keys).union(accessed).filter { $0 > handle && $0 - handle > 1 && $0 <= last }
            .sorted()
        return CharacteristicDefinition(
            uuid: characteristic.uuid,
            handle: AttributeHandle(handle),
            properties: CharacteristicProperties(rawValue: characteristic.properties),
            permissions: permissions(of: handle + 1, CharacteristicProperties(rawValue: characteristic.properties)),
            value: .handled,
            generatesDescriptors: false,
            descriptors: descriptors.map { descriptor in
                let type = types[descriptor] ?? .characteristicUserDescription
                return DescriptorDefinition(
                    uuid: type,
                    handle: AttributeHandle(descriptor),
                    value: type == .clientCharacteristicConfiguration ? .stored([0, 0]) : .handled,
                    permissions: [.read, .write]
                )
            }
        )
    }

    /// The permissions that the properties imply and no refusal contradicts, or that a successful access shows.
    private func permissions(of handle: UInt16, _ properties: CharacteristicProperties) -> AttributePermissions {
        func hasSucceeded(_ answers: [Answer]?) -> Bool {
            answers?.contains { if case .success = $0 { true } else { false } } ?? false
        }
        var permissions: AttributePermissions = []
        let refusals = refusals[handle] ?? []
        if properties.contains(.read) && !refusals.contains(.readNotPermitted) || hasSucceeded(reads[handle]) {
            permissions.insert(.read)
        }
        let written: CharacteristicProperties = [.write, .writeWithoutResponse, .authenticatedSignedWrites]
        let isWritable = !properties.isDisjoint(with: written) && !refusals.contains(.writeNotPermitted)
        if isWritable || hasSucceeded(writes[handle]) { permissions.insert(.write) }
        return permissions
    }

    // MARK: Answering

    /// The result of the next access of this kind. A read or write without a further result repeats the last one; an
    /// execution of prepared writes without a further result succeeds.
    mutating func answer(_ access: AccessRequest.Kind) -> Answer {
        switch access {
        case .read(let handle, _): TracedDatabase.next(of: handle, in: &reads) ?? .success([])
        case .write(let write, _): TracedDatabase.next(of: write.handle, in: &writes) ?? .success([])
        case .execute: executions.isEmpty ? .success([]) : executions.removeFirst()
        }
    }

    private static func next(of handle: AttributeHandle, in answers: inout [UInt16: [Answer]]) -> Answer? {
        guard let first = answers[handle.rawValue]?.first else { return nil }
        if answers[handle.rawValue]?.count != 1 { answers[handle.rawValue]?.removeFirst() }
        return first
    }
}
