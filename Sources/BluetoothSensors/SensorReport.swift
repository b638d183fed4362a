/// What one advertisement says about its device: readings with units, and how far they can be trusted.
public struct SensorReport: Hashable, Sendable {
    /// The format of the advertisement.
    public var format: SensorFormat
    /// The device model, if the format names one.
    public var model: String?
    /// The firmware, if the format names one.
    public var firmware: String?
    /// Whether the readings are protected against forgery. Readings exist only for `none` and `authenticated`.
    public var protection: SensorProtection
    /// The packet number that the device counts, if there is one.
    public var counter: UInt32?
    /// Whether the report repeats an earlier one of the device. A repeated report has no events. Its other readings may
    /// be new all the same: some devices send the same packet number with each value.
    public var isRepeat: Bool
    /// Whether the device says that it sends at irregular times, for example only when something happens.
    public var isIrregular: Bool
    /// The readings, in the order of the advertisement.
    public var readings: [SensorReading]

    /// Creates a report.
    public init(
        format: SensorFormat,
        model: String? = nil,
        firmware: String? = nil,
        protection: SensorProtection = .none,
        counter: UInt32? = nil,
        isRepeat: Bool = false,
        isIrregular: Bool = false,
        readings: [SensorReading] = []
    ) {
        self.format = format
        self.model = model
        self.firmware = firmware
        self.protection = protection
        self.counter = counter
        self.isRepeat = isRepeat
        self.isIrregular = isIrregular
        self.readings = readings
    }
}

/// The name of an advertisement format. Decoders of an app define their own.
public struct SensorFormat: RawRepresentable, Hashable, Sendable {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }

    /// BTHome version 2.
    public static let bthome = SensorFormat(rawValue: "bthome_v2")
    /// Ruuvi data format 3 (RAWv1).
    public static let ruuvi3 = SensorFormat(rawValue: "ruuvi_3")
    /// Ruuvi data format 5 (RAWv2).
    public static let ruuvi5 = SensorFormat(rawValue: "ruuvi_5")
    /// Ruuvi data format 6.
    public static let ruuvi6 = SensorFormat(rawValue: "ruuvi_6")
    /// Ruuvi data format E1 (extended v1).
    public static let ruuviE1 = SensorFormat(rawValue: "ruuvi_e1")
    /// Xiaomi MiBeacon.
    public static let mibeacon = SensorFormat(rawValue: "mibeacon")
    /// The firmware by atc1441 for Xiaomi thermometers.
    public static let atc1441 = SensorFormat(rawValue: "atc1441")
    /// The firmware by pvvx for Xiaomi thermometers.
    public static let pvvx = SensorFormat(rawValue: "pvvx")
    /// Apple iBeacon.
    public static let ibeacon = SensorFormat(rawValue: "ibeacon")
    /// AltBeacon.
    public static let altbeacon = SensorFormat(rawValue: "altbeacon")
    /// Eddystone, all frame types.
    public static let eddystone = SensorFormat(rawValue: "eddystone")
    /// Govee thermometers.
    public static let govee = SensorFormat(rawValue: "govee")
    /// SwitchBot meters.
    public static let switchbot = SensorFormat(rawValue: "switchbot")
}

/// How a report is protected.
public enum SensorProtection: String, Hashable, Sendable {
    /// Not protected: any device can send this report.
    case none
    /// Encrypted and authenticated with the key of its address, and newer than every earlier report.
    case authenticated
    /// Encrypted, and no key is set for the address.
    case needsKey
    /// Encrypted, but not with the key of the address, or damaged.
    case wrongKey
    /// Encrypted with the key of the address, but not newer than an earlier report.
    case replayed
    /// Not encrypted, though a key is set for the address. Any device can send such a report.
    case downgraded
    /// Encrypted in a way that this module cannot decrypt.
    case unsupported
}

/// One named value of a report.
public struct SensorReading: Hashable, Sendable {
    /// A value.
    public enum Value: Hashable, Sendable {
        /// A finite number, in the reading's unit.
        case number(Double)
        /// A text without control characters.
        case text(String)
        /// The state of a binary sensor.
        case boolean(Bool)
        /// Something that happened, for example a button press. `count` is the number of steps, if the event has any.
        case event(String, count: Int?)
    }

    /// The name, unique in its report: the device class, or the device class with a number.
    public var name: String
    /// The value.
    public var value: Value
    /// What the value measures.
    public var deviceClass: SensorDeviceClass
    /// The unit as Home Assistant writes it; nil for values without a unit.
    public var unit: String?

    /// Creates a reading. The name is the device class unless given.
    public init(_ deviceClass: SensorDeviceClass, _ value: Value, unit: String? = nil, name: String? = nil) {
        self.name = name ?? deviceClass.rawValue
        self.value = value
        self.deviceClass = deviceClass
        self.unit = unit
    }

    /// Creates a reading of a number in the usual unit of its class.
    init(_ deviceClass: SensorDeviceClass, _ number: Double, name: String? = nil) {
        self.init(deviceClass, .number(number), unit: deviceClass.usualUnit, name: name)
    }

    /// Whether the value is an event.
    public var isEvent: Bool {
        if case .event = value { true } else { false }
    }
}

extension [SensorReading] {
    /// Appends a percentage, unless it is out of range. Devices send values above 100 if they do not know the value.
    mutating func appendPercentage(_ deviceClass: SensorDeviceClass, _ number: Double) {
        if (0...100).contains(number) { append(SensorReading(deviceClass, number)) }
    }

    /// Makes names unique: readings with the same name get the suffixes `_1`, `_2` and so on.
    ///
    /// The cost is quadratic in the number of readings, which is at most about a hundred in one advertisement.
    ///
    /// - Parameter omitted: the objects without a reading, which are counted too. Each has the name that its reading
    ///   would have, and the index of the reading after it.
    mutating func numberEqualNames(omitted: [(name: String, index: Int)] = []) {
        let names = map(\.name)
        for index in indices {
            var earlier = 0
            var total = 0
            for other in names.indices where names[other] == names[index] {
                total += 1
                if other < index { earlier += 1 }
            }
            for object in omitted where object.name == names[index] {
                total += 1
                if object.index <= index { earlier += 1 }
            }
            if total > 1 { self[index].name = "\(names[index])_\(earlier + 1)" }
        }
    }
}
