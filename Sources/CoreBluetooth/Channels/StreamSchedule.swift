import CoreFoundation
import Foundation
import Synchronization

/// The run loops on which a stream calls its delegate.
///
/// A stream is a source of each run loop, as on Apple's platforms: it keeps the run loop running, and
/// `run(mode:before:)` returns after an event was reported.
final class StreamSchedule: @unchecked Sendable {
    // @unchecked: a `CFRunLoopSource` may be used from any thread; `perform` is set once, before the stream is used.

    private final class Target {
        weak var schedule: StreamSchedule?
    }

    private struct Entry {
        let runLoop: ObjectIdentifier
        /// Unsafe for the compiler only: the functions of `CFRunLoop` that are used here are thread-safe.
        nonisolated(unsafe) let loop: CFRunLoop
        let mode: String
    }

    private let entries = Mutex<[Entry]>([])
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
    var isEmpty: Bool { entries.withLock { $0.isEmpty } }

    func add(_ runLoop: RunLoop, _ mode: RunLoop.Mode) {
        let name = ObjectIdentifier(runLoop)
        if runLoop === RunLoop.current {
            add(name, CFRunLoopGetCurrent(), mode.rawValue)
        } else if runLoop === RunLoop.main {
            add(name, CFRunLoopGetMain(), mode.rawValue)
        } else {
            // Foundation gives access to another thread's run loop on that thread only.
            let timer = Timer(fire: Date(), interval: 0, repeats: false) { [weak self] _ in
                self?.add(name, CFRunLoopGetCurrent(), mode.rawValue)
            }
            runLoop.add(timer, forMode: mode)
        }
    }

    private func add(_ runLoop: ObjectIdentifier, _ loop: CFRunLoop, _ mode: String) {
        CFRunLoopAddSource(loop, source, Self.name(of: mode))
        let entry = Entry(runLoop: runLoop, loop: loop, mode: mode)
        entries.withLock { $0.append(entry) }
        signal()
    }

    func remove(_ runLoop: RunLoop, _ mode: RunLoop.Mode) {
        let name = ObjectIdentifier(runLoop)
        let removed = entries.withLock { entries in
            let removed = entries.filter { $0.runLoop == name && $0.mode == mode.rawValue }
            entries.removeAll { $0.runLoop == name && $0.mode == mode.rawValue }
            return removed
        }
        for entry in removed { unsafe CFRunLoopRemoveSource(entry.loop, source, Self.name(of: entry.mode)) }
    }

    /// Makes the run loops call ``perform``.
    func signal() {
        CFRunLoopSourceSignal(source)
        for entry in entries.withLock({ $0 }) { unsafe CFRunLoopWakeUp(entry.loop) }
    }

    private static func name(of mode: String) -> CFString {
        let utf8: CFStringEncoding = 0x0800_0100
        return unsafe CFStringCreateWithCString(nil, mode, utf8)
    }
}
