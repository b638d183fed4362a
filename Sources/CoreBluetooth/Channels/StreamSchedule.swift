import CoreFoundation
import Foundation
import Synchronization

/// The run loops on which a stream calls its delegate.
///
/// A stream is a source of each run loop, as on Apple's platforms: it keeps the run loop running, and
/// `run(mode:before:)` returns after an event was reported.
final class StreamSchedule: @unchecked Sendable {
    // @unchecked: a `CFRunLoopSource` may be used from any thread; `perform` is set once, before the stream is used.
    // The source is added to run loops and removed from them under the lock of `state`.

    private final class Target {
        weak var schedule: StreamSchedule?
    }

    private struct Entry {
        let runLoop: ObjectIdentifier
        /// Unsafe for the compiler only: the functions of `CFRunLoop` that are used here are thread-safe.
        nonisolated(unsafe) let loop: CFRunLoop
        let mode: String
    }

    /// A run loop of another thread, which adds the source itself when it runs.
    private struct Waiting: Equatable {
        let runLoop: ObjectIdentifier
        let mode: String
        let number: UInt64
    }

    private struct State {
        var entries: [Entry] = []
        var waiting: [Waiting] = []
        var lastNumber: UInt64 = 0
    }

    private let state = Mutex(State())
    private let source: CFRunLoopSource
    /// Reports the pending events to the delegate. Called on the run loop's thread.
    var perform: () -> Void = {}

    init() {
        let target = Target()
        // The source keeps the target until it is invalidated, so the callbacks find it.
        var context = unsafe CFRunLoopSourceContext()
        unsafe context.info = Unmanaged.passRetained(target).toOpaque()
        unsafe context.release = { info in
            if let info = unsafe info { unsafe Unmanaged<Target>.fromOpaque(info).release() }
        }
        unsafe context.perform = { info in
            guard let info = unsafe info else { return }
            unsafe Unmanaged<Target>.fromOpaque(info).takeUnretainedValue().schedule?.perform()
        }
        source = unsafe CFRunLoopSourceCreate(nil, 0, &context)
        target.schedule = self
    }

    deinit {
        CFRunLoopSourceInvalidate(source)
    }

    /// Whether the stream is on any run loop.
    var isEmpty: Bool { state.withLock { $0.entries.isEmpty } }

    func add(_ runLoop: RunLoop, _ mode: RunLoop.Mode) {
        let name = ObjectIdentifier(runLoop)
        if runLoop === RunLoop.current {
            add(name, CFRunLoopGetCurrent(), mode.rawValue)
        } else if runLoop === RunLoop.main {
            add(name, CFRunLoopGetMain(), mode.rawValue)
        } else {
            let waiting = state.withLock { state in
                state.lastNumber += 1
                let waiting = Waiting(runLoop: name, mode: mode.rawValue, number: state.lastNumber)
                state.waiting.append(waiting)
                return waiting
            }
            // Foundation gives access to another thread's run loop on that thread only.
            let timer = Timer(fire: Date(), interval: 0, repeats: false) { [weak self] _ in
                self?.add(name, CFRunLoopGetCurrent(), mode.rawValue, waiting)
            }
            runLoop.add(timer, forMode: mode)
        }
    }

    /// Adds the source to a run loop.
    ///
    /// - Parameter waiting: the entry of an earlier call for a run loop of another thread; nil for the run loop of the
    ///   caller. If the stream was removed from that run loop since then, it is not added.
    private func add(_ runLoop: ObjectIdentifier, _ loop: CFRunLoop, _ mode: String, _ waiting: Waiting? = nil) {
        let entry = Entry(runLoop: runLoop, loop: loop, mode: mode)
        state.withLock { state in
            if let waiting {
                guard let index = state.waiting.firstIndex(of: waiting) else { return }
                state.waiting.remove(at: index)
            }
            unsafe CFRunLoopAddSource(entry.loop, source, Self.name(of: mode))
            state.entries.append(entry)
        }
        signal()
    }

    func remove(_ runLoop: RunLoop, _ mode: RunLoop.Mode) {
        let name = ObjectIdentifier(runLoop)
        state.withLock { state in
            state.waiting.removeAll { $0.runLoop == name && $0.mode == mode.rawValue }
            for entry in state.entries where entry.runLoop == name && entry.mode == mode.rawValue {
                unsafe CFRunLoopRemoveSource(entry.loop, source, Self.name(of: entry.mode))
            }
            state.entries.removeAll { $0.runLoop == name && $0.mode == mode.rawValue }
        }
    }

    /// Makes the run loops call ``perform``.
    func signal() {
        CFRunLoopSourceSignal(source)
        for entry in state.withLock({ $0.entries }) { unsafe CFRunLoopWakeUp(entry.loop) }
    }

    private static func name(of mode: String) -> CFString {
        // A run loop recognizes the common modes by this object only, not by an equal string.
        if mode == RunLoop.Mode.common.rawValue { return kCFRunLoopCommonModes }
        let utf8: CFStringEncoding = 0x0800_0100
        return unsafe CFStringCreateWithCString(nil, mode, utf8)
    }
}
