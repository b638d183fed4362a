import BLE
import BluetoothHost
import SMP

/// How the managers of one host pair: by the app's delegate where it has set one, else by themselves where nobody has to be
/// asked.
///
/// Where Apple's devices show a window to a person, a gateway has nobody to show it to. So just works is consented to where an
/// app on this host wants it: it uses what needs encryption on the peer, or serves what needs it. A bond is not replaced, and
/// nothing that needs a person is done, unless a delegate says so.
final class Pairing: Sendable {
    private let delegate = Guarded<(any PairingDelegate)?>(nil)

    func setDelegate(_ delegate: (any PairingDelegate)?) {
        self.delegate.withLock { $0 = delegate }
    }

    /// The host's handler; called on its loop.
    func handler(for host: BluetoothHost) -> PairingHandler {
        { [weak self, weak host] inquiry, answer in
            if let delegate = self?.delegate.withLock({ $0 }) {
                return delegate.handler(on: host?.loop.appTaskExecutor)(inquiry, answer)
            }
            let isServing = host?.assumeIsolated { $0.servesProtectedValues } ?? false
            answer(Pairing.answer(inquiry, isServing: isServing))
            return {}
        }
    }

    private static func answer(_ inquiry: PairingInquiry, isServing: Bool) -> PairingAnswer {
        guard case .consent(.justWorks, _) = inquiry.question, inquiry.replaces == nil || inquiry.isProven,
            inquiry.isStartedHere || isServing
        else { return .refuse }
        return .accept
    }
}
