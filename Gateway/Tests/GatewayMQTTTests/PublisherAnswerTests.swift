import Dispatch
import GatewayCore
import GatewayTestSupport
import Synchronization
import Testing

@testable import GatewayMQTT

/// The answer of a publisher, without which the watchdog of the service manager is not fed.
struct PublisherAnswerTests {
    @Test func answerWaitsUntilTheQueueIsFree() async throws {
        let configuration = MQTTConfiguration(
            broker: try #require(BrokerAddress(parsing: "mqtt://127.0.0.1:1")),
            gateway: "hall",
            logger: LogRecorder().logger
        )
        let hasAnswered = DispatchSemaphore(value: 0)
        let isEarly = Mutex<Bool?>(nil)
        let publisher = try MQTTPublisher(configuration) {
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
}
