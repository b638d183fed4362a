import BLEByteCoding

extension AdvertisingData {
    /// One AD structure to be encoded. Its data has at most 254 bytes; longer data is truncated.
    ///
    /// A list of UUIDs is truncated after the last UUID that fits, and a text after the last character that fits. The
    /// list of services is then sent as incomplete, and the name as shortened (Core Specification Supplement, Part A,
    /// 1.1 and 1.2).
    public enum Structure: Hashable, Sendable {
        /// Flags: discoverability and BR/EDR support.
        case flags(AdvertisingFlags)
        /// A list of services of the first UUID's width. UUIDs of other widths are left out.
        case serviceUUIDs([BluetoothUUID], isComplete: Bool)
        /// A list of services that the device looks for, of the first UUID's width. UUIDs of other widths are left out.
        case solicitedServiceUUIDs([BluetoothUUID])
        /// Data of a service.
        case serviceData(BluetoothUUID, [UInt8])
        /// The first part of the local name, in UTF-8.
        case shortenedLocalName(String)
        /// The whole local name, in UTF-8.
        case completeLocalName(String)
        /// The transmitted power in dBm: -127 to 127.
        case txPowerLevel(Int8)
        /// Data that a company defines.
        case manufacturerData(CompanyIdentifier, [UInt8])
        /// The appearance.
        case appearance(Appearance)
        /// The advertising interval in units of 0.625 ms. A value that does not fit 16 bits is sent in 24 or 32 bits.
        case advertisingInterval(UInt32)
        /// The minimum and maximum interval that the peripheral prefers, in units of 1.25 ms; 0xFFFF is none.
        case peripheralConnectionIntervalRange(UInt16, UInt16)
        /// The address of a device that the advertisement is meant for.
        case targetAddress(DeviceAddress)
        /// The GAP roles.
        case leRole(LERole)
        /// The scheme's code point and the rest of the URI, in UTF-8.
        case uri(String)
        /// Any structure, by its type and data.
        case raw(ADType, [UInt8])

        /// Returns lists of services, one structure for each width that occurs, in the order 16, 32, 128 bits.
        public static func lists(of uuids: [BluetoothUUID], isComplete: Bool = true) -> [Structure] {
            [BluetoothUUID.Width.bits16, .bits32, .bits128].compactMap { width in
                let list = uuids.filter { $0.width == width }
                return list.isEmpty ? nil : .serviceUUIDs(list, isComplete: isComplete)
            }
        }

        /// Appends length, type and data.
        public func encode(into buffer: inout PacketBuffer) {
            let start = buffer.count
            buffer.append(UInt8(0))
            buffer.append(type.rawValue)
            encodeData(into: &buffer)
            buffer.truncate(to: start + 2 + Self.maximumLength)
            buffer.overwrite(at: start, with: UInt8(truncatingIfNeeded: buffer.count - start - 1))
        }

        /// The type of the encoded structure.
        public var type: ADType {
            switch self {
            case .flags: .flags
            case .serviceUUIDs(let uuids, let isComplete):
                switch (uuids.first?.width, isComplete && Self.fits(uuids)) {
                case (.bits32, true): .completeServiceUUIDs32
                case (.bits32, false): .incompleteServiceUUIDs32
                case (.bits128, true): .completeServiceUUIDs128
                case (.bits128, false): .incompleteServiceUUIDs128
                case (_, true): .completeServiceUUIDs16
                case (_, false): .incompleteServiceUUIDs16
                }
            case .solicitedServiceUUIDs(let uuids):
                switch uuids.first?.width {
                case .bits32: .solicitedServiceUUIDs32
                case .bits128: .solicitedServiceUUIDs128
                default: .solicitedServiceUUIDs16
                }
            case .serviceData(let uuid, _):
                switch uuid.width {
                case .bits16: .serviceData16
                case .bits32: .serviceData32
                case .bits128: .serviceData128
                }
            case .shortenedLocalName: .shortenedLocalName
            case .completeLocalName(let name):
                name.utf8.count <= Self.maximumLength ? .completeLocalName : .shortenedLocalName
            case .txPowerLevel: .txPowerLevel
            case .manufacturerData: .manufacturerSpecificData
            case .appearance: .appearance
            case .advertisingInterval(let interval):
                interval <= UInt32(UInt16.max) ? .advertisingInterval : .advertisingIntervalLong
            case .peripheralConnectionIntervalRange: .peripheralConnectionIntervalRange
            case .targetAddress(let address): address.isRandom ? .randomTargetAddress : .publicTargetAddress
            case .leRole: .leRole
            case .uri: .uri
            case .raw(let type, _): type
            }
        }

        /// The maximum length of the data: the length field counts up to 255 bytes, of which the type is one.
        private static let maximumLength = 254

        /// The UUIDs of the first one's width.
        private static func list(_ uuids: [BluetoothUUID]) -> [BluetoothUUID] {
            uuids.filter { $0.width == uuids[0].width }
        }

        /// Whether a structure has room for a whole list of UUIDs.
        private static func fits(_ uuids: [BluetoothUUID]) -> Bool {
            list(uuids).reduce(0) { $0 + $1.width.byteCount } <= maximumLength
        }

        /// The first characters of a text, as many as fit.
        private static func prefix(of text: String) -> Substring {
            var length = 0
            return text.prefix { character in
                length += character.utf8.count
                return length <= maximumLength
            }
        }

        private func encodeData(into buffer: inout PacketBuffer) {
            switch self {
            case .flags(let flags): buffer.append(flags.rawValue)
            case .serviceUUIDs(let uuids, _), .solicitedServiceUUIDs(let uuids):
                let list = Self.list(uuids)
                guard let width = list.first?.width.byteCount else { return }
                for uuid in list.prefix(Self.maximumLength / width) { uuid.encode(into: &buffer) }
            case .serviceData(let uuid, let data):
                uuid.encode(into: &buffer)
                buffer.append(data)
            case .shortenedLocalName(let text), .completeLocalName(let text), .uri(let text):
                buffer.append(Array(Self.prefix(of: text).utf8))
            case .txPowerLevel(let level): buffer.append(level)
            case .manufacturerData(let company, let data):
                buffer.append(company.rawValue)
                buffer.append(data)
            case .appearance(let appearance): buffer.append(appearance.rawValue)
            case .advertisingInterval(let interval):
                if interval <= UInt32(UInt16.max) {
                    buffer.append(UInt16(interval))
                } else if interval <= 0xFF_FFFF {
                    buffer.appendUInt24(interval)
                } else {
                    buffer.append(interval)
                }
            case .peripheralConnectionIntervalRange(let minimum, let maximum):
                buffer.append(minimum)
                buffer.append(maximum)
            case .targetAddress(let address): buffer.appendUInt48(address.value)
            case .leRole(let role): buffer.append(role.rawValue)
            case .raw(_, let data): buffer.append(data)
            }
        }
    }
}
