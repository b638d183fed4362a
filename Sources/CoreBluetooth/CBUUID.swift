// swift-format-ignore-file: AlwaysUseLowerCamelCase
// The constants have the names that Apple gave them.

import BluetoothTypes
import Foundation
import Synchronization

/// A UUID of 16, 32 or 128 bits that identifies a service, a characteristic or a descriptor.
///
/// UUIDs are equal if their 128-bit forms over the Bluetooth Base UUID are equal. Each keeps the width in which it was
/// made, because the width decides how it is sent (Vol 3, Part B, 2.5.1).
open class CBUUID: NSObject, NSCopying, @unchecked Sendable {
    // @unchecked: the class is open, which the compiler does not check; its properties are constant.

    let value: BluetoothUUID

    init(_ value: BluetoothUUID) {
        self.value = value
    }

    /// The UUIDs of 16 bits that were heard, of which there are few. The number is bounded, because peers choose them.
    private static let heard = Mutex<[UInt16: CBUUID]>([:])
    private static let heardLimit = 1024

    /// Returns an object for a UUID of a peer: a new one, or, for a UUID of 16 bits, one that was returned before.
    static func shared(_ value: BluetoothUUID) -> CBUUID {
        guard value.width == .bits16, let number = value.shortValue.flatMap({ UInt16(exactly: $0) }) else {
            return CBUUID(value)
        }
        return heard.withLock { heard in
            if let uuid = heard[number] { return uuid }
            let uuid = CBUUID(value)
            if heard.count < heardLimit { heard[number] = uuid }
            return uuid
        }
    }

    /// Creates a UUID from 4 or 8 hexadecimal digits, or from the hyphenated form of 36 characters, in either case.
    ///
    /// - Precondition: `theString` has one of these forms.
    public init(string theString: String) {
        guard let value = BluetoothUUID(theString) else {
            ProgrammerError.raise(
                "\"\(theString)\" is no UUID: 4 or 8 hexadecimal digits or the form of 36 characters are"
            )
        }
        self.value = value
    }

    /// Creates a UUID from 2, 4 or 16 bytes, most significant first.
    ///
    /// - Precondition: `theData` has one of these lengths.
    public init(data theData: Data) {
        let number = theData.reduce(0 as UInt128) { $0 << 8 | UInt128($1) }
        switch theData.count {
        case 2: value = BluetoothUUID(UInt16(truncatingIfNeeded: number))
        case 4: value = BluetoothUUID(UInt32(truncatingIfNeeded: number))
        case 16: value = BluetoothUUID(number)
        default: ProgrammerError.raise("a UUID has 2, 4 or 16 bytes, not \(theData.count)")
        }
    }

    /// Creates a UUID of 128 bits.
    public init(nsuuid theUUID: UUID) {
        value = BluetoothUUID(theUUID)
    }

    /// Creates a UUID of 128 bits.
    @available(*, deprecated, message: "Use init(nsuuid:)")
    public init(cfuuid theUUID: CFUUID) {
        let bytes = CFUUIDGetUUIDBytes(theUUID)
        let octets = unsafe withUnsafeBytes(of: bytes) { unsafe Array($0) }
        value = BluetoothUUID(octets.reduce(0 as UInt128) { $0 << 8 | UInt128($1) })
    }

    /// The UUID in its own width, most significant byte first.
    open var data: Data {
        let octets = unsafe withUnsafeBytes(of: value.value.bigEndian) { unsafe Data($0) }
        return switch value.width {
        case .bits16: octets[2..<4].asIndependentData
        case .bits32: octets[0..<4].asIndependentData
        case .bits128: octets
        }
    }

    /// The UUID as upper-case hexadecimal digits: 4, 8 or 36 characters, depending on the width.
    open var uuidString: String { value.description }

    /// The name of a UUID that the Bluetooth SIG defines, such as "Heart Rate"; ``uuidString`` for others.
    open override var description: String { value.assignedName ?? uuidString }

    open override var hash: Int { value.hashValue }

    open override func isEqual(_ object: Any?) -> Bool {
        (object as? CBUUID)?.value == value
    }

    open func copy(with zone: NSZone? = nil) -> Any { self }
}

extension BluetoothUUID {
    init(_ uuid: UUID) {
        let octets = unsafe withUnsafeBytes(of: uuid.uuid) { unsafe Array($0) }
        self.init(octets.reduce(0 as UInt128) { $0 << 8 | UInt128($1) })
    }

    /// The name, if the SIG itself defines the UUID; nil if it is assigned to a member (0xFC00 and above) or unknown.
    fileprivate var assignedName: String? {
        guard let shortValue, shortValue < 0xFC00 else { return nil }
        return name
    }
}

extension Data {
    /// The same bytes with indices from zero.
    fileprivate var asIndependentData: Data { Data(Array(self)) }
}

extension [CBUUID] {
    var values: [BluetoothUUID] { map(\.value) }
}

/// The UUID of the Characteristic Extended Properties descriptor; its value is an `NSNumber`.
public let CBUUIDCharacteristicExtendedPropertiesString = "2900"
/// The UUID of the Characteristic User Description descriptor; its value is a `String`.
public let CBUUIDCharacteristicUserDescriptionString = "2901"
/// The UUID of the Client Characteristic Configuration descriptor; its value is an `NSNumber`.
public let CBUUIDClientCharacteristicConfigurationString = "2902"
/// The UUID of the Server Characteristic Configuration descriptor; its value is an `NSNumber`.
public let CBUUIDServerCharacteristicConfigurationString = "2903"
/// The UUID of the Characteristic Presentation Format descriptor; its value is `Data`.
public let CBUUIDCharacteristicFormatString = "2904"
/// The UUID of the Characteristic Aggregate Format descriptor; its value is `Data`.
public let CBUUIDCharacteristicAggregateFormatString = "2905"
/// The UUID of the Valid Range descriptor; its value is `Data`.
public let CBUUIDCharacteristicValidRangeString = "2906"
/// The UUID of the Observation Schedule descriptor; its value is `Data`.
public let CBUUIDCharacteristicObservationScheduleString = "2910"
/// The UUID of the characteristic that contains the PSM of an L2CAP channel: two bytes, least significant first.
public let CBUUIDL2CAPPSMCharacteristicString = "ABDD3056-28FA-441D-A470-55A75A52553A"
