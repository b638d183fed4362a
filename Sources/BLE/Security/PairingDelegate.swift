import BluetoothHost

/// Answers, on behalf of a person, the questions that pairing asks.
///
/// ```swift
/// struct Console: PairingDelegate {
///     func answer(_ inquiry: PairingInquiry) async -> PairingAnswer {
///         switch inquiry.question {
///         case .consent:
///             return inquiry.replaces == nil ? .accept : .refuse
///         case .showPasskey(let passkey):
///             print("type \(digits(passkey)) on \(inquiry.peer)")
///             return .accept
///         case .enterPasskey:
///             return UInt32(readLine() ?? "").map { .passkey($0) } ?? .refuse
///         case .compare(let number):
///             print("Does \(inquiry.peer) show \(digits(number))? (y)")
///             return readLine() == "y" ? .accept : .refuse
///         }
///     }
///
///     private func digits(_ number: UInt32) -> String {
///         let text = String(number)
///         return String(repeating: "0", count: max(0, 6 - text.count)) + text
///     }
/// }
/// ```
public protocol PairingDelegate: Sendable {
    /// Answers a question about a pairing.
    ///
    /// Each pairing begins with ``/BLESMP/PairingQuestion/consent(_:_:)``, unless
    /// ``/BluetoothHost/SecurityPolicy/delaysJustWorksConsent`` delays it. The peer gives up if it receives nothing for
    /// 30 s. If the pairing ends before the call returns, the call's task is cancelled and its answer is ignored; the
    /// delegate should then remove what it shows. While 64 calls have not returned, further questions are answered with
    /// ``/BLESMP/PairingAnswer/refuse``.
    ///
    /// - Returns: for ``/BLESMP/PairingQuestion/showPasskey(_:)`` `accept` once it is shown, or later; otherwise the
    ///   person's answer.
    func answer(_ inquiry: PairingInquiry) async -> PairingAnswer
}

extension PairingDelegate {
    /// Returns the delegate in the form that the host calls.
    package func handler(on executor: (any TaskExecutor)?) -> PairingHandler {
        let budget = AccessBudget(limit: 64)
        return { inquiry, answer in
            // A peer that ends its pairings and begins others must not make calls without limit.
            guard budget.take() else {
                answer(.refuse)
                return {}
            }
            let task = Task(executorPreference: executor) {
                let given = await self.answer(inquiry)
                budget.release()
                if !Task.isCancelled { answer(given) }
            }
            return { task.cancel() }
        }
    }
}
