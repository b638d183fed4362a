import BLEATT
import BLEHCI
import BluetoothHost
import Foundation
import Testing

@testable import CoreBluetooth

@Suite("Errors that apps receive")
struct ErrorTests {
    static let described: [(BackendError, String)] = [
        (.core(.unknown), "Unknown error."),
        (.core(.invalidParameters), "One or more parameters were invalid."),
        (.core(.notConnected), "The specified device is not connected."),
        (.core(.connectionTimeout), "The connection has timed out unexpectedly."),
        (.core(.peripheralDisconnected), "The specified device has disconnected from us."),
        (.core(.uuidNotAllowed), "The specified UUID is not allowed for this operation."),
        (.core(.alreadyAdvertising), "Advertising has already started."),
        (.core(.connectionFailed), "The connection has failed unexpectedly."),
        (.core(.peerRemovedPairingInformation), "Peer removed pairing information"),
        (
            .core(.encryptionTimedOut),
            "Failed to encrypt the connection, the connection has timed out unexpectedly."
        ),
        (.attribute(.readNotPermitted), "Reading is not permitted."),
        (.attribute(.writeNotPermitted), "Writing is not permitted."),
        (.attribute(.insufficientAuthentication), "Authentication is insufficient."),
        (.attribute(.requestNotSupported), "The request is not supported."),
        (.attribute(.invalidAttributeValueLength), "The value's length is invalid."),
        (.attribute(.insufficientEncryption), "Encryption is insufficient."),
        (.attribute(ATTErrorCode(rawValue: 0x80)), "Unknown ATT error."),
    ]

    @Test(arguments: described)
    func errorHasTheDescriptionOfApple(error: BackendError, expected: String) {
        #expect(error.error.localizedDescription == expected)
        #expect((error.error as NSError).localizedDescription == expected)
        switch error {
        case .core(let code): #expect((error.error as? CBError)?.code == code)
        case .attribute(let code): #expect((error.error as? CBATTError)?.code.rawValue == Int(code.rawValue))
        }
    }

    static let reasons: [(UInt8, CBError.Code?)] = [
        (0x16, nil), (0x08, .connectionTimeout), (0x13, .peripheralDisconnected), (0x14, .peripheralDisconnected),
        (0x15, .peripheralDisconnected), (0x3E, .connectionFailed), (0x06, .peerRemovedPairingInformation),
        (0x09, .connectionLimitReached), (0x3D, .connectionFailed),
    ]

    @Test("The controller's reasons for a link's end become error codes", arguments: reasons)
    func reasonOfTheControllerBecomesAnErrorCode(controllerError: UInt8, expected: CBError.Code?) {
        #expect(CBError.Code(controllerError: controllerError) == expected)
    }

    static let refusals: [(UInt8, CBError.Code)] = [
        (0x01, .operationNotSupported), (0x11, .operationNotSupported), (0x1A, .operationNotSupported),
        (0x20, .operationNotSupported), (0x12, .invalidParameters), (0x3B, .invalidParameters), (0x07, .outOfSpace),
        (0x0D, .outOfSpace), (0x08, .connectionTimeout), (0x22, .connectionTimeout), (0x09, .connectionLimitReached),
        (0x0A, .connectionLimitReached), (0x13, .peripheralDisconnected), (0x14, .peripheralDisconnected),
        (0x15, .peripheralDisconnected), (0x16, .operationCancelled), (0x3E, .connectionFailed), (0x0C, .unknown),
        (0x1F, .unknown), (0x2A, .unknown),
    ]

    @Test("A command that the controller refuses is not reported as a failed connection", arguments: refusals)
    func refusedCommandBecomesAnErrorCode(status: UInt8, expected: CBError.Code) {
        let error = HostError.command(.status(HCIErrorCode(rawValue: status), LESetPHY.opcode))
        #expect(BackendError(error) == .core(expected))
    }

    @Test func reachedLimitIsReportedAsOutOfSpace() {
        #expect(BackendError(HostError.limitReached("there are 16")) == .core(.outOfSpace))
    }

    static let securityErrors: [(SecurityError, BackendError)] = [
        (.keyMissing, .core(.peerRemovedPairingInformation)),
        (.encryptionFailed(.connectionTerminatedDueToMICFailure), .core(.connectionFailed)),
        (.encryptionFailed(.unsupportedRemoteFeature), .attribute(.insufficientAuthentication)),
        (.timedOut, .core(.encryptionTimedOut)),
    ]

    @Test("A MIC failure is not reported as removed pairing information", arguments: securityErrors)
    func micFailureIsNotReportedAsRemovedPairingInformation(error: SecurityError, expected: BackendError) {
        #expect(BackendError(error) == expected)
    }

    @Test func reportThatCannotBeWrittenIsLost() async {
        await #expect(processExitsWith: .success) {
            // Each write to this file fails, as on a full disk.
            let full = open("/dev/full", O_WRONLY)
            precondition(full >= 0 && dup2(full, STDERR_FILENO) >= 0)
            ProgrammerError.note("a line that is lost")
        }
    }

    @Test("Errors without a specific description still have one")
    func everyErrorHasADescription() {
        #expect(CBError(.connectionTimeout).userInfo.isEmpty)
        #expect(!CBError(.connectionTimeout).localizedDescription.isEmpty)
        #expect(CBError(.notConnected) == CBError(.notConnected))
        #expect(CBError(.notConnected) != CBError(.unknown))
        #expect(Set([CBError(.notConnected), CBError(.notConnected)]).count == 1)
    }
}
