import BLE

/// A request to use a device, over a connection that is made on demand.
public struct DeviceCommand: Hashable, Sendable {
    /// Finds a characteristic.
    public struct Path: Hashable, Sendable {
        /// The UUID of its service; nil if the device has one such characteristic only.
        public var service: BluetoothUUID?
        public var characteristic: BluetoothUUID

        /// Creates a path.
        public init(service: BluetoothUUID? = nil, characteristic: BluetoothUUID) {
            self.service = service
            self.characteristic = characteristic
        }
    }

    public enum Action: Hashable, Sendable {
        /// Connects. The connection ends after the idle time-out, if nothing else is requested.
        case connect
        /// Ends the connection and its subscriptions.
        case disconnect
        /// Discovers all services.
        case services
        /// Pairs. Replaces the bond if the device has lost its key.
        case pair
        /// Ends the connection, and removes the bonds of all adapters with the device.
        case unpair
        case read(Path)
        /// Writes a value of at most 512 bytes.
        case write(Path, [UInt8], withResponse: Bool)
        case subscribe(Path)
        case unsubscribe(Path)
    }

    public var action: Action
    /// The device's address as a 48-bit number.
    public var address: UInt64
    /// Whether the address is random; nil if that is unknown.
    public var isRandom: Bool?
    /// The longest time until the result.
    public var timeout: Duration

    /// Creates a command.
    public init(_ action: Action, address: UInt64, isRandom: Bool? = nil, timeout: Duration = .seconds(30)) {
        self.action = action
        self.address = address
        self.isRandom = isRandom
        self.timeout = timeout
    }
}

/// What a command has brought.
public enum DeviceCommandOutcome: Sendable {
    case done
    /// The value of a characteristic.
    case value([UInt8], of: BluetoothUUID)
    case services([RemoteService])
    /// The identity address of a device that has paired. Without a bond, the address that it is connected by.
    case paired(DeviceAddress)
}

/// A value that a device has sent, or the end of a subscription.
public struct DeviceNotification: Sendable {
    public enum Content: Sendable {
        case value([UInt8])
        /// The subscription has ended, because the connection has.
        case ended(DeviceCommandError)
    }

    /// The device's address as a 48-bit number.
    public var address: UInt64
    public var characteristic: BluetoothUUID
    public var content: Content

    /// Creates a notification.
    public init(address: UInt64, characteristic: BluetoothUUID, content: Content) {
        self.address = address
        self.characteristic = characteristic
        self.content = content
    }
}
