import BLEATT
import Foundation

/// The reason why the host could not carry out a request of the app.
enum BackendError: Error, Hashable, Sendable {
    case core(CBError.Code)
    /// The peer answered with an Error Response.
    case attribute(ATTErrorCode)

    /// The error that the app receives.
    var error: any Error {
        switch self {
        case .core(let code): CBError.described(code)
        case .attribute(let code): CBATTError.described(CBATTError.Code(code))
        }
    }
}
