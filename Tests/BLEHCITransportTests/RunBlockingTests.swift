import Glibc
import Testing

@testable import BLEHCITransport

@Suite("A blocking function")
struct RunBlockingTests {
    /// The label of the queue that runs the caller. Dispatch has the function for C only.
    private static var queueLabel: String? {
        typealias Function = @convention(c) (_ queue: OpaquePointer?) -> UnsafePointer<CChar>?
        guard let symbol = dlsym(nil, "dispatch_queue_get_label") else { return nil }
        return unsafeBitCast(symbol, to: Function.self)(nil).map { String(cString: $0) }
    }

    /// A global queue has no thread for tasks while blocking functions have all of its threads.
    @Test func runsOnAQueueOfItsOwn() async {
        let label = await runBlocking { () -> String? in RunBlockingTests.queueLabel }
        #expect(label == "swift-ble.blocking")
        let labelOfLookup = await withCheckedContinuation { (continuation: CheckedContinuation<String?, Never>) in
            startBlocking { continuation.resume(returning: RunBlockingTests.queueLabel) }
        }
        #expect(labelOfLookup == "swift-ble.blocking")
    }
}
