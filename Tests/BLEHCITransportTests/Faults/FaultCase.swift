import FaultInjection
import Testing

@testable import BLEHCITransport

/// Faults of the system, and the error that they lead to.
struct FaultCase<Failure: Error & Equatable & Sendable>: Sendable, CustomTestStringConvertible {
    let faults: [Fault]
    /// The error; nil if the faults are overcome.
    let error: Failure?

    /// - Parameter error: the error; nil if the faults are overcome.
    init(_ faults: Fault..., error: Failure? = nil) {
        self.faults = faults
        self.error = error
    }

    var testDescription: String { "\(faults)" }

    /// Runs an action with the faults, and checks its error and its descriptors.
    func run(_ action: () throws -> Void) {
        let trial = FaultRun(faults, of: action)
        switch trial.result {
        case .success: #expect(error == nil)
        case .failure(let found):
            #expect(found as? Failure == error)
            #expect(!"\(found)".contains("\n"))
        }
        #expect(trial.unused.isEmpty)
        #expect(trial.leakedDescriptors == 0)
    }
}
