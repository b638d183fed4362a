import Synchronization

/// Something that tasks wait for: the elements of a sequence.
package protocol WakingReaders: AnyObject, Sendable {
    /// Wakes as many of the waiting tasks as there are elements.
    func wake()
}

/// The readers of sequences on other threads than the loop's for which elements have arrived.
///
/// To wake a thread costs more than to receive a packet. So the readers are woken at the end of the loop's turn, when
/// all packets that were read together have been received. A call that ends earlier, the end of a sequence, or another
/// kind of event wakes them first. So tasks learn of elements and outcomes in the order of the packets.
package final class ReaderQueue: Sendable {
    private let loop: any EventLoop
    private let waiting = Mutex<[any WakingReaders]>([])
    private let isEmpty = Atomic(true)

    package init(loop: any EventLoop) {
        self.loop = loop
    }

    /// Whether the caller runs on the loop. Readers there need no thread to be woken.
    package var isOnLoop: Bool { loop.isIsolatingCurrentContext() == true }

    /// Whether readers wait to be woken.
    var areWaiting: Bool { !isEmpty.load(ordering: .relaxed) }

    /// Wakes readers later, in the order of the calls.
    package func wakeLater(_ readers: any WakingReaders) {
        let isFirst = waiting.withLock { waiting in
            waiting.append(readers)
            isEmpty.store(false, ordering: .relaxed)
            return waiting.count == 1
        }
        if isFirst { loop.execute(wakeAll) }
    }

    /// Wakes all readers that wait to be woken, in their order.
    package func wakeAll() {
        guard areWaiting else { return }
        let woken = waiting.withLock { waiting in
            isEmpty.store(true, ordering: .relaxed)
            defer { waiting = [] }
            return waiting
        }
        for readers in woken { readers.wake() }
    }
}
