import BluetoothTypes

extension Profile {
    /// An attribute value has at most 512 bytes (Vol 3, Part F, 3.2.9).
    private static let longestValue = 512
    /// In bytes (Vol 3, Part C, 12.1).
    private static let longestName = 248

    /// Reads a profile strictly: unknown keys and bad values are errors.
    package init(decoding json: JSON) throws(ProfileError) {
        let root = ProfileReader(value: json, place: "")
        let members = try root.members(["name", "appearance", "address", "advertise", "services"])
        if let reader = members["name"] {
            let name = try reader.string()
            guard name.utf8.count <= Profile.longestName else {
                throw reader.error("the name has \(name.utf8.count) bytes; the maximum is \(Profile.longestName)")
            }
            self.name = name
        }
        if let reader = members["appearance"] {
            appearance = Appearance(rawValue: UInt16(try reader.integer(in: 0...0xFFFF)))
        }
        if let reader = members["address"] { address = try Profile.address(reader) }
        if let reader = members["advertise"] { advertise = try Advertise(reader) }
        let serviceReaders = try members["services"]?.elements() ?? []
        for (index, reader) in serviceReaders.enumerated() {
            services.append(try Service(reader, index: index, count: serviceReaders.count))
        }
    }

    private static func address(_ reader: ProfileReader) throws(ProfileError) -> DeviceAddress {
        let text = try reader.string()
        guard let address = DeviceAddress(text, isRandom: true) else {
            throw reader.error("\"\(terminalSafe(text))\" is not an address, as F0:12:34:56:78:9A is")
        }
        guard address.kind == .randomStatic else {
            throw reader.error("\"\(text)\" is not a random static address: its first pair must be C0 to FF")
        }
        return address
    }

    fileprivate static func value(_ reader: ProfileReader) throws(ProfileError) -> [UInt8] {
        var value: [UInt8]
        if case .object = reader.value {
            value = Array(try reader.members(["text"]).required("text").string().utf8)
        } else if case .string = reader.value {
            value = try reader.bytes()
        } else {
            throw reader.error("expected hexadecimal digits or {\"text\": ...}, not \(reader.value.kind)")
        }
        guard value.count <= longestValue else {
            throw reader.error("the value has \(value.count) bytes; the maximum is \(longestValue)")
        }
        return value
    }

    fileprivate static func permissions(_ reader: ProfileReader) throws(ProfileError) -> Set<AttributePermission> {
        var permissions: Set<AttributePermission> = []
        for element in try reader.elements() {
            permissions.insert(try element.word(AttributePermission.self, "a permission"))
        }
        return permissions
    }
}

extension Profile.Advertise {
    fileprivate init(_ reader: ProfileReader) throws(ProfileError) {
        self.init()
        let members = try reader.members([
            "services", "serviceData", "manufacturerData", "connectable", "interval", "periodic",
            "phy", "coding",
        ])
        if let reader = members["services"] {
            for element in try reader.elements() { services.append(try element.uuid()) }
        }
        for (key, reader) in try members["serviceData"]?.entries() ?? [] {
            guard let service = BluetoothUUID(key) else { throw reader.error(BluetoothUUID.problem(of: key)) }
            // The same UUID may be written in several widths.
            guard !serviceData.contains(where: { $0.service == service }) else { throw reader.error("given twice") }
            let data = try Self.data(reader, after: service.width.byteCount)
            serviceData.append(Profile.ServiceData(service: service, data: data))
        }
        for (key, reader) in try members["manufacturerData"]?.entries() ?? [] {
            // `UInt16` would also accept a sign.
            guard key.utf8.count == 4, key.allSatisfy(\.isHexDigit), let company = UInt16(key, radix: 16) else {
                throw reader.error("the key is not a company's number: use 4 hexadecimal digits, as in 004C")
            }
            let identifier = CompanyIdentifier(rawValue: company)
            guard !manufacturerData.contains(where: { $0.company == identifier }) else {
                throw reader.error("given twice")
            }
            let data = try Self.data(reader, after: 2)
            manufacturerData.append(AdvertisingData.ManufacturerData(company: identifier, data: data))
        }
        if let reader = members["connectable"] { isConnectable = try reader.bool() }
        if let reader = members["interval"] {
            interval = .microseconds(Int(try reader.number(in: 20...10240) * 1000))
        }
        if let reader = members["phy"] { phy = try reader.word(Profile.PHY.self, "a PHY") }
        if let reader = members["coding"] {
            coding = try reader.word(Profile.Coding.self, "a coding")
            guard phy == .coded else { throw reader.error("a coding goes with \"phy\": \"coded\"") }
        }
        periodic = try members["periodic"].map(Profile.Periodic.init)
    }

    /// The maximum length of an AD structure after its type, in bytes (Vol 3, Part C, 11).
    private static let longestStructure = 254

