/// Schedules passes that change the controller to the wanted state. One pass runs at a time; a request during a pass
/// causes another one after it.
struct Reconciliation {
    private(set) var isRunning = false
    private var isWanted = false

    /// Requests a pass.
    ///
    /// - Returns: whether the caller must start the passes now.
    mutating func request() -> Bool {
        isWanted = true
        if isRunning { return false }
        isRunning = true
        return true
    }

    /// Starts the next pass, or ends the run if none is requested.
    ///
    /// - Returns: whether there is a pass to run.
    mutating func next() -> Bool {
        if isWanted {
            isWanted = false
            return true
        }
        isRunning = false
        return false
    }
}
