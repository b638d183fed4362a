import Foundation

/// The delegate of a central manager: receives the manager's state, the peripherals that it finds, and the changes of
/// connections. Its methods are called on the manager's queue.
///
/// Only ``centralManagerDidUpdateState(_:)`` is required. The other methods have default implementations. A class must
/// implement them in the class that declares the conformance, or in a superclass of it: Swift does not call a method
/// that only a subclass adds.
public protocol CBCentralManagerDelegate: NSObjectProtocol {
    /// The manager's state is known or has changed. The manager accepts commands while it is `poweredOn`.
    func centralManagerDidUpdateState(_ central: CBCentralManager)

    /// The state that an earlier process with the same restore identifier has left. This is the manager's first call,
    /// if there is such a state. If the adapter cannot be opened at first, the call follows later, before `poweredOn`.
    func centralManager(_ central: CBCentralManager, willRestoreState dict: [String: Any])

    /// A peripheral was heard. An app that wants to connect to the peripheral must keep the object.
    ///
    /// The RSSI is in dBm; 127 if it is not known.
    func centralManager(
        _ central: CBCentralManager,
        didDiscover peripheral: CBPeripheral,
        advertisementData: [String: Any],
        rssi: NSNumber
    )

    /// A peripheral is connected, and accepts commands.
    ///
    /// Called when the peripheral has answered the request for a longer ATT_MTU, or after seven connection intervals.
    /// After the latter, the ATT_MTU may grow without a further call.
    func centralManager(_ central: CBCentralManager, didConnect peripheral: CBPeripheral)

    /// A connection attempt has failed and is not repeated. Before that, the host repeats an attempt three times if its
    /// link is not established: the peripheral has not received the request for the connection.
    ///
    /// An attempt that the app cancels is reported as a disconnection without an error.
    func centralManager(
        _ central: CBCentralManager,
        didFailToConnect peripheral: CBPeripheral,
        error: (any Error)?
    )

    /// A connection ended. There is no error if the app has ended it.
    func centralManager(
        _ central: CBCentralManager,
        didDisconnectPeripheral peripheral: CBPeripheral,
        error: (any Error)?
    )

    /// A connection ended. The default implementation calls the method without a time.
    func centralManager(
        _ central: CBCentralManager,
        didDisconnectPeripheral peripheral: CBPeripheral,
        timestamp: CFAbsoluteTime,
        isReconnecting: Bool,
        error: (any Error)?
    )

    /// A peripheral that matches the registered options has connected to this host or disconnected, for any manager of
    /// this process.
    func centralManager(
        _ central: CBCentralManager,
        connectionEventDidOccur event: CBConnectionEvent,
        for peripheral: CBPeripheral
    )

    /// Never called: Apple's notification service is not offered.
    func centralManager(_ central: CBCentralManager, didUpdateANCSAuthorizationFor peripheral: CBPeripheral)
}

extension CBCentralManagerDelegate {
    public func centralManager(_ central: CBCentralManager, willRestoreState dict: [String: Any]) {}

    public func centralManager(
        _ central: CBCentralManager,
        didDiscover peripheral: CBPeripheral,
        advertisementData: [String: Any],
        rssi: NSNumber
    ) {}

    public func centralManager(_ central: CBCentralManager, didConnect peripheral: CBPeripheral) {}

    public func centralManager(
        _ central: CBCentralManager,
        didFailToConnect peripheral: CBPeripheral,
        error: (any Error)?
    ) {}

    public func centralManager(
        _ central: CBCentralManager,
        didDisconnectPeripheral peripheral: CBPeripheral,
        error: (any Error)?
    ) {}

    public func centralManager(
        _ central: CBCentralManager,
        didDisconnectPeripheral peripheral: CBPeripheral,
        timestamp: CFAbsoluteTime,
        isReconnecting: Bool,
        error: (any Error)?
    ) {
        centralManager(central, didDisconnectPeripheral: peripheral, error: error)
    }

    public func centralManager(
        _ central: CBCentralManager,
        connectionEventDidOccur event: CBConnectionEvent,
        for peripheral: CBPeripheral
    ) {}

    public func centralManager(_ central: CBCentralManager, didUpdateANCSAuthorizationFor peripheral: CBPeripheral) {}
}
