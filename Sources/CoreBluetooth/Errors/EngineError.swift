import ATT
import Foundation

/// Why the host could not do what it was asked, on its way to an app.
enum EngineError: Error, Hashable, Sendable {
    case core(CBError.Code)
    /// The peer answered with an Error Response.
    case attribute(ATT.ErrorCode)

    /// The error that apps are given.
    var error: any Error {
        switch self {
        case .core(let code): CBError.described(code)
        case .attribute(let code):
            CBATTError.described(CBATTError.Code(rawValue: Int(code.rawValue)) ?? .unlikelyError)
        }
    }
}
