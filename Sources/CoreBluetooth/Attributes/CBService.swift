import ATT
import BluetoothTypes
import Foundation
import GATT
import Synchronization

/// A service of a peripheral, and what has been discovered of it.
open class CBService: CBAttribute, @unchecked Sendable {
    // @unchecked: the class is open, which the compiler does not check; its state is constant or in a `Mutex`.

    struct Content {
        weak var peripheral: CBPeripheral?
        var includedServices: [CBService]?
        var characteristics: [CBCharacteristic]?
        /// Of local services: whether it is published, or about to be, and cannot be changed.
        var isPublished = false
    }

    /// Where a remote service lies in its server's database.
    let range: HandleRange?
    let content: Mutex<Content>
    /// Whether the service can be found by itself; a secondary one is only included by others.
    public let isPrimary: Bool

    init(uuid: CBUUID, isPrimary: Bool, range: HandleRange?, peripheral: CBPeripheral?) {
        self.isPrimary = isPrimary
        self.range = range
        content = Mutex(Content(peripheral: peripheral))
        super.init(uuid: uuid)
    }

    /// The peripheral that has the service; nil for local services.
    open var peripheral: CBPeripheral? { content.withLock { $0.peripheral } }

    /// The services that this one includes, as far as they were discovered; nil where none were looked for.
    open var includedServices: [CBService]? { content.withLock { $0.includedServices } }

    /// The characteristics that were discovered; nil where none were looked for.
    open var characteristics: [CBCharacteristic]? { content.withLock { $0.characteristics } }

    open override var description: String {
        "<\(nameAndAddress), isPrimary = \(isPrimary ? "YES" : "NO"), UUID = \(uuid)>"
    }
}

/// A service of this host, to be published by a ``CBPeripheralManager``.
///
/// Once it has been given to the manager it cannot be changed: changes are dropped, and a line on standard error says so.
open class CBMutableService: CBService, @unchecked Sendable {
    // @unchecked: the class is open, which the compiler does not check; its state is constant or in a `Mutex`.

    public init(type uuid: CBUUID, primary isPrimary: Bool) {
        super.init(uuid: uuid, isPrimary: isPrimary, range: nil, peripheral: nil)
    }

    /// Services that are published before this one.
    open override var includedServices: [CBService]? {
        get { super.includedServices }
        set { change { $0.includedServices = newValue } }
    }

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

    /// Lets the service and what it holds be changed no more, or again.
    func setPublished(_ isPublished: Bool) {
        let characteristics = content.withLock { content in
            content.isPublished = isPublished
            return content.characteristics ?? []
        }
        for case let characteristic as CBMutableCharacteristic in characteristics {
            characteristic.setPublished(isPublished)
        }
    }
}
