import BluetoothTypes

/// A Bluetooth adapter of the kernel.
public struct KernelAdapter: Hashable, Sendable {
    /// How an adapter is attached.
    public enum Bus: UInt8, Hashable, Sendable {
        /// A controller in software, such as vhci.
        case virtual = 0
        /// USB.
        case usb = 1
        /// A PC Card.
        case pcCard = 2
        /// A UART.
        case uart = 3
        /// RS-232.
        case rs232 = 4
        /// PCI.
        case pci = 5
        /// SDIO.
        case sdio = 6
        /// SPI.
        case spi = 7
        /// I²C.
        case i2c = 8
        /// A Qualcomm processor's shared memory.
        case smd = 9
        /// A virtio device of a virtual machine.
        case virtio = 10
        /// Another processor of the same chip.
        case ipc = 11
    }

    /// The state of an adapter, in the kernel's bits.
    public struct Flags: OptionSet, Hashable, Sendable {
        public let rawValue: UInt32

        public init(rawValue: UInt32) { self.rawValue = rawValue }

        /// The adapter is powered and used by the kernel's stack or a user channel. A user channel can open only if it
        /// is down.
        public static let up = Flags(rawValue: 1 << 0)
        /// The kernel is initializing the adapter.
        public static let initializing = Flags(rawValue: 1 << 1)
        /// Packets pass.
        public static let running = Flags(rawValue: 1 << 2)
        /// The driver offers raw access only.
        public static let raw = Flags(rawValue: 1 << 8)
    }

    /// Whether the radio is blocked.
    public struct RadioBlock: Hashable, Sendable {
        /// Blocked by software. `rfkill unblock bluetooth` unblocks it.
        public var bySoftware: Bool
        /// Blocked by hardware. A switch on the device unblocks it.
        public var byHardware: Bool

        /// Creates a state.
        public init(bySoftware: Bool, byHardware: Bool) {
            self.bySoftware = bySoftware
            self.byHardware = byHardware
        }
    }

    /// The adapter's number: 0 is hci0.
    public var index: Int
    /// The kernel's name, as in "hci0".
    public var name: String
    /// The public address; nil if the kernel has not read it (the adapter was never up) or could not be queried.
    public var address: DeviceAddress?
    /// Nil if the kernel could not be queried, or reported an unknown bus.
    public var bus: Bus?
    /// Nil if the kernel could not be queried.
    public var flags: Flags?
    /// Nil if the adapter has no rfkill switch.
    public var radioBlock: RadioBlock?

    /// Creates an adapter of which only the number and the name are known.
    public init(index: Int) {
        self.index = index
        name = "hci\(index)"
    }

    /// Whether the adapter is up; false if the kernel could not be queried.
    public var isUp: Bool { flags?.contains(.up) ?? false }
}
