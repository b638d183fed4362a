import Configuration
import Foundation
import GatewayMQTT
import GatewayTestSupport
import Logging
import Synchronization
import Testing

@testable import Gateway

struct DeliveryWindowTests {
    @Test func connectionsThatEndWithoutAConfirmationAreCounted() {
        var window = DeliveryWindow<String>(limit: 2, timeout: .seconds(60))
        window.connectionLost()
        #expect(window.fruitlessConnectionCount == 0)
        for element in ["a", "b", "c"] { window.append(element) }
        var last: Int32 = 0
        let send: (String) -> Int32? = { _ in
            last += 1
            return last
        }
        window.sendAll(at: .zero, send)
        window.connectionLost()
        window.sendAll(at: .zero, send)
        window.connectionLost()
        #expect(window.fruitlessConnectionCount == 2)
        window.sendAll(at: .zero, send)
        #expect(window.confirm(last - 1) == "a")
        #expect(window.fruitlessConnectionCount == 0)
        window.connectionLost()
        #expect(window.fruitlessConnectionCount == 1)
        #expect(window.removeFirst() == "b")
        #expect(window.fruitlessConnectionCount == 0)
        #expect(window.count == 1)
    }

    @Test func elementsAreSentInOrderAndALimitedNumberIsNotConfirmed() {
        var window = DeliveryWindow<String>(limit: 2, timeout: .seconds(60))
        for element in ["a", "b", "c", "d"] { window.append(element) }
        var sent: [String] = []
        let send: (String) -> Int32? = { element in
            sent.append(element)
            return Int32(sent.count)
        }
        window.sendAll(at: .zero, send)
        #expect(sent == ["a", "b"])
        #expect(window.confirm(2) == "b")
        #expect(window.confirm(2) == nil)
        window.sendAll(at: .zero, send)
        #expect(sent == ["a", "b", "c"])
        #expect(window.count == 3)
    }

    @Test func unconfirmedElementsAreSentAgainFirst() {
        var window = DeliveryWindow<String>(limit: 2, timeout: .seconds(60))
        for element in ["a", "b", "c"] { window.append(element) }
        var number: Int32 = 0
        window.sendAll(at: .zero) { _ in
            number += 1
            return number
        }
        #expect(window.confirm(1) == "a")
        window.connectionLost()
        var sent: [String] = []
        window.sendAll(at: .zero) { element in
            sent.append(element)
            return Int32(10 + sent.count)
        }
        #expect(sent == ["b", "c"])
        #expect(window.confirm(2) == nil)
        #expect(window.confirm(11) == "b" && window.confirm(12) == "c" && window.count == 0)
    }

    @Test func elementThatCannotBeSentWaits() {
        var window = DeliveryWindow<Int>(limit: 2, timeout: .seconds(60))
        window.append(1)
        window.sendAll(at: .zero) { _ in nil }
        #expect(window.count == 1)
        window.sendAll(at: .zero) { _ in 5 }
        #expect(window.confirm(5) == 1)
    }

    @Test func elementThatIsNotConfirmedOnThreeConnectionsIsRemoved() {
        var window = DeliveryWindow<String>(limit: 2, timeout: .seconds(60))
        for element in ["a", "b"] { window.append(element) }
        var time = Duration.zero
        var number: Int32 = 0
        let send: (String) -> Int32? = { _ in
            number += 1
            return number
        }
        var outcomes: [String] = []
        for _ in 0..<3 {
            window.sendAll(at: time, send)
            // The broker confirms the second one, or what follows it.
            _ = window.confirm(number)
            #expect(window.checkOverdue(at: time + .seconds(59)) == nil)
            time += .seconds(60)
            switch window.checkOverdue(at: time) {
            case .reconnect:
                outcomes.append("reconnect")
                window.connectionLost()
                window.append("c")
            case .removed(let element): outcomes.append("removed \(element)")
            case nil: outcomes.append("nothing")
            }
        }
        #expect(outcomes == ["reconnect", "reconnect", "removed a"])
        #expect(window.count == 0 && window.checkOverdue(at: .seconds(1000)) == nil)
    }
}

struct FleetOutputTests {
    private func line(_ number: UInt64) -> FleetOutput.Line {
        .init(text: "line \(number)", topic: nil, isRetained: false, tokens: [number])
    }

