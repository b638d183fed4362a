import GRDB
import GatewayTestSupport
import Testing

@testable import GatewayMQTT

/// The file of a store, and its failures.
struct StoreFileTests {
    private let log = LogRecorder()

    /// A failed wait for a lock takes a second. Several of them would be too long at the end of the process.
    @Test func limitedStoreIsNotUsedAfterAFailedWait() throws {
        try withStore { path in
            var file = StoreFile(queueProgress: QueueProgress(), logger: log.logger)
            file.path = path
            let store = file.open()
            #expect(store != nil)
            var callCount = 0
            func perform(failing resultCode: ResultCode?) {
                _ = file.perform(.append) { _ in
                    callCount += 1
                    if let resultCode { throw DatabaseError(resultCode: resultCode) }
                }
            }
            perform(failing: .SQLITE_BUSY)
            file.limitLockWaits()
            perform(failing: .SQLITE_FULL)
            perform(failing: .SQLITE_BUSY)
            #expect(callCount == 3)
            perform(failing: nil)
            #expect(callCount == 3)
            file.limitLockWaits()
            perform(failing: nil)
            #expect(callCount == 4)
        }
    }
}
