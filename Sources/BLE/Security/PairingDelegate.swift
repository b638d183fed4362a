import BluetoothHost

/// Answers for a person what comes up when devices pair.
///
/// ```swift
/// struct Console: PairingDelegate {
///     func answer(_ inquiry: PairingInquiry) async -> PairingAnswer {
///         switch inquiry.question {
///         case .consent: return inquiry.replaces == nil ? .accept : .refuse
///         case .showPasskey(let passkey): print("\(inquiry.peer) asks for \(passkey)"); return .accept
///         case .enterPasskey: return UInt32(readLine() ?? "").map { .passkey($0) } ?? .refuse
///         case .compare(let number): print("Does \(inquiry.peer) show \(number)? (y)"); return readLine() == "y" ? .accept : .refuse
///         }
///     }
/// }
/// ```
public protocol PairingDelegate: Sendable {
    /// Answers a question about a pairing.
    ///
    /// Each pairing begins with ``PairingQuestion/consent(_:_:)``. The peer gives up when it hears nothing for 30 s. When the
    /// pairing ends meanwhile, the call's task is cancelled and its answer is not heard: what it shows is to be taken away.
    /// While 64 calls have not returned, further questions are answered with ``PairingAnswer/refuse``.
    ///
    /// - Returns: for ``PairingQuestion/showPasskey(_:)`` `accept` once it is shown, or later; else what the person says.
    func answer(_ inquiry: PairingInquiry) async -> PairingAnswer
}

extension PairingDelegate {
    /// The delegate as the host asks it.
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
                budget.giveBack()
                if !Task.isCancelled { answer(given) }
            }
            return { task.cancel() }
        }
    }
}
