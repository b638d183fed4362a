import BLEATT
import BLEByteCoding
import BLEGATT
import BluetoothHost
import BluetoothTypes

/// An operation that a device started on its own, recognized by its first frame.
enum LinkInitiative {
    case mtu(UInt16)
    case services(isPrimary: Bool)
    case servicesOf(BluetoothUUID)
    case included(HandleRange)
    case characteristics(HandleRange)
    case values(BluetoothUUID, HandleRange)
    case databaseHash
    case descriptors(HandleRange)
    case value(AttributeHandle)
    case longValue(AttributeHandle)
    case severalValues([AttributeHandle])
    case severalVariableValues([AttributeHandle])
    case write([UInt8], AttributeHandle)
    case writeWithoutResponse([UInt8], AttributeHandle)
    case preparedWrites([PreparedWrites.Write])
    case notification([UInt8], AttributeHandle)
    case indication([UInt8], AttributeHandle)
    case pairing

    /// - Parameters:
    ///   - pdu: a PDU of the attribute channel.
    ///   - following: the steps after it on the link.
    init?(of pdu: [UInt8], before following: some Sequence<LinkPlan.Step>) {
        let ours = following.lazy.filter { $0.channel == .attribute && $0.isOurs && $0.isFromServersClient }
        let bytes = pdu.rawSpan
        guard let opcode = pdu.first.flatMap(ATTOpcode.init(rawValue:)) else { return nil }
        switch opcode {
        case .exchangeMTURequest:
            guard let request = try? ExchangeMTURequest(decoding: bytes) else { return nil }
            self = .mtu(request.clientReceiveMTU)
        case .readByGroupTypeRequest:
            guard let request = try? ReadByGroupTypeRequest(decoding: bytes) else { return nil }
            self = .services(isPrimary: request.groupType != .secondaryService)
        case .findByTypeValueRequest:
            guard let request = try? FindByTypeValueRequest(decoding: bytes),
                let uuid = try? BluetoothUUID(decoding: request.value)
            else { return nil }
            self = .servicesOf(uuid)
        case .readByTypeRequest:
            guard let request = try? ReadByTypeRequest(decoding: bytes) else { return nil }
            switch request.type {
            case .include: self = .included(request.range)
            case .characteristic: self = .characteristics(request.range)
            case .databaseHash: self = .databaseHash
            default: self = .values(request.type, request.range)
            }
        case .findInformationRequest:
            guard let request = try? FindInformationRequest(decoding: bytes) else { return nil }
            self = .descriptors(request.range)
        case .readRequest:
            guard let request = try? ReadRequest(decoding: bytes) else { return nil }
            let next = ours.first { _ in true }?.payload
            let goesOn = next.flatMap { try? ReadBlobRequest(decoding: $0.rawSpan) }?.handle == request.handle
            self = goesOn ? .longValue(request.handle) : .value(request.handle)
        case .readMultipleRequest: self = .severalValues(LinkInitiative.handles(pdu))
        case .readMultipleVariableRequest: self = .severalVariableValues(LinkInitiative.handles(pdu))
        case .writeRequest:
            guard let request = try? WriteRequest(decoding: bytes) else { return nil }
            self = .write([UInt8](copying: request.value), request.handle)
        case .writeCommand:
            guard let command = try? WriteCommand(decoding: bytes) else { return nil }
            self = .writeWithoutResponse([UInt8](copying: command.value), command.handle)
        case .prepareWriteRequest: self = .preparedWrites(LinkInitiative.writes(pdu, ours.map(\.payload)))
        case .handleValueNotification:
            guard let value = try? HandleValueNotification(decoding: bytes) else { return nil }
            self = .notification([UInt8](copying: value.value), value.handle)
        case .handleValueIndication:
            guard let value = try? HandleValueIndication(decoding: bytes) else { return nil }
            self = .indication([UInt8](copying: value.value), value.handle)
        default: return nil
        }
    }

    /// Whether a request discovers attributes by their types, in a range of handles.
    static func isDiscovery(_ pdu: [UInt8]) -> Bool {
        switch pdu.first.flatMap(ATTOpcode.init(rawValue:)) {
        case .findInformationRequest, .findByTypeValueRequest, .readByTypeRequest, .readByGroupTypeRequest: true
        default: false
        }
    }

    private static func handles(_ pdu: [UInt8]) -> [AttributeHandle] {
        var reader = ByteReader(pdu.rawSpan)
        var handles: [AttributeHandle] = []
        _ = try? reader.readUInt8()
        while let handle = try? reader.readUInt16() { handles.append(AttributeHandle(handle)) }
        return handles
    }

    /// The values of the prepared parts, up to the request that executes them.
    private static func writes(_ first: [UInt8], _ following: some Sequence<[UInt8]>) -> [PreparedWrites.Write] {
        var writes: [PreparedWrites.Write] = []
        func add(_ pdu: [UInt8]) -> Bool {
            guard let request = try? PrepareWriteRequest(decoding: pdu.rawSpan) else { return false }
            let value = [UInt8](copying: request.partValue)
            if let last = writes.last, last.handle == request.handle, last.value.count == Int(request.offset) {
                writes[writes.count - 1] = .init(handle: last.handle, value: last.value + value)
            } else {
                writes.append(.init(handle: request.handle, value: value))
            }
            return true
        }
        _ = add(first)
        for pdu in following where !add(pdu) { break }
        return writes
    }

    /// Performs the operation on a link.
    func take(on host: BluetoothHost, _ link: LinkIdentifier) async throws(HostError) {
        switch self {
        case .mtu(let mtu) where mtu > UInt16(Bearer.defaultMTU): try await host.requestMTU(on: link)
        case .mtu(let mtu): _ = try await host.perform(ExchangeMTU(offered: mtu), on: link)
        case .services(let isPrimary): _ = try await host.perform(DiscoverServices(isPrimary: isPrimary), on: link)
        case .servicesOf(let uuid): _ = try await host.perform(DiscoverServicesByUUID(uuid: uuid), on: link)
        case .included(let range): _ = try await host.perform(FindIncludedServices(range: range), on: link)
        case .characteristics(let range): _ = try await host.perform(DiscoverCharacteristics(range: range), on: link)
        case .values(let uuid, let range):
            _ = try await host.perform(ReadUsingUUID(uuid: uuid, range: range), on: link)
        case .databaseHash: _ = try await host.perform(ReadDatabaseHash(), on: link)
        case .descriptors(let range): _ = try await host.perform(DiscoverDescriptors(range: range), on: link)
        case .value(let handle): _ = try await host.perform(ReadValue(handle: handle), on: link)
        case .longValue(let handle): _ = try await host.perform(ReadLongValue(handle: handle), on: link)
        case .severalValues(let handles): _ = try await host.perform(ReadMultipleValues(handles: handles), on: link)
        case .severalVariableValues(let handles):
            _ = try await host.perform(ReadMultipleVariableValues(handles: handles), on: link)
        case .write(let value, let handle): try await host.perform(WriteValue(handle: handle, value: value), on: link)
        case .writeWithoutResponse(let value, let handle):
            try await host.writeWithoutResponse(value, to: handle, on: link)
        case .preparedWrites(let writes): try await host.perform(PreparedWrites(writes), on: link)
        case .notification(let value, let handle): try await host.notify(value, of: handle, to: [link])
        case .indication(let value, let handle): try await host.indicate(value, of: handle, to: link)
        case .pairing: _ = try await host.secure(link, .encryption)
        }
    }
}
