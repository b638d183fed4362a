import Foundation

/// The delegate of a peripheral: receives the results of commands, and the values that the peripheral sends. Its
/// methods are called on the queue of the peripheral's manager.
///
/// All methods have a default implementation that does nothing. A class must implement a method in the class that
/// declares the conformance, or in a superclass of it: Swift does not call a method that only a subclass adds.
public protocol CBPeripheralDelegate: NSObjectProtocol {
    /// ``CBPeripheral/name`` has changed: the host has read another Device Name, or the peripheral advertises another
    /// name.
    func peripheralDidUpdateName(_ peripheral: CBPeripheral)

    /// Services are no longer valid, and no longer in ``CBPeripheral/services``. The app must discover them again.
    ///
    /// Calls for their attributes that have not ended fail with ``CBError/Code/invalidHandle``. The peripheral names
    /// the handles that have changed, which may be a part of a service. Writes without a response to attributes in
    /// these handles are not sent if they still wait in the host. Those to other attributes of the services are.
    func peripheral(_ peripheral: CBPeripheral, didModifyServices invalidatedServices: [CBService])

    /// Never called; see ``peripheral(_:didReadRSSI:error:)``.
    func peripheralDidUpdateRSSI(_ peripheral: CBPeripheral, error: (any Error)?)

    /// The RSSI was read, in dBm; 127 if it is not known.
    func peripheral(_ peripheral: CBPeripheral, didReadRSSI rssi: NSNumber, error: (any Error)?)

    /// Services were discovered and are in ``CBPeripheral/services``, or the discovery has failed.
    func peripheral(_ peripheral: CBPeripheral, didDiscoverServices error: (any Error)?)

    /// Included services were discovered and are in ``CBService/includedServices``, or the discovery has failed.
    func peripheral(
        _ peripheral: CBPeripheral,
        didDiscoverIncludedServicesFor service: CBService,
        error: (any Error)?
    )

    /// Characteristics were discovered and are in ``CBService/characteristics``, or the discovery has failed.
    func peripheral(
        _ peripheral: CBPeripheral,
        didDiscoverCharacteristicsFor service: CBService,
        error: (any Error)?
    )

    /// Descriptors were discovered and are in ``CBCharacteristic/descriptors``, or the discovery has failed.
    func peripheral(
        _ peripheral: CBPeripheral,
        didDiscoverDescriptorsFor characteristic: CBCharacteristic,
        error: (any Error)?
    )

    /// A value was read, notified or indicated.
    func peripheral(
        _ peripheral: CBPeripheral,
        didUpdateValueFor characteristic: CBCharacteristic,
        error: (any Error)?
    )

    /// A descriptor was read and its value is in ``CBDescriptor/value``, or reading has failed.
    func peripheral(_ peripheral: CBPeripheral, didUpdateValueFor descriptor: CBDescriptor, error: (any Error)?)

    /// A write with a response has succeeded or failed. It does not change ``CBCharacteristic/value``.
    func peripheral(
        _ peripheral: CBPeripheral,
        didWriteValueFor characteristic: CBCharacteristic,
        error: (any Error)?
    )

    /// Writing a descriptor has succeeded or failed. It does not change ``CBDescriptor/value``.
    func peripheral(_ peripheral: CBPeripheral, didWriteValueFor descriptor: CBDescriptor, error: (any Error)?)

    /// Notifications or indications were started or stopped, or that has failed; see ``CBCharacteristic/isNotifying``.
    func peripheral(
        _ peripheral: CBPeripheral,
        didUpdateNotificationStateFor characteristic: CBCharacteristic,
        error: (any Error)?
    )

    /// There is space for writes again, after ``CBPeripheral/canSendWriteWithoutResponse`` was false.
    func peripheralIsReady(toSendWriteWithoutResponse peripheral: CBPeripheral)

    /// A channel that the app requested is open; or it could not be opened, and `channel` is nil.
    func peripheral(_ peripheral: CBPeripheral, didOpen channel: CBL2CAPChannel?, error: (any Error)?)

    /// A procedure of channel sounding has ended. `results` is always nil here, and the error is
    /// ``CBError/Code/channelSoundingProcedureFailed``: this host computes no distances.
    func peripheral(
        _ peripheral: CBPeripheral,
        didReceive results: CBChannelSoundingProcedureResults?,
        error: (any Error)?
    )

    /// A session of channel sounding has ended, or could not be started.
    func peripheral(_ peripheral: CBPeripheral, didCompleteChannelSoundingSession error: (any Error)?)
}

extension CBPeripheralDelegate {
    public func peripheralDidUpdateName(_ peripheral: CBPeripheral) {}

    public func peripheral(_ peripheral: CBPeripheral, didModifyServices invalidatedServices: [CBService]) {}

    public func peripheralDidUpdateRSSI(_ peripheral: CBPeripheral, error: (any Error)?) {}

    public func peripheral(_ peripheral: CBPeripheral, didReadRSSI rssi: NSNumber, error: (any Error)?) {}

    public func peripheral(_ peripheral: CBPeripheral, didDiscoverServices error: (any Error)?) {}

    public func peripheral(
        _ peripheral: CBPeripheral,
        didDiscoverIncludedServicesFor service: CBService,
        error: (any Error)?
    ) {}

    public func peripheral(
        _ peripheral: CBPeripheral,
        didDiscoverCharacteristicsFor service: CBService,
        error: (any Error)?
    ) {}

    public func peripheral(
        _ peripheral: CBPeripheral,
        didDiscoverDescriptorsFor characteristic: CBCharacteristic,
        error: (any Error)?
    ) {}

    public func peripheral(
        _ peripheral: CBPeripheral,
        didUpdateValueFor characteristic: CBCharacteristic,
        error: (any Error)?
    ) {}

    public func peripheral(
        _ peripheral: CBPeripheral,
        didUpdateValueFor descriptor: CBDescriptor,
        error: (any Error)?
    ) {}

    public func peripheral(
        _ peripheral: CBPeripheral,
        didWriteValueFor characteristic: CBCharacteristic,
        error: (any Error)?
    ) {}

    public func peripheral(
        _ peripheral: CBPeripheral,
        didWriteValueFor descriptor: CBDescriptor,
        error: (any Error)?
    ) {}

    public func peripheral(
        _ peripheral: CBPeripheral,
        didUpdateNotificationStateFor characteristic: CBCharacteristic,
        error: (any Error)?
    ) {}

    public func peripheralIsReady(toSendWriteWithoutResponse peripheral: CBPeripheral) {}

    public func peripheral(_ peripheral: CBPeripheral, didOpen channel: CBL2CAPChannel?, error: (any Error)?) {}

    public func peripheral(
        _ peripheral: CBPeripheral,
        didReceive results: CBChannelSoundingProcedureResults?,
        error: (any Error)?
    ) {}

    public func peripheral(_ peripheral: CBPeripheral, didCompleteChannelSoundingSession error: (any Error)?) {}
}