    @Test func linesAreWrittenInOrderAndTheirMessagesAreFinished() {
        var descriptors: [Int32] = [0, 0]
        #expect(pipe(&descriptors) == 0)
        let finished = Mutex<[UInt64]>([])
        let output = FleetOutput(
            descriptor: descriptors[1],
            logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })
        ) { tokens in
            finished.withLock { $0 += tokens }
        } failed: { error in
            Issue.record("\(error)")
        }
        output.write([line(1), line(2)])
        output.write([])
        output.write([line(3)])
        output.stop(timeout: .seconds(30))
        close(descriptors[1])
        let data = FileHandle(fileDescriptor: descriptors[0], closeOnDealloc: true).readDataToEndOfFile()
        #expect(String(decoding: data, as: UTF8.self) == "line 1\nline 2\nline 3\n")
        #expect(finished.withLock { $0 } == [1, 2, 3])
        #expect(output.waitingCount == 0 && output.writtenCount == 3 && !output.isFull)
    }

    @Test func readerThatHasGoneIsReportedOnceAndItsLinesAreNotFinished() {
        signal(SIGPIPE, SIG_IGN)
        var descriptors: [Int32] = [0, 0]
        #expect(pipe(&descriptors) == 0)
        close(descriptors[0])
        let errors = Mutex<[FleetOutputError]>([])
        let output = FleetOutput(
            descriptor: descriptors[1],
            logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })
        ) { tokens in
            Issue.record("finished: \(tokens)")
        } failed: { error in
            errors.withLock { $0.append(error) }
        }
        for number: UInt64 in 0..<10 { output.write([line(number)]) }
        output.stop(timeout: .seconds(30))
        #expect(errors.withLock { $0 } == [FleetOutputError(errorNumber: EPIPE)])
        #expect(output.waitingCount == 10)
        close(descriptors[1])
    }

    @Test func outputThatIsNotReadIsFullInTheEnd() {
        var descriptors: [Int32] = [0, 0]
        #expect(pipe(&descriptors) == 0)
        let output = FleetOutput(
            descriptor: descriptors[1],
            logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })
        ) { _ in
        } failed: { _ in
        }
        let text = String(repeating: "x", count: 100)
        while !output.isFull { output.write([.init(text: text, topic: nil, isRetained: false, tokens: [])]) }
        #expect(output.waitingCount >= FleetOutput.limit)
        let thread = Thread { [reader = descriptors[0]] in
            _ = FileHandle(fileDescriptor: reader, closeOnDealloc: true).readDataToEndOfFile()
        }
        thread.start()
        output.stop(timeout: .seconds(30))
        #expect(output.waitingCount == 0)
        close(descriptors[1])
        while !thread.isFinished { sched_yield() }
    }

    @Test(.timeLimit(.minutes(2)))
    func checksDoNotPileUpWhileTheOutputIsNotRead() {
        var descriptors: [Int32] = [0, 0]
        #expect(pipe(&descriptors) == 0)
        let output = FleetOutput(
            descriptor: descriptors[1],
            logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })
        ) { _ in
        } failed: { _ in
        }
        // More than a pipe holds.
        let text = String(repeating: "x", count: 1 << 20)
        output.write([.init(text: text, topic: nil, isRetained: false, tokens: [])])
        var addedCount = 0
        for _ in 0..<1000 where output.checkConfirmations() { addedCount += 1 }
        #expect(addedCount == 1)
        let thread = Thread { [reader = descriptors[0]] in
            _ = FileHandle(fileDescriptor: reader, closeOnDealloc: true).readDataToEndOfFile()
        }
        thread.start()
        output.stop(timeout: .seconds(30))
        // The check comes after the lines. Then there is room for another one.
        while !output.checkConfirmations() { usleep(1000) }
        close(descriptors[1])
        while !thread.isFinished { sched_yield() }
    }

    @Test(.timeLimit(.minutes(2)))
    func lineThatTheBrokerNeverConfirmsIsLeftOut() throws {
        let broker = try SocketBroker { $0.payload == "line 2" ? .ignore : .confirm }
        defer { broker.stop() }
        let logger = Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })
        let finished = Mutex<[UInt64]>([])
        let output = FleetOutput(
            descriptor: open("/dev/null", O_WRONLY),
            confirmationTimeout: .seconds(2),
            logger: logger
        ) { tokens in
            finished.withLock { $0 += tokens }
        } failed: { error in
            Issue.record("\(error)")
        }
        let address = try #require(BrokerAddress(parsing: "mqtt://127.0.0.1:\(broker.port)"))
        try output.publish(by: MQTTConfiguration(broker: address, gateway: "fleet", logger: logger))
        output.start()
        output.write((1...3).map { .init(text: "line \($0)", topic: "fleet", isRetained: false, tokens: [$0]) })
        while output.waitingCount > 0 {
            output.checkConfirmations()
            usleep(1000)
        }
        output.stop(timeout: .zero)
        #expect(finished.withLock { $0.sorted() } == [1, 2, 3])
        #expect(finished.withLock { $0.last } == 2)
        #expect(broker.connectionCount == 3)
    }

    // MARK: A reader that is slow

    /// An output that publishes, whose queue writes lines that are not read until ``read()``.
    private struct SlowOutput {
        let output: FleetOutput
        private let reader: Int32
        private let writer: Int32

        init(_ broker: SocketBroker, timeSinceStart: @escaping @Sendable () -> Duration = { .zero }) throws {
            var descriptors: [Int32] = [0, 0]
            #expect(pipe(&descriptors) == 0)
            reader = descriptors[0]
            writer = descriptors[1]
            let logger = Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })
            output = FleetOutput(descriptor: writer, timeSinceStart: timeSinceStart, logger: logger) { _ in
            } failed: { error in
                Issue.record("\(error)")
            }
            let address = try #require(BrokerAddress(parsing: "mqtt://127.0.0.1:\(broker.port)"))
            try output.publish(by: MQTTConfiguration(broker: address, gateway: "fleet", logger: logger))
            output.start()
        }

        func publish(_ texts: [String]) {
            output.write(texts.map { .init(text: $0, topic: "fleet", isRetained: false, tokens: []) })
        }

        /// Writes more than a pipe holds, then publishes lines.
        func block(before texts: [String]) {
            let text = String(repeating: "x", count: 1 << 20)
            let lines = texts.map { FleetOutput.Line(text: $0, topic: "fleet", isRetained: false, tokens: []) }
            output.write([.init(text: text, topic: nil, isRetained: false, tokens: [])] + lines)
        }

        func wait(until condition: () -> Bool) { while !condition() { usleep(1000) } }

        /// Reads the lines from now on.
        func read() {
            Thread { [reader] in
                _ = FileHandle(fileDescriptor: reader, closeOnDealloc: true).readDataToEndOfFile()
            }.start()
        }

        func stop() {
            output.stop(timeout: .zero)
            close(writer)
        }
    }

    @Test(.timeLimit(.minutes(2)))
    func linesArePublishedOnceIfTheConnectionIsMadeAgainWhileTheOutputIsNotRead() throws {
        let isBlocked = Atomic(false)
        let isFirst = Atomic(true)
        let broker = try SocketBroker { message in
            guard message.payload == "line 1", isFirst.exchange(false, ordering: .relaxed) else { return .confirm }
            while !isBlocked.load(ordering: .acquiring) { usleep(1000) }
            return .endConnection
        }
        defer { broker.stop() }
        let slow = try SlowOutput(broker)
        slow.publish(["line 0"])
        slow.wait { slow.output.waitingCount == 0 }
        slow.publish(["line 1"])
        slow.block(before: ["line 2", "line 3"])
        isBlocked.store(true, ordering: .releasing)
        slow.wait { slow.output.connectionNumber == 2 }
        slow.read()
        slow.wait { slow.output.waitingCount == 0 }
        slow.stop()
        #expect(broker.messages.map(\.payload) == ["line 0", "line 1", "line 2", "line 3"])
    }

    @Test(.timeLimit(.minutes(2)))
    func confirmationThatComesWhileTheOutputIsNotReadIsInTime() throws {
        let isChecked = Atomic(false)
        let broker = try SocketBroker { message in
            while message.payload == "line 1", !isChecked.load(ordering: .acquiring) { usleep(1000) }
            return .confirm
        }
        defer { broker.stop() }
        let time = Mutex(Duration.zero)
        let slow = try SlowOutput(broker) { time.withLock { $0 } }
        slow.publish(["line 0"])
        slow.wait { slow.output.waitingCount == 0 }
        slow.publish(["line 1"])
        slow.block(before: [])
        // The check waits for the queue, before the confirmation.
        #expect(slow.output.checkConfirmations())
        isChecked.store(true, ordering: .releasing)
        slow.wait { broker.messages.count == 2 }
        time.withLock { $0 = .seconds(3600) }
        slow.read()
        slow.publish(["line 2"])
        slow.wait { slow.output.waitingCount == 0 }
        slow.stop()
        #expect(broker.messages.map(\.payload) == ["line 0", "line 1", "line 2"])
        #expect(broker.connectionCount == 1)
    }
}

