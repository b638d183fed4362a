import Foundation
import Synchronization

/// A remote device, as this host knows it.
open class CBPeer: NSObject, NSCopying, @unchecked Sendable {
    // @unchecked: the class is open, which the compiler does not check; its properties are constant.

    /// Names the device on this host: stable as long as the device can be recognized, and not its address.
    public let identifier: UUID

    init(identifier: UUID) {
        self.identifier = identifier
    }

    /// The object itself: a device has one for each manager.
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

    /// How many octets of a value one notification or indication carries: ATT_MTU - 3.
    open var maximumUpdateValueLength: Int { mtu.withLock { max(0, $0 - 3) } }

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
