import BluetoothTypes

/// How long a fragment of the data of a train waits for the next one, if the controller does not report the numbers of
/// events.
///
/// A controller that loses the rest says so (Vol 4, Part E, 7.7.65.15). Some do not, and the data of the next event
/// must not be appended then.
enum FragmentLifetime {
    /// - Parameter interval: the time between two events.
    static func of(interval: Duration) -> Duration { interval / 2 }
}
