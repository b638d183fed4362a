import BLEATT
import BLEByteCoding
import BluetoothTypes

/// A server's attributes that a capture shows: the types that clients have discovered.
final class ObservedDatabase {
    /// The known information about one attribute.
    struct Attribute {
        var type: BluetoothUUID
        /// The characteristic of a descriptor.
        var characteristic: BluetoothUUID?
    }

    /// Maximum number of attributes, more than any known device has. Further attributes are not kept.
    private static let limit = 4096

    private var attributes: [UInt16: Attribute] = [:]
    /// Value handles in ascending order, to find the characteristic of a descriptor.
    private var valueHandles: [UInt16] = []
    private var services: [(handles: ClosedRange<UInt16>, uuid: BluetoothUUID)] = []

    subscript(handle: UInt16) -> Attribute? { attributes[handle] }

    /// Returns the service that contains an attribute.
    func service(of handle: UInt16) -> BluetoothUUID? {
        services.first { $0.handles.contains(handle) }?.uuid
    }

    /// Stores the type of the attribute at `handle`, as reported to a client.
    func note(_ handle: UInt16, type: BluetoothUUID) {
        guard attributes.count < ObservedDatabase.limit || attributes[handle] != nil else { return }
        var characteristic: BluetoothUUID?
        if type.isDescriptor {
            let index = valueHandles.firstIndex { $0 > handle } ?? valueHandles.endIndex
            if index > 0 { characteristic = attributes[valueHandles[index - 1]]?.type }
        }
        attributes[handle] = Attribute(type: type, characteristic: characteristic)
    }

    func noteService(_ handles: ClosedRange<UInt16>, uuid: BluetoothUUID, type: BluetoothUUID) {
        note(handles.lowerBound, type: type)
        // A service with the same start handle replaces the earlier one.
        if let known = services.firstIndex(where: { $0.handles.lowerBound == handles.lowerBound }) {
            services[known] = (handles, uuid)
        } else if services.count < 512 {
            services.append((handles, uuid))
        }
    }

    /// Stores a characteristic from its declaration.
    func noteCharacteristic(declaration: UInt16, value: RawSpan) {
        var reader = ByteReader(value)
        guard (try? reader.readUInt8()) != nil, let valueHandle = try? reader.readUInt16(),
            let uuid = try? BluetoothUUID(decoding: reader.readRemaining())
        else { return }
        note(declaration, type: .characteristic)
        note(valueHandle, type: uuid)
        guard attributes[valueHandle] != nil else { return }
        let index = valueHandles.firstIndex { $0 >= valueHandle } ?? valueHandles.endIndex
        if index == valueHandles.endIndex || valueHandles[index] != valueHandle {
            valueHandles.insert(valueHandle, at: index)
        }
    }
}

extension BluetoothUUID {
    /// Whether the type is that of a descriptor (Assigned Numbers, 3.7).
    var isDescriptor: Bool { shortValue.map { 0x2900...0x29FF ~= $0 } ?? false }
}
