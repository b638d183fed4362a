import BLE

/// The error codes that clients of the native API know: those of the Attribute Protocol and of HCI, and some of the
/// ESP32.
enum ClientErrorCode {
    /// The device is not connected.
    static let notConnected: Int32 = -1
    /// The client itself cancelled the connection attempt.
    static let connectionCancelled: Int32 = 0x100
    /// There is no connection to cancel.
    static let noConnection: Int32 = 0x101
    /// There are no resources left.
    static let insufficientResources: Int32 = 17
    /// An unspecified failure.
    static let failed: Int32 = 133
    /// An argument is out of range.
    static let illegalParameter: Int32 = 135
    /// Another client has the device.
    static let alreadyOpen: Int32 = 145
    /// There is no bond with the device.
    static let notPaired: Int32 = 0x06
    /// The device did not answer in time.
    static let connectionTimeout: Int32 = 0x08
    /// The connection could not be established.
    static let failedToEstablish: Int32 = 0x3E

    /// The code for a failed operation on an attribute.
    static func operation(_ error: BLEError) -> Int32 {
        switch error {
        case .attribute(let code, _): Int32(code.rawValue)
        case .notFound: Int32(ATTErrorCode.attributeNotFound.rawValue)
        case .disconnected, .closed, .cancelled, .notReady, .adapter: notConnected
        case .security: Int32(ATTErrorCode.insufficientAuthentication.rawValue)
        case .invalidArgument: Int32(ATTErrorCode.invalidAttributeValueLength.rawValue)
        case .limitReached: insufficientResources
        case .notSupported: Int32(ATTErrorCode.requestNotSupported.rawValue)
        case .controllerFailed, .timedOut, .malformedResponse, .channel, .broadcast, .stateUnavailable: failed
        }
    }

    /// The code for a connection that could not be made.
    static func connection(_ error: BLEError) -> Int32 {
        switch error {
        case .timedOut: connectionTimeout
        case .cancelled: connectionCancelled
        case .disconnected where error.meansNoFurtherLink: insufficientResources
        case .disconnected(let reason): end(reason)
        case .invalidArgument: illegalParameter
        default: failedToEstablish
        }
    }

    /// The code for a connection that has ended.
    static func end(_ reason: DisconnectionReason) -> Int32 {
        switch reason {
        case .controller(let code): Int32(code.rawValue)
        case .attributeTransactionTimeout, .transmissionStalled: connectionTimeout
        case .controllerReset, .peerFlooding, .adapterClosed:
            Int32(HCIErrorCode.connectionTerminatedByLocalHost.rawValue)
        }
    }
}

extension BLEError {
    /// Whether an attempt to connect that ended with this error counts as a failure of its adapter.
    ///
    /// A client that waits in vain ends the attempt itself. If it ends the attempt early, it may have another reason.
    ///
    /// - Parameters:
    ///   - duration: how long the attempt has lasted.
    ///   - failedAttemptTime: see ``GatewayConfiguration/failedAttemptTime``.
    func isFailedAttempt(after duration: Duration, failedAttemptTime: Duration) -> Bool {
        self != .cancelled || duration >= failedAttemptTime
    }

    /// Whether an attempt to connect has failed because the controller holds no further link (Vol 1, Part F, 2.7, 2.9,
    /// 2.13).
    var meansNoFurtherLink: Bool {
        guard case .disconnected(.controller(let code)) = self else { return false }
        switch code {
        case .memoryCapacityExceeded, .connectionLimitExceeded, .connectionRejectedDueToLimitedResources: return true
        default: return false
        }
    }
}