struct FleetSettingsTests {
    @Test func optionsBecomeSettings() throws {
        let command = try Fleet.parse([
            "--mqtt", "mqtt://me@broker", "--session", "kitchen", "--window", "500", "--publish", "home", "--http",
            "8054",
            "--log-level", "debug", "--state-dir", "/s",
        ])
        let settings = try command.settings()
        #expect("\(try #require(settings.broker))" == "mqtt://me@broker:1883")
        #expect(settings.fleetSession == "kitchen")
        #expect(settings.fleetWindow == 500)
        #expect(settings.fleetPublish == "home")
        #expect(settings.http?.port == 8054)
        #expect(settings.logLevel == .debug)
        #expect(StateDirectory(path: settings.stateDirectory).fleetJournalPath == "/s/fleet")
    }

    @Test(arguments: [
        (["--window", "99"], "--window: 99 is not valid; use a number from 100 to 60000"),
        (
            ["--session", "a b"],
            "--session: \"a b\" is not valid; use 1 to 64 letters, digits, hyphens, dots and underscores"
        ),
        (
            ["--publish", "a\u{1}"],
            "--publish: \"a\\u{1}\" is not valid; use a topic without wildcards, of at most 200 bytes"
        ),
        (["--publish", "a/#"], "--publish: \"a/#\" is not valid; use a topic without wildcards, of at most 200 bytes"),
    ])
    func invalidOptionIsNamed(arguments: [String], message: String) throws {
        let command = try Fleet.parse(arguments + ["--state-dir", "/s"])
        let error = #expect(throws: SettingsError.self) { try command.settings() }
        #expect("\(try #require(error))" == message)
    }
}
