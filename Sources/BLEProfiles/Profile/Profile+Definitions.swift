import BLEGATT
import BluetoothTypes

extension Profile {
    /// The services in the form that the server needs.
    package var definitions: [ServiceDefinition] {
        services.map { service in
            ServiceDefinition(
                uuid: service.uuid,
                isPrimary: service.isPrimary,
                handle: service.handle,
                includes: service.includes.map { .index($0) },
                characteristics: service.characteristics.map(\.definition)
            )
        }
    }
}

extension Profile.Characteristic {
    fileprivate var definition: CharacteristicDefinition {
        CharacteristicDefinition(
            uuid: uuid,
            handle: handle,
            properties: CharacteristicProperties(rawValue: properties.reduce(0) { $0 | $1.bit }),
            permissions: AttributePermissions(permissions),
            value: .stored(value, maximumLength: maximumLength),
            descriptors: descriptors.map { descriptor in
                DescriptorDefinition(
                    uuid: descriptor.uuid,
                    handle: descriptor.handle,
                    value: .stored(descriptor.value),
                    permissions: AttributePermissions(descriptor.permissions)
                )
            }
        )
    }
}

extension AttributePermissions {
    fileprivate init(_ permissions: Set<AttributePermission>) {
        self.init(permissions.map(\.option))
    }
}

extension AttributePermission {
    fileprivate var option: AttributePermissions {
        switch self {
        case .read: .read
        case .write: .write
        case .readEncrypted: .readEncrypted
        case .writeEncrypted: .writeEncrypted
        case .readAuthenticated: .readAuthenticated
        case .writeAuthenticated: .writeAuthenticated
        case .readSecureConnections: .readSecureConnections
        case .writeSecureConnections: .writeSecureConnections
        case .readAuthorized: .readAuthorized
        case .writeAuthorized: .writeAuthorized
        case .writeSigned: .writeSigned
        }
    }
}

extension Profile {
    /// Whether an attribute is only for paired clients: it requires encryption or a signature.
    package var needsPairing: Bool {
        let protected: Set<AttributePermission> = [
            .readEncrypted, .writeEncrypted, .readAuthenticated, .writeAuthenticated, .readSecureConnections,
            .writeSecureConnections, .writeSigned,
        ]
        return services.flatMap(\.characteristics).contains { characteristic in
            !characteristic.permissions.isDisjoint(with: protected)
                || characteristic.descriptors.contains { !$0.permissions.isDisjoint(with: protected) }
        }
    }
}
