import BluetoothTypes

/// The connection handles that a controller used and that belong to no link of the host.
///
/// The number of handles is bounded by ``limit``. Packets with further handles are only counted.
struct StrayHandles {
    enum State {
        /// Data arrived. When the timer fires, the host no longer waits for a late Connection Complete event.
        case observed(TimerQueue.Token)
        /// The controller was told to end the link. Its answer is pending.
        case ending
        /// The controller confirmed that it has the link. The timer limits how long the end may take.
        case endConfirmed(TimerQueue.Token)
        /// The controller has no link with this handle. Its packets are something else, such as its own log.
        case unlinked
    }

    static let limit = 16

    private var states: [ConnectionHandle: State] = [:]

    var count: Int { states.count }
    var isFull: Bool { states.count >= StrayHandles.limit }

    subscript(handle: ConnectionHandle) -> State? {
        get { states[handle] }
        set { states[handle] = newValue }
    }

    /// The timers of all handles, in the order of the handles.
    var timers: [TimerQueue.Token] {
        states.sorted { $0.key.rawValue < $1.key.rawValue }.compactMap(\.value.timer)
    }

    mutating func removeAll() {
        states.removeAll()
    }
}

extension StrayHandles.State {
    var timer: TimerQueue.Token? {
        switch self {
        case .observed(let timer), .endConfirmed(let timer): timer
        case .ending, .unlinked: nil
        }
    }
}
