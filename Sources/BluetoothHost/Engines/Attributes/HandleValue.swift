import BluetoothTypes

/// A value that a server sent in a notification or an indication.
public struct HandleValue: Hashable, Sendable {
    /// The handle of the characteristic's value.
    public let handle: AttributeHandle
    /// The stored form of ``droppedBefore``. It lies next to `handle`, where it does not increase the size of the
    /// structure.
    private var droppedCount: UInt32 = 0
    /// The value; at most ATT_MTU - 3 bytes.
    public let value: [UInt8]
    /// Whether the value was indicated. If false, it was notified.
    public let isIndication: Bool
    /// When the value arrived, on the host's clock.
    public let time: Instant

    /// The number of values that were dropped directly before this one, because the reader was too slow.
    public package(set) var droppedBefore: Int {
        get { Int(droppedCount) }
        set { droppedCount = UInt32(clamping: newValue) }
    }

    init(handle: AttributeHandle, value: [UInt8], isIndication: Bool, time: Instant) {
        self.handle = handle
        self.value = value
        self.isIndication = isIndication
        self.time = time
    }
}
