import ATT
import BLE
import BluetoothTypes

/// What a scripted peripheral serves.
public struct ScriptedService: Sendable {
    public var uuid: BluetoothUUID
    public var characteristics: [ScriptedCharacteristic]

    public init(_ uuid: BluetoothUUID, _ characteristics: [ScriptedCharacteristic]) {
        self.uuid = uuid
        self.characteristics = characteristics
    }

    var definition: ServiceDefinition {
        ServiceDefinition(uuid: uuid, characteristics: characteristics.map(\.definition))
    }
}

/// A characteristic of a scripted peripheral: a value, what is done when it is read or written, and when it is sent.
public struct ScriptedCharacteristic: Sendable {
    /// Values that are sent by themselves.
    public struct Schedule: Sendable {
        /// How long from one value to the next.
        public var interval: Duration
        /// The value to be sent; it is given how many were sent before.
        public var value: @Sendable (_ count: Int) -> [UInt8]

        /// A value every `interval` to each client that has subscribed.
        public static func every(
            _ interval: Duration,
            _ value: @escaping @Sendable (_ count: Int) -> [UInt8]
        ) -> Schedule {
            Schedule(interval: interval, value: value)
        }
    }

    public var uuid: BluetoothUUID
    public var properties: CharacteristicProperties
    /// What is read before anything else is written or set.
    public var value: [UInt8]
    /// Answers reads; nil for the value.
    public var onRead: (@Sendable () -> ScriptedAnswer)?
    /// Answers writes, with the value that is written; nil to take it.
    public var onWrite: (@Sendable (_ value: [UInt8]) -> ScriptedAnswer)?
    /// What is sent to those who have subscribed, if anything is by itself.
    public var schedule: Schedule?

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

/// What a scripted peripheral does about a read or a write.
public indirect enum ScriptedAnswer: Sendable {
    /// Gives the value, where one is read.
    case value([UInt8])
    /// Takes what is written; gives the value that was last written or set, where one is read.
    case accept
    /// Answers with an error of the Attribute Protocol.
    case refuse(ATT.ErrorCode)
    /// Never answers. The client gives up after 30 seconds (Vol 3, Part F, 3.3.3).
    case silence
    /// Answers with these octets in place of an Attribute PDU, however wrong they are.
    case octets([UInt8])
    /// Ends the link.
    case disconnect
    /// Answers in the world's time.
    case after(Duration, ScriptedAnswer)
}
