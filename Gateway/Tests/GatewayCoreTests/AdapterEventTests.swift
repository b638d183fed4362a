import BLE
import GatewayTestSupport
import NIOPosix
import Testing

@testable import GatewayCore

/// Events of adapters in the log.
struct AdapterEventTests {
    private static let advice = "free space, or name another directory"

    /// The library does not know the option with which the gateway's directory is named.
    @Test func warningAboutTheSavedStateNamesTheOption() throws {
        let log = LogRecorder()
        var configuration = GatewayConfiguration(name: "hall")
        configuration.logger = log.logger
        let warn = try #require(Gateway.adapterSettings(configuration).warn)
        warn("\(Self.advice): nothing is saved")
        #expect(log.lines == ["warning: \(Self.advice) with --state-dir: nothing is saved"])
    }

    /// An adapter that the gateway opens has logged the warning when it was opened.
    @Test func warningAboutTheSavedStateIsLoggedOnce() {
        let log = LogRecorder()
        let scanner = Scanner(
            adapterCount: 1,
            mode: .active,
            eventLoop: MultiThreadedEventLoopGroup.singleton.next(),
            logger: log.logger
        )
        let opener = AdapterOpener(
            specification: .virtual(name: "none"),
            configuration: .init(),
            system: FakeKernel(),
            others: []
        )
        let runner = AdapterRunner(
            index: 0,
            name: "adapter",
            source: .opener(opener),
            watch: AdapterWatch(FakeKernel()),
            scanner: scanner,
            events: EventLog(),
            logger: log.logger
        )
        runner.handle(.stateUnavailable(reason: "\(Self.advice): nothing is saved")) {
            Issue.record("the adapter can be used as before")
        }
        #expect(log.lines == ["debug: \(Self.advice) with --state-dir: nothing is saved"])
    }
}
