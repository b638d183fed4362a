import BLEATT
import BluetoothTypes

/// A walk up a range of handles, request by request. It only moves forward, so it ends whatever the server answers.
///
/// A server may have 65,535 attributes and return one of them in each response, so a walk also ends when its
/// ``DiscoveryBudget`` is used up.
struct RangeWalk: Sendable {
    /// The range that remains.
    private(set) var range: HandleRange
    private(set) var isAtEnd = false
    var budget = DiscoveryBudget()

    init(_ range: HandleRange) {
        self.range = range
    }

    /// Moves past a handle, or a group of handles, in a response.
    ///
    /// - Returns: the error if the handle lies outside the requested range or goes backward, or if the budget is used
    ///   up.
    mutating func advance(
        over handle: AttributeHandle,
        endingAt end: AttributeHandle? = nil,
        of request: ATTOpcode
    ) -> ClientError? {
        let end = end ?? handle
        guard !isAtEnd, handle >= range.start, handle <= end, handle <= range.end else {
            return .handlesOutOfOrder(request)
        }
        if let error = budget.takeAttribute() { return error }
        guard let next = end.next, next <= range.end else {
            isAtEnd = true
            return nil
        }
        range.start = next
        return nil
    }
}
