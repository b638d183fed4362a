import Foundation

/// The delegate of a peripheral manager: receives the manager's state, and the centrals' use of its services. Its
/// methods are called on the manager's queue.
///
/// Only ``peripheralManagerDidUpdateState(_:)`` is required. The other methods have default implementations. A class
/// must implement them in the class that declares the conformance, or in a superclass of it: Swift does not call a
/// method that only a subclass adds.
public protocol CBPeripheralManagerDelegate: NSObjectProtocol {
    /// The manager's state is known or has changed. The manager accepts commands while it is `poweredOn`.
    func peripheralManagerDidUpdateState(_ peripheral: CBPeripheralManager)

    /// The state that an earlier process with the same restore identifier has left. This is the manager's first call,
    /// if there is such a state. If the adapter cannot be opened at first, the call follows later, before `poweredOn`.
    func peripheralManager(_ peripheral: CBPeripheralManager, willRestoreState dict: [String: Any])

    /// Advertising has started, or could not be started. If the manager advertised before, the error is
    /// `CBError.alreadyAdvertising`, and that advertisement continues.
    func peripheralManagerDidStartAdvertising(_ peripheral: CBPeripheralManager, error: (any Error)?)

    /// A service was published, or publishing has failed.
    func peripheralManager(_ peripheral: CBPeripheralManager, didAdd service: CBService, error: (any Error)?)

    /// A central has enabled notifications or indications of a characteristic.
    func peripheralManager(
        _ peripheral: CBPeripheralManager,
        central: CBCentral,
        didSubscribeTo characteristic: CBCharacteristic
    )

    /// A central has disabled notifications and indications of a characteristic, or its last subscribed link has ended.
    func peripheralManager(
        _ peripheral: CBPeripheralManager,
        central: CBCentral,
        didUnsubscribeFrom characteristic: CBCharacteristic
    )

    /// A central reads a value. Answer with ``CBPeripheralManager/respond(to:withResult:)``. The default implementation
    /// answers that the request is not supported.
    func peripheralManager(_ peripheral: CBPeripheralManager, didReceiveRead request: CBATTRequest)

    /// A central writes values, all or none. Answer once, for the first request. The default implementation answers
    /// that the request is not supported.
    func peripheralManager(_ peripheral: CBPeripheralManager, didReceiveWrite requests: [CBATTRequest])

    /// There is space for values again, after ``CBPeripheralManager/updateValue(_:for:onSubscribedCentrals:)`` has
    /// returned false.
    func peripheralManagerIsReady(toUpdateSubscribers peripheral: CBPeripheralManager)

    /// A service for channels was published, and `psm` is the number that the host assigned: 0x0080 to 0x00FF. If that
    /// has failed, the number is 0.
    func peripheralManager(
        _ peripheral: CBPeripheralManager,
        didPublishL2CAPChannel psm: CBL2CAPPSM,
        error: (any Error)?
    )

    /// A service for channels was removed. The error is `CBError.invalidParameters` if this manager has not published
    /// `psm`.
    func peripheralManager(
        _ peripheral: CBPeripheralManager,
        didUnpublishL2CAPChannel psm: CBL2CAPPSM,
        error: (any Error)?
    )

    /// A central has opened a channel.
    func peripheralManager(
        _ peripheral: CBPeripheralManager,
        didOpen channel: CBL2CAPChannel?,
        error: (any Error)?
    )
}

extension CBPeripheralManagerDelegate {
    public func peripheralManager(_ peripheral: CBPeripheralManager, willRestoreState dict: [String: Any]) {}

    public func peripheralManagerDidStartAdvertising(_ peripheral: CBPeripheralManager, error: (any Error)?) {}

    public func peripheralManager(
        _ peripheral: CBPeripheralManager,
        didAdd service: CBService,
        error: (any Error)?
    ) {}

    public func peripheralManager(
        _ peripheral: CBPeripheralManager,
        central: CBCentral,
        didSubscribeTo characteristic: CBCharacteristic
    ) {}

    public func peripheralManager(
        _ peripheral: CBPeripheralManager,
        central: CBCentral,
        didUnsubscribeFrom characteristic: CBCharacteristic
    ) {}

    public func peripheralManager(_ peripheral: CBPeripheralManager, didReceiveRead request: CBATTRequest) {
        peripheral.respond(to: request, withResult: .requestNotSupported)
    }

    public func peripheralManager(_ peripheral: CBPeripheralManager, didReceiveWrite requests: [CBATTRequest]) {
        if let first = requests.first { peripheral.respond(to: first, withResult: .requestNotSupported) }
    }

    public func peripheralManagerIsReady(toUpdateSubscribers peripheral: CBPeripheralManager) {}

    public func peripheralManager(
        _ peripheral: CBPeripheralManager,
        didPublishL2CAPChannel psm: CBL2CAPPSM,
        error: (any Error)?
    ) {}

    public func peripheralManager(
        _ peripheral: CBPeripheralManager,
        didUnpublishL2CAPChannel psm: CBL2CAPPSM,
        error: (any Error)?
    ) {}

    public func peripheralManager(
        _ peripheral: CBPeripheralManager,
        didOpen channel: CBL2CAPChannel?,
        error: (any Error)?
    ) {}
}
