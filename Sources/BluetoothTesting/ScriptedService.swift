import BLE
import BLEATT
import BluetoothTypes

/// A service of a scripted peripheral.
public struct ScriptedService: Sendable {
    /// The type of the service.
    public var uuid: BluetoothUUID
    /// The characteristics, in the order of their handles.
    public var characteristics: [ScriptedCharacteristic]

    /// Creates a service.
    public init(_ uuid: BluetoothUUID, _ characteristics: [ScriptedCharacteristic]) {
        self.uuid = uuid
        self.characteristics = characteristics
    }

    var definition: ServiceDefinition {
        ServiceDefinition(uuid: uuid, characteristics: characteristics.map(\.definition))
    }
}

/// A characteristic of a scripted peripheral: its value, its answers to reads and writes, and its schedule of
/// notifications.
public struct ScriptedCharacteristic: Sendable {
    /// A schedule of values that are sent automatically.
    public struct Schedule: Sendable {
        /// The time between two values. It must be more than zero: otherwise the world's time never passes, and the run
        /// ends with an ``UnfinishedRun``.
        public var interval: Duration
        /// Returns the next value; its argument is the number of values sent before.
        public var value: @Sendable (_ count: Int) -> [UInt8]

        /// Sends a value every `interval` to each subscribed client. A client that has not confirmed 16 indications
        /// misses the next ones.
        public static func every(
            _ interval: Duration,
            _ value: @escaping @Sendable (_ count: Int) -> [UInt8]
        ) -> Schedule {
            Schedule(interval: interval, value: value)
        }
    }

    /// The type of the characteristic.
    public var uuid: BluetoothUUID
    /// The procedures that clients may use.
    public var properties: CharacteristicProperties
    /// The value until another one is written or set.
    public var value: [UInt8]
    /// Answers reads; nil to return the value.
    public var onRead: (@Sendable () -> ScriptedAnswer)?
    /// Answers writes of a value; nil to accept it. Writes that a client executes together take effect only if all are
    /// accepted. The first answer that does not accept then decides, and further characteristics are not asked.
    public var onWrite: (@Sendable (_ value: [UInt8]) -> ScriptedAnswer)?
    /// The schedule of values for subscribed clients; nil if none are sent automatically.
    public var schedule: Schedule?

    /// Creates a characteristic. By default, reads return the value, and writes replace it.
    public init(
        _ uuid: BluetoothUUID,
        properties: CharacteristicProperties,
        value: [UInt8] = [],
        onRead: (@Sendable () -> ScriptedAnswer)? = nil,
        onWrite: (@Sendable (_ value: [UInt8]) -> ScriptedAnswer)? = nil,
        schedule: Schedule? = nil
    ) {
        self.uuid = uuid
        self.properties = properties
        self.value = value
        self.onRead = onRead
        self.onWrite = onWrite
        self.schedule = schedule
    }

    var definition: CharacteristicDefinition {
        var permissions: AttributePermissions = []
        if properties.contains(.read) { permissions.insert(.read) }
        if !properties.isDisjoint(with: [.write, .writeWithoutResponse]) { permissions.insert(.write) }
        return CharacteristicDefinition(uuid: uuid, properties: properties, permissions: permissions, value: .handled)
    }
}

/// The answer of a scripted peripheral to a read or a write.
public indirect enum ScriptedAnswer: Sendable {
    /// Returns this value for a read.
    case value([UInt8])
    /// Accepts a write; returns the value that was last written or set for a read.
    case accept
    /// Answers with an error of the Attribute Protocol.
    case refuse(ATTErrorCode)
    /// Never answers. The client gives up after 30 seconds (Vol 3, Part F, 3.3.3).
    case silence
    /// Answers with these bytes in place of an Attribute PDU, even if they are malformed.
    case octets([UInt8])
    /// Ends the connection.
    case disconnect
    /// Answers after a delay in the world's time.
    case after(Duration, ScriptedAnswer)

    /// Whether a write takes effect, possibly after a delay.
    var accepts: Bool {
        switch self {
        case .accept, .value: true
        case .after(_, let answer): answer.accepts
        case .refuse, .silence, .octets, .disconnect: false
        }
    }

    /// Returns the answer to two writes that take effect together: `next` after the delay of this answer, or this
    /// answer if it does not accept.
    func followed(by next: ScriptedAnswer) -> ScriptedAnswer {
        switch self {
        case .accept, .value: next
        case .after(let delay, let answer): .after(delay, answer.followed(by: next))
        case .refuse, .silence, .octets, .disconnect: self
        }
    }
}
