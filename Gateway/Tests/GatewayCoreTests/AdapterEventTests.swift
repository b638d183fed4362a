import BLE
import GatewayTestSupport
import NIOPosix
import Testing

@testable import GatewayCore

/// Events of adapters in the log.
struct AdapterEventTests {
    /// The library does not know the option with which the gateway's directory is named.
    @Test func errorOfTheBondFileNamesTheOption() {
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
        runner.handle(.stateUnavailable(reason: "free space, or name another directory: nothing is saved")) {
            Issue.record("the adapter can be used as before")
        }
        #expect(log.lines == ["warning: free space, or name another directory with --state-dir: nothing is saved"])
    }
}