    /// Reads the data that an AD structure has after an identifier.
    ///
    /// - Parameter length: the length of the identifier, in bytes.
    private static func data(_ reader: ProfileReader, after length: Int) throws(ProfileError) -> [UInt8] {
        let data = try reader.bytes()
        guard data.count <= longestStructure - length else {
            throw reader.error("the data has \(data.count) bytes; the maximum is \(longestStructure - length)")
        }
        return data
    }
}

extension Profile.Periodic {
    fileprivate init(_ reader: ProfileReader) throws(ProfileError) {
        self.init()
        let members = try reader.members(["interval", "data"])
        if let reader = members["interval"] {
            interval = .microseconds(Int(try reader.number(in: 7.5...81_918) * 1000))
        }
        guard let reader = members["data"] else { return }
        data = try reader.bytes()
        guard data.count <= 1650 else {
            throw reader.error("the data of a train has \(data.count) bytes; the maximum is 1650")
        }
    }
}

extension Profile.Service {
    fileprivate init(_ reader: ProfileReader, index: Int, count: Int) throws(ProfileError) {
        let members = try reader.members(["uuid", "primary", "handle", "includes", "characteristics"])
        uuid = try members.required("uuid").uuid()
        isPrimary = try members["primary"]?.bool() ?? true
        handle = try members["handle"]?.handle()
        includes = []
        for element in try members["includes"]?.elements() ?? [] {
            let included = try element.integer(in: 0...Int(UInt16.max))
            guard included < count else { throw element.error("there is no services[\(included)]") }
            guard included != index else { throw element.error("a service cannot include itself") }
            includes.append(included)
        }
        characteristics = []
        for element in try members["characteristics"]?.elements() ?? [] {
            characteristics.append(try Profile.Characteristic(element))
        }
    }
}

extension Profile.Characteristic {
    fileprivate init(_ reader: ProfileReader) throws(ProfileError) {
        let members = try reader.members([
            "uuid", "handle", "properties", "permissions", "value", "maxLength", "descriptors",
        ])
        uuid = try members.required("uuid").uuid()
        handle = try members["handle"]?.handle()
        properties = []
        for element in try members.required("properties").elements() {
            properties.insert(try element.word(CharacteristicProperty.self, "a property"))
        }
        permissions =
            try members["permissions"].map(Profile.permissions) ?? Profile.Characteristic.permissions(for: properties)
        value = try members["value"].map(Profile.value) ?? []
        maximumLength = try members["maxLength"]?.integer(in: 0...512) ?? 512
        if let reader = members["maxLength"], value.count > maximumLength {
            throw reader.error("the value has \(value.count) bytes, more than \(maximumLength)")
        }
        descriptors = []
        for element in try members["descriptors"]?.elements() ?? [] {
            descriptors.append(try Profile.Descriptor(element, ofValueWith: permissions))
        }
    }

    /// Returns the permissions that the properties imply, for a characteristic without permissions.
    private static func permissions(for properties: Set<CharacteristicProperty>) -> Set<AttributePermission> {
        var permissions: Set<AttributePermission> = []
        if properties.contains(.read) { permissions.insert(.read) }
        if !properties.isDisjoint(with: [.write, .writeWithoutResponse]) { permissions.insert(.write) }
        if properties.contains(.authenticatedSignedWrites) { permissions.insert(.writeSigned) }
        return permissions
    }
}

extension Profile.Descriptor {
    /// - Parameter valuePermissions: the permissions of the characteristic's value.
    fileprivate init(
        _ reader: ProfileReader,
        ofValueWith valuePermissions: Set<AttributePermission>
    ) throws(ProfileError) {
        let members = try reader.members(["uuid", "handle", "value", "permissions"])
        uuid = try members.required("uuid").uuid()
        handle = try members["handle"]?.handle()
        value = try members["value"].map(Profile.value) ?? []
        permissions =
            try members["permissions"].map(Profile.permissions)
            ?? Profile.Descriptor.permissions(for: uuid, valuePermissions)
    }

    /// Returns the permissions of a descriptor without permissions. A client that may not read the value may not
    /// subscribe to it either.
    private static func permissions(
        for uuid: BluetoothUUID,
        _ valuePermissions: Set<AttributePermission>
    ) -> Set<AttributePermission> {
        guard uuid == .clientCharacteristicConfiguration else { return [.read] }
        var permissions: Set<AttributePermission> = [.read, .write]
        if valuePermissions.contains(.readEncrypted) { permissions.insert(.writeEncrypted) }
        if valuePermissions.contains(.readAuthenticated) { permissions.insert(.writeAuthenticated) }
        if valuePermissions.contains(.readSecureConnections) { permissions.insert(.writeSecureConnections) }
        if valuePermissions.contains(.readAuthorized) { permissions.insert(.writeAuthorized) }
        return permissions
    }
}
