import BLE
import BLESMP
import BluetoothHost

/// The answers of one host's managers to pairing questions. The app's delegate answers if the app has set one.
/// Otherwise the managers answer by themselves.
///
/// Apple's devices ask a person, but a gateway often has no user. The managers therefore accept Just Works if an app on
/// this host needs it: this host has begun the pairing, or it serves values or channels that need encryption. They
/// accept the replacement of a bond only on a link that is encrypted with the bond's key. They refuse all other
/// questions.
final class Pairing: Sendable {
    /// A delegate that is an object. The app keeps it, as it keeps the delegates of Apple's frameworks: the object may
    /// own a manager, which would otherwise never be released.
    private struct WeakDelegate: PairingDelegate {
        weak let object: (any PairingDelegate & AnyObject)?

        func answer(_ inquiry: PairingInquiry) async -> PairingAnswer {
            guard let object else {
                ProgrammerError.report("a pairing is refused: the pairing delegate was released")
                return .refuse
            }
            return await object.answer(inquiry)
        }
    }

    /// A handler that was set on the host.
    private struct Installation {
        let identifier: UInt64
        /// The handler of the adapter's own delegate.
        let original: PairingHandler?
    }

    private let executor: (any TaskExecutor)?
    /// Asks the app's delegate.
    private let delegate = Guarded<PairingHandler?>(nil)
    private let installation = Guarded<Installation?>(nil)

    /// - Parameter executor: the executor on which the delegate is called; nil for the default one.
    init(executor: (any TaskExecutor)?) {
        self.executor = executor
    }

    func setDelegate(_ delegate: (any PairingDelegate)?) {
        let kept = Pairing.withoutRetaining(delegate)
        self.delegate.withLock { $0 = kept?.handler(on: executor) }
    }

    /// Returns a delegate that asks `delegate`. It does not keep a delegate that is an object.
    static func withoutRetaining(_ delegate: (any PairingDelegate)?) -> (any PairingDelegate)? {
        let object = delegate as? any PairingDelegate & AnyObject
        return if let object { WeakDelegate(object: object) } else { delegate }
    }

    /// Makes the host ask the managers about pairings.
    func install(on host: isolated BluetoothHost) {
        let (previous, identifier) = host.setPairingHandler(handler(for: host))
        installation.withLock { installation in
            // Only the first handler has replaced a handler of the adapter.
            let original = installation.map(\.original) ?? previous
            installation = Installation(identifier: identifier, original: original)
        }
    }

    /// Makes the host ask the adapter's own delegate again, unless the app has set another one in the meantime.
    func uninstall(from host: isolated BluetoothHost) {
        guard let installation = installation.withLock({ $0.take() }) else { return }
        host.restorePairingHandler(installation.original, inPlaceOf: installation.identifier)
    }

    /// Returns the handler for the host, which calls it on its loop.
    private func handler(for host: BluetoothHost) -> PairingHandler {
        { [weak self, weak host] inquiry, answer in
            guard let self, let host else {
                answer(.refuse)
                return {}
            }
            if let delegate = self.delegate.withLock({ $0 }) { return delegate(inquiry, answer) }
            answer(Pairing.answer(inquiry, isServing: host.assumeIsolated { $0.servesProtectedValues }))
            return {}
        }
    }

    private static func answer(_ inquiry: PairingInquiry, isServing: Bool) -> PairingAnswer {
        guard case .consent(.justWorks, _) = inquiry.question, inquiry.replaces == nil || inquiry.isIdentityVerified,
            inquiry.isStartedHere || isServing
        else { return .refuse }
        return .accept
    }
}
