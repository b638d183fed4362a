import Synchronization

/// A value that is being sent to several centrals.
final class ValueUpdate: Sendable {
    private let remaining: Atomic<Int>
    private let completion: Completion<Void>

    init(_ count: Int, _ completion: @escaping Completion<Void>) {
        remaining = Atomic(count)
        self.completion = completion
        if count == 0 { completion(.success(())) }
    }

    func hasLeft() {
        if remaining.subtract(1, ordering: .acquiringAndReleasing).newValue == 0 { completion(.success(())) }
    }
}
