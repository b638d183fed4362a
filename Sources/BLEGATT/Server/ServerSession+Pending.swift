import BLEATT
import BluetoothTypes

// What a session keeps between requests.
extension ServerSession {
    /// A request that waits for the app.
    struct Pending {
        let request: [UInt8]
        let identifier: UInt64
        let question: Question
        var answers: [AccessRequest.Kind: Result<[UInt8], ATTErrorCode>]
        /// The revision of the database at the arrival of the request.
        let revision: UInt64
        /// Whether the session has forgotten the client since. Another device may be the client now, so it gets an
        /// error instead of the response.
        var isOfForgottenClient = false

        /// The identifier, if the request waits for the app's decision whether the client is authorized.
        var awaitedAuthorization: UInt64? {
            if case .authorization = question { identifier } else { nil }
        }

        /// The identifier, if the request waits for an access to an attribute in `range`.
        ///
        /// The app is asked about its own values only. But a request that executes the queue fails as a whole if any
        /// queued value has lost its attribute.
        func awaitedAnswer(in range: HandleRange, queue: [PreparedWrite]) -> UInt64? {
            guard range.isValid, case .access(let access) = question else { return nil }
            let handles = range.start...range.end
            let isInRange =
                switch access {
                case .read(let handle, _): handles.contains(handle)
                case .write(let write, _): handles.contains(write.handle)
                case .execute: queue.contains { handles.contains($0.write.handle) }
                }
            return isInRange ? identifier : nil
        }
    }

    /// A part of a value in the queue of prepared writes.
    struct PreparedWrite {
        let write: AttributeWrite
        /// The revision of the database at the arrival of the part.
        let revision: UInt64
    }

    enum Question {
        case access(AccessRequest.Kind)
        case authorization
    }

    /// Stops a request: an error for the client, or a question to the app.
    enum Interruption: Error {
        case error(ATTErrorCode, AttributeHandle)
        case access(AccessRequest.Kind)
        case authorization(AttributeHandle, isWrite: Bool)
    }
}
