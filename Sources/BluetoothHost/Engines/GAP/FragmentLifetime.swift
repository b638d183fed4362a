import BluetoothTypes

/// How long fragments of the data of a train wait for the rest.
///
/// A controller that loses the rest says so (Vol 4, Part E, 7.7.65.15). Some do not, and the data of the next event must not
/// be appended then.
enum FragmentLifetime {
    /// Fragments of one event may be received this far apart, by a host that is busy.
    static let shortest = Duration.milliseconds(50)

    /// - Parameter interval: the time between two events.
    static func of(interval: Duration) -> Duration { max(shortest, interval * 3 / 4) }
}
