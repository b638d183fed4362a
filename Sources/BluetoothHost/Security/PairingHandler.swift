import BLESMP

/// Receives a question about a pairing, on the loop. `answer` may be called from any thread; only the first call
/// counts. Returns a closure that withdraws the question.
package typealias PairingHandler =
    @Sendable (PairingInquiry, _ answer: @escaping @Sendable (PairingAnswer) -> Void) -> (@Sendable () -> Void)
