import BLEGATT
import BluetoothHost

extension BackendError {
    /// Creates the app's error for a failure of the host.
    init(_ error: HostError) {
        self =
            switch error {
            case .client(.attribute(let code, _, _)): .attribute(code)
            case .client(.cancelled), .cancelled: .core(.operationCancelled)
            case .client(.invalidArgument), .invalidArgument: .core(.invalidParameters)
            case .client(.attributesChanged): .core(.invalidHandle)
            case .client(.bearerClosed), .notReady, .closed: .core(.notConnected)
            case .client(.malformedResponse), .client(.handlesOutOfOrder), .client(.valueMismatch),
                .client(.tooManyAttributes), .client(.tooManyRequests):
                .core(.unknown)
            case .disconnected(let reason): BackendError(reason) ?? .core(.notConnected)
            case .command(.status(let code, _)): .core(CBError.Code(commandStatus: code.rawValue))
            case .timedOut: .core(.connectionTimeout)
            case .limitReached: .core(.outOfSpace)
            case .notSupported: .core(.operationNotSupported)
            case .channel(let error): BackendError(error)
            case .security(let error): BackendError(error)
            case .command, .controllerFailed, .stateUnavailable, .broadcast: .core(.unknown)
            }
    }

    /// Creates the app's error for the end of a link; nil if this host ended the link on request.
    init?(_ reason: DisconnectionReason) {
        switch reason {
        case .controller(let error):
            guard let code = CBError.Code(controllerError: error.rawValue) else { return nil }
            self = .core(code)
        case .controllerReset: self = .core(.connectionFailed)
        case .attributeTransactionTimeout, .transmissionStalled, .peerFlooding: self = .core(.connectionTimeout)
        case .adapterClosed: return nil
        }
    }
}

extension BackendError {
    /// Creates the app's error for a service that could not be published.
    init(_ error: DatabaseError) {
        self =
            switch error {
            case .handlesExhausted: .core(.outOfSpace)
            case .handleNotFree, .valueTooLong, .noSuchInclude: .core(.invalidParameters)
            }
    }
}

extension BackendError {
    init(_ error: SecurityError) {
        self =
            switch error {
            case .keyMissing: .core(.peerRemovedPairingInformation)
            case .timedOut, .pairing(.timedOut): .core(.encryptionTimedOut)
            case .tooManyBonds: .core(.tooManyLEPairedDevices)
            // The same error as that of the disconnection.
            case .encryptionFailed(.connectionTerminatedDueToMICFailure): .core(.connectionFailed)
            case .pairing, .encryptionFailed, .repeatedAttempts, .refused, .weakerThanBond, .insufficient:
                .attribute(.insufficientAuthentication)
            }
    }
}
