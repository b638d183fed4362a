import BLEATT
import BLEByteCoding

// Enhanced bearers: the client's configurations and what it knows of the database belong to the client. Its
// transactions, prepared writes and ATT_MTU belong to each bearer.
extension ServerSession {
    /// What a session keeps for one enhanced bearer. The owner of the bearer holds it.
    ///
    /// The request that waits for the app is identified among all bearers of the client.
    public struct BearerState {
        /// ATT_MTU of the bearer, in bytes.
        public var mtu: Int
        var preparedWrites: [PreparedWrite] = []
        var preparedBytes = 0
        var pending: Pending?
        var isAuthorizationRefused = false
        var refusedRevision: UInt64?

        /// Creates the state of a new bearer.
        public init(mtu: Int) {
            self.mtu = mtu
        }

        init(
            mtu: Int,
            preparedWrites: [PreparedWrite],
            preparedBytes: Int,
            pending: Pending?,
            isAuthorizationRefused: Bool,
            refusedRevision: UInt64?
        ) {
            self.mtu = mtu
            self.preparedWrites = preparedWrites
            self.preparedBytes = preparedBytes
            self.pending = pending
            self.isAuthorizationRefused = isAuthorizationRefused
            self.refusedRevision = refusedRevision
        }

        /// The identifier of the request of the bearer that waits for an answer of the app; nil if there is none.
        public var awaitedAnswer: UInt64? { pending?.identifier }

        /// The identifier of the bearer's request, if it waits for the app's decision whether the client is authorized;
        /// otherwise nil.
        public var awaitedAuthorization: UInt64? { pending?.awaitedAuthorization }

        /// Returns the identifier of the bearer's request, if the app has not answered it and it needs an attribute in
        /// `range`; otherwise nil. An Execute Write Request needs the attributes of all prepared writes.
        public func awaitedAnswer(in range: HandleRange) -> UInt64? {
            pending?.awaitedAnswer(in: range, queue: preparedWrites)
        }
    }

    /// Takes a request or command from the client's enhanced bearer; see ``receive(_:into:)``.
    public func receive(
        _ pdu: RawSpan,
        on bearer: inout BearerState,
        into buffer: inout PacketBuffer
    ) -> ServerAction {
        exchange(&bearer)
        defer { exchange(&bearer) }
        return receive(pdu, into: &buffer)
    }

    /// Takes the app's answer to an access on an enhanced bearer; see ``complete(_:with:into:)``.
    public func complete(
        _ identifier: UInt64,
        with result: Result<[UInt8], ATTErrorCode>,
        on bearer: inout BearerState,
        into buffer: inout PacketBuffer
    ) -> ServerAction {
        exchange(&bearer)
        defer { exchange(&bearer) }
        return complete(identifier, with: result, into: &buffer)
    }

    /// Takes the app's answer to a request for authorization on an enhanced bearer; see
    /// ``complete(_:isAuthorized:into:)``.
    public func complete(
        _ identifier: UInt64,
        isAuthorized: Bool,
        on bearer: inout BearerState,
        into buffer: inout PacketBuffer
    ) -> ServerAction {
        exchange(&bearer)
        defer { exchange(&bearer) }
        return complete(identifier, isAuthorized: isAuthorized, into: &buffer)
    }
}
