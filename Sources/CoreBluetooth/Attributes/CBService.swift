import BLEATT
import BLEGATT
import BluetoothTypes
import Foundation
import Synchronization

/// A service of a peripheral, with its discovered characteristics and included services.
open class CBService: CBAttribute, @unchecked Sendable {
    // @unchecked: the class is open, which the compiler does not check; its state is constant or in a `Mutex`.

    struct Content {
        weak var peripheral: CBPeripheral?
        var isPrimary: Bool
        var includedServices: [CBService]?
        var characteristics: [CBCharacteristic]?
        /// For a local service: whether it is published or about to be, so that it cannot be changed.
        var isPublished = false
    }

    /// The handles of a remote service in its server's database.
    let range: HandleRange?
    let content: Mutex<Content>

    init(uuid: CBUUID, isPrimary: Bool, range: HandleRange?, peripheral: CBPeripheral?) {
        self.range = range
        content = Mutex(Content(peripheral: peripheral, isPrimary: isPrimary))
        super.init(uuid: uuid)
    }

    /// The peripheral that contains the service; nil for local services.
    open var peripheral: CBPeripheral? { content.withLock { $0.peripheral } }

    /// Whether the service is a primary service. A secondary service is only included by others. A service that only
    /// the discovery of included services has found counts as secondary, until service discovery finds it.
    public var isPrimary: Bool { content.withLock { $0.isPrimary } }

    /// The discovered included services; nil before discovery. Circular references are not allowed (Vol 3, Part G,
    /// 3.2): a service that includes this one, directly or through others, is left out.
    open var includedServices: [CBService]? { content.withLock { $0.includedServices } }

    /// The discovered characteristics; nil before discovery.
    open var characteristics: [CBCharacteristic]? { content.withLock { $0.characteristics } }

    open override var description: String {
        "<\(nameAndAddress), isPrimary = \(isPrimary ? "YES" : "NO"), UUID = \(uuid)>"
    }
}

/// A service of this host, to be published by a ``CBPeripheralManager``.
///
/// It cannot be changed while a manager has it; changes are ignored and reported on standard error. Another manager
/// refuses it with ``CBError/Code/invalidParameters``.
open class CBMutableService: CBService, @unchecked Sendable {
    // @unchecked: the class is open, which the compiler does not check; its state is constant or in a `Mutex`.

    /// Creates a service without characteristics and included services.
    ///
    /// - Parameters:
    ///   - uuid: the type of the service.
    ///   - isPrimary: whether it is a primary service. A secondary service is for inclusion in others.
    public init(type uuid: CBUUID, primary isPrimary: Bool) {
        super.init(uuid: uuid, isPrimary: isPrimary, range: nil, peripheral: nil)
    }

    /// The included services, which must be added to the manager before this one.
    open override var includedServices: [CBService]? {
        get { super.includedServices }
        set { change { $0.includedServices = newValue } }
    }

    /// The characteristics, which belong to this service from then on. Nil is the same as none.
    open override var characteristics: [CBCharacteristic]? {
        get { super.characteristics }
        set {
            change { $0.characteristics = newValue }
            for characteristic in characteristics ?? [] { characteristic.setService(self) }
        }
    }

    private func change(_ body: (inout Content) -> Void) {
        let isChanged = content.withLock { content in
            guard !content.isPublished else { return false }
            body(&content)
            return true
        }
        if !isChanged { ProgrammerError.report("\(self) is published and cannot be changed") }
    }

    /// Makes the service and its characteristics immutable, because a manager is about to publish the service.
    ///
    /// - Returns: false if a manager has published it, or is about to.
    func beginPublication() -> Bool {
        let characteristics = content.withLock { content -> [CBCharacteristic]? in
            guard !content.isPublished else { return nil }
            content.isPublished = true
            return content.characteristics ?? []
        }
        guard let characteristics else { return false }
        for case let characteristic as CBMutableCharacteristic in characteristics { characteristic.setPublished(true) }
        return true
    }

    /// Makes the service and its characteristics mutable again. Another manager can publish the service.
    func endPublication() {
        let characteristics = content.withLock { content in
            content.isPublished = false
            return content.characteristics ?? []
        }
        for case let characteristic as CBMutableCharacteristic in characteristics { characteristic.setPublished(false) }
    }
}
