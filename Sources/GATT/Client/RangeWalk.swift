import ATT
import BluetoothTypes

/// A walk up a range of handles, request by request, that can only go forward: so it ends, whatever the server answers.
struct RangeWalk: Sendable {
    /// What is still to be asked for.
    private(set) var range: HandleRange
    private(set) var isAtEnd = false

    init(_ range: HandleRange) {
        self.range = range
    }

    /// Moves behind a handle, or a group of them, that the server has given.
    ///
    /// - Returns: false where it lies outside what was asked for, or goes backwards.
    mutating func advance(over handle: AttributeHandle, endingAt end: AttributeHandle? = nil) -> Bool {
        let end = end ?? handle
        guard !isAtEnd, handle >= range.start, handle <= end, handle <= range.end else { return false }
        guard let next = end.next, next <= range.end else {
            isAtEnd = true
            return true
        }
        range.start = next
        return true
    }
}
