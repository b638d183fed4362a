import BluetoothTypes

/// An attribute that a peer does not have.
public enum MissingAttribute: Hashable, Sendable {
    /// The peer has no primary service with this UUID.
    case service(BluetoothUUID)
    /// None of the peer's primary services with UUID `service` has this characteristic.
    case characteristic(BluetoothUUID, service: BluetoothUUID)
    /// The peer's characteristic does not have this descriptor.
    case descriptor(BluetoothUUID, characteristic: BluetoothUUID)
}

extension MissingAttribute: CustomStringConvertible {
    public var description: String {
        switch self {
        case .service(let uuid): "service \(uuid)"
        case .characteristic(let uuid, let service): "characteristic \(uuid) in service \(service)"
        case .descriptor(let uuid, let characteristic): "descriptor \(uuid) of characteristic \(characteristic)"
        }
    }
}
