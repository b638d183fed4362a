import Foundation
import Synchronization

/// A remote device, as this host knows it.
open class CBPeer: NSObject, NSCopying, @unchecked Sendable {
    // @unchecked: the class is open, which the compiler does not check; its properties are constant.

    /// The device's identifier on this host: stable as long as the device can be recognized. It is not the device's
    /// address.
    public let identifier: UUID

    init(identifier: UUID) {
        self.identifier = identifier
    }

    /// Returns the object itself, because a manager has one object for each device.
    open func copy(with zone: NSZone? = nil) -> Any { self }
}

/// A central that uses the services of a ``CBPeripheralManager``.
open class CBCentral: CBPeer, @unchecked Sendable {
    // @unchecked: the class is open, which the compiler does not check; its state is constant or in a `Mutex`.

    private let mtu: Mutex<Int>

    init(identifier: UUID, mtu: Int) {
        self.mtu = Mutex(mtu)
        super.init(identifier: identifier)
    }

    /// Maximum number of bytes of a value in one notification or indication: ATT_MTU - 3, but at most 512.
    open var maximumUpdateValueLength: Int { CBPeripheral.longestPacketValue(mtu: mtu.withLock { $0 }) }

    func setMTU(_ mtu: Int) {
        self.mtu.withLock { $0 = mtu }
    }

    open override func isEqual(_ object: Any?) -> Bool {
        (object as? CBCentral)?.identifier == identifier
    }

    open override var hash: Int { identifier.hashValue }

    open override var description: String {
        "<\(nameAndAddress), identifier = \(identifier.uuidString), MTU = \(mtu.withLock { $0 })>"
    }
}
