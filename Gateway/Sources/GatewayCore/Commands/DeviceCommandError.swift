import BLE

/// The reason why a command has failed.
public struct DeviceCommandError: Error, Hashable, Sendable {
    public enum Code: String, Sendable {
        /// The request is malformed, or a value is out of range.
        case invalid
        /// The request is too large.
        case tooLarge = "too_large"
        /// The request was kept by the broker from an earlier time.
        case retained
        /// A client of the native API has the device.
        case busy
        /// All connections to devices are in use.
        case noSlot = "no_slot"
        /// No adapter can be used.
        case noAdapter = "no_adapter"
        /// Too many commands wait.
        case full
        case timeout
        /// The connection could not be made.
        case connectionFailed = "connection_failed"
        /// The connection was lost.
        case disconnected
        /// The device does not have the characteristic.
        case notFound = "not_found"
        /// The device has several such characteristics.
        case ambiguous
        /// The device refused with an error of the Attribute Protocol.
        case attribute
        case notSupported = "not_supported"
        /// The device requires a pairing that does not exist.
        case security
        /// The device has lost the key of its bond, or is another device with its address.
        case keyMissing = "key_missing"
        /// No adapter has a bond with the device.
        case notPaired = "not_paired"
        /// The broker was lost before the command had ended.
        case brokerLost = "broker_lost"
        /// The gateway stops.
        case stopped
        case failed
    }

    public var code: Code
    /// The error of the Attribute Protocol; nil for other errors.
    public var attributeError: UInt8?
    /// The reason, in one line.
    public var text: String

    /// Creates an error.
    public init(_ code: Code, _ text: String, attributeError: UInt8? = nil) {
        self.code = code
        self.text = text
        self.attributeError = attributeError
    }

    /// The error of an operation on a connected device.
    init(_ error: BLEError) {
        var attributeError: UInt8?
        switch error {
        case .attribute(let number, _):
            code = .attribute
            attributeError = number.rawValue
        case .notFound: code = .notFound
        case .disconnected: code = .disconnected
        case .adapter, .closed, .notReady, .controllerFailed: code = .noAdapter
        case .timedOut: code = .timeout
        case .security(.keyMissing): code = .keyMissing
        case .security: code = .security
        case .notSupported: code = .notSupported
        case .invalidArgument: code = .invalid
        case .cancelled, .malformedResponse, .channel, .broadcast, .stateUnavailable, .limitReached: code = .failed
        }
        self.attributeError = attributeError
        text = code == .keyMissing ? Self.keyMissingText : "\(error)"
    }

    /// Any device can use the address of another one. So only a person can decide about the bond.
    private static let keyMissingText =
        "the device has lost the key of its bond, or is another device with its address; "
        + "if it was reset, send the command pair to replace the bond, or unpair to remove it"

    /// The error of an attempt to connect.
    init(connection error: BLEError) {
        self.init(error)
        if [.disconnected, .failed, .attribute].contains(code) { code = .connectionFailed }
    }
}

extension DeviceCommandError {
    /// Whether the device reports that the handles of its services have changed (Vol 3, Part F, 3.4.1.1).
    var meansOutdatedHandles: Bool {
        attributeError == ATTErrorCode.invalidHandle.rawValue
            || attributeError == ATTErrorCode.databaseOutOfSync.rawValue
    }
}
