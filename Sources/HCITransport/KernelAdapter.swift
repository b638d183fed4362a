import BluetoothTypes

/// A Bluetooth adapter that the kernel knows.
public struct KernelAdapter: Hashable, Sendable {
    /// How an adapter is attached.
    public enum Bus: UInt8, Hashable, Sendable {
        case virtual = 0
        case usb = 1
        case pcCard = 2
        case uart = 3
        case rs232 = 4
        case pci = 5
        case sdio = 6
        case spi = 7
        case i2c = 8
        case smd = 9
        case virtio = 10
        case ipc = 11
    }

    /// The state of an adapter, as the kernel keeps it in bits.
    public struct Flags: OptionSet, Hashable, Sendable {
        public let rawValue: UInt32

        public init(rawValue: UInt32) { self.rawValue = rawValue }

        /// It is powered: the kernel's stack or a user channel has it. A user channel needs it down.
        public static let up = Flags(rawValue: 1 << 0)
        /// The kernel is initialising it.
        public static let initializing = Flags(rawValue: 1 << 1)
        /// Packets pass.
        public static let running = Flags(rawValue: 1 << 2)
        /// Its driver offers raw access only.
        public static let raw = Flags(rawValue: 1 << 8)
    }

    /// Whether the radio is blocked.
    public struct RadioBlock: Hashable, Sendable {
        /// `rfkill unblock bluetooth` ends it.
        public var bySoftware: Bool
        /// A switch on the device ends it.
        public var byHardware: Bool

        public init(bySoftware: Bool, byHardware: Bool) {
            self.bySoftware = bySoftware
            self.byHardware = byHardware
        }
    }

    public var index: Int
    /// The kernel's name, as in "hci0".
    public var name: String
    /// The public address; nil where the kernel has not read it (the adapter was never up) or could not be asked.
    public var address: DeviceAddress?
    /// Nil where the kernel could not be asked, or named a bus that is not known here.
    public var bus: Bus?
    /// Nil where the kernel could not be asked.
    public var flags: Flags?
    /// Nil where the adapter has no rfkill switch.
    public var radioBlock: RadioBlock?

    public init(index: Int) {
        self.index = index
        name = "hci\(index)"
    }

    public var isUp: Bool { flags?.contains(.up) ?? false }
}
