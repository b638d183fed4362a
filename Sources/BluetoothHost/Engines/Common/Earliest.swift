import BluetoothTypes

/// The earlier of two instants; the other one if one is nil.
func earliest(_ first: Instant?, _ second: Instant?) -> Instant? {
    guard let first, let second else { return first ?? second }
    return min(first, second)
}
