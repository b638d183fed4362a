import BLEProfiles
import BluetoothTypes

/// The peer that a command is meant for.
enum Target: Hashable, Sendable {
    /// A device by its address; the digits do not say whether it is public or random.
    case address(UInt64)
    /// A device by its local name, in any case.
    case name(String)
    /// The first device that advertises the service.
    case service(BluetoothUUID)

    /// Reads an address in either case, `service:UUID`, or else a name.
    init(argument text: String) throws(ArgumentProblem) {
        if let address = DeviceAddress(text, isRandom: true) {
            self = .address(address.value)
        } else if text.hasPrefix("service:") {
            self = .service(try BluetoothUUID(argument: String(text.dropFirst("service:".count))))
        } else if text.isEmpty {
            throw ArgumentProblem("the target is empty; give an address, a name or service:UUID")
        } else if text.split(separator: ":", omittingEmptySubsequences: false).count > 2,
            text.allSatisfy({ $0 == ":" || $0.isASCII && $0.isHexDigit })
        {
            throw ArgumentProblem("\"\(text)\" is not an address: it has six pairs of digits, as in F0:12:34:56:78:9A")
        } else {
            self = .name(text)
        }
    }

    /// Whether an advertiser matches this target.
    func matches(_ address: DeviceAddress, _ data: AdvertisingData) -> Bool {
        switch self {
        case .address(let value): address.value == value
        case .name(let name): data.localName?.lowercased() == name.lowercased()
        case .service(let uuid): data.serviceUUIDs.contains(uuid)
        }
    }
}

extension Target: CustomStringConvertible {
    var description: String {
        switch self {
        case .address(let value): "\(DeviceAddress(value, isRandom: true))"
        case .name(let name): "\"\(terminalSafe(name))\""
        case .service(let uuid): "service \(uuid.withName)"
        }
    }
}
