import Dispatch
import GatewayCore
import GatewayTestSupport
import Synchronization
import Testing

@testable import GatewayMQTT

/// The answer of a publisher, without which the watchdog of the service manager is not fed.
struct PublisherAnswerTests {
    private func configuration() throws -> MQTTConfiguration {
        MQTTConfiguration(
            broker: try #require(BrokerAddress(parsing: "mqtt://127.0.0.1:1")),
            gateway: "hall",
            logger: LogRecorder().logger
        )
    }

    @Test func answerWaitsUntilTheQueueIsFree() async throws {
        let hasAnswered = DispatchSemaphore(value: 0)
        let isEarly = Mutex<Bool?>(nil)
        let publisher = try MQTTPublisher(configuration()) {
            // The queue asks for the time. The first time, it is blocked until there is an answer, or for 100 ms.
            isEarly.withLock { isEarly in
                guard isEarly == nil else { return }
                isEarly = hasAnswered.wait(timeout: .now() + .milliseconds(100)) == .success
            }
            return .zero
        }
        publisher.publish(ConnectionSlots(free: 1, limit: 1))
        await publisher.answer()
        hasAnswered.signal()
        #expect(isEarly.withLock { $0 } == false)
    }

    /// Why an answer does not wait for a queue that is blocked.
    enum End: CaseIterable {
        case useOfTheStore
        case cancellation
    }

    @Test(arguments: End.allCases)
    func answerDoesNotWaitForABlockedQueue(end: End) async throws {
        let release = DispatchSemaphore(value: 0)
        // Whether the queue is blocked; nil before it was.
        let isBlocked = Mutex<Bool?>(nil)
        let publisher = try MQTTPublisher(configuration()) {
            let isFirst = isBlocked.withLock { isBlocked in
                defer { isBlocked = isBlocked ?? true }
                return isBlocked == nil
            }
            guard isFirst else { return .zero }
            // Without an answer, the queue is free after five minutes.
            _ = release.wait(timeout: .now() + .seconds(300))
            isBlocked.withLock { $0 = false }
            return .zero
        }
        publisher.publish(ConnectionSlots(free: 1, limit: 1))
        while isBlocked.withLock({ $0 }) == nil { await Task.yield() }
        let answer = Task { await publisher.answer() }
        switch end {
        case .useOfTheStore: publisher.queueProgress.beginStoreUse()
        case .cancellation: answer.cancel()
        }
        await answer.value
        #expect(isBlocked.withLock { $0 } == true)
        release.signal()
    }

    @Test func openingAndUsingTheFileEndsWaits() throws {
        try withStore { path in
            let progress = QueueProgress()
            func hasEnded(_ call: AsyncStream<Void>.Continuation) -> Bool {
                if case .terminated = call.yield() { true } else { false }
            }
            var file = StoreFile(queueProgress: progress, logger: LogRecorder().logger)
            file.path = path
            let (firstStream, first) = AsyncStream.makeStream(of: Void.self)
            progress.add(first)
            #expect(!hasEnded(first))
            _ = file.open()
            #expect(file.isOpen && hasEnded(first) && !progress.usesStore)
            let (secondStream, second) = AsyncStream.makeStream(of: Void.self)
            progress.add(second)
            #expect(!hasEnded(second))
            var usesStore = false
            _ = file.perform(.read) { _ in usesStore = progress.usesStore }
            #expect(usesStore && hasEnded(second) && !progress.usesStore)
            // A stream without a reader is terminated.
            withExtendedLifetime((firstStream, secondStream)) {}
        }
    }
}
