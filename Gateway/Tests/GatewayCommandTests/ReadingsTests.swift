import BLE
import BluetoothSensors
import Foundation
import GatewayCore
import Logging
import Synchronization
import Testing

@testable import Gateway

struct ReadingsTests {
    private func observation(name: String? = nil, rssi: Int? = nil, _ report: SensorReport) -> SensorObservation {
        SensorObservation(
            time: Date(timeIntervalSince1970: 1_700_000_000.25),
            gateway: "hall",
            address: "C0:DE:00:00:00:02",
            name: name,
            rssi: rssi,
            report: report
        )
    }

    @Test func observationIsOneLineOfJSON() {
        let report = SensorReport(
            format: .bthome,
            protection: .authenticated,
            counter: 7,
            readings: [
                SensorReading(.temperature, .number(21.5), unit: "°C"), SensorReading(.battery, .number(90), unit: "%"),
                SensorReading(.button, .event("press", count: nil)), SensorReading(.dimmer, .event("left", count: 3)),
            ]
        )
        let text = observation(name: "Hygro", rssi: -60, report).json
        #expect(
            text == """
                {"time": "2023-11-14T22:13:20.250Z", "gateway": "hall", "address": "C0:DE:00:00:00:02", \
                "name": "Hygro", "rssi": -60, "format": "bthome_v2", "encrypted": true, "counter": 7, \
                "readings": {"temperature": {"value": 21.5, "unit": "°C"}, "battery": {"value": 90, "unit": "%"}, \
                "button": {"event": "press"}, "dimmer": {"event": "left", "count": 3}}}
                """
        )
    }

    @Test(arguments: ["\"", "\\", "\n", "\u{1B}[2J", "\u{0}", "\u{202E}", "\u{9B}", "ß😀", "{\"a\": 1}"])
    func anyNameIsEscaped(name: String) throws {
        let text = observation(name: name, SensorReport(format: .ibeacon, readings: [])).json
        let object = try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any]
        #expect(object?["name"] as? String == name)
        let isSafe = text.unicodeScalars.allSatisfy { $0.properties.generalCategory != .control && $0 != "\u{202E}" }
        #expect(isSafe)
    }

    @Test(arguments: [(0.0, "0"), (-3, "-3"), (1e300, "1e+300"), (0.1, "0.1"), (.infinity, "null"), (.nan, "null")])
    func numbersAreValidJSON(number: Double, text: String) throws {
        let report = SensorReport(format: .bthome, readings: [SensorReading(.pressure, .number(number))])
        let line = observation(report).json
        #expect(line.contains(#""pressure": {"value": \#(text)}"#), "\(line)")
        _ = try JSONSerialization.jsonObject(with: Data(line.utf8))
    }
}

struct LineWriterTests {
    /// Reads to the end of a pipe.
    private func lines(from descriptor: Int32) -> [Substring] {
        let data = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true).readDataToEndOfFile()
        return String(decoding: data, as: UTF8.self).split(separator: "\n")
    }

    private func makePipe() -> (reader: Int32, writer: Int32) {
        var descriptors: [Int32] = [0, 0]
        #expect(pipe(&descriptors) == 0)
        return (descriptors[0], descriptors[1])
    }

    @Test func linesAreWrittenInOrder() {
        let (reader, descriptor) = makePipe()
        let writer = LineWriter(descriptor: descriptor, logger: Logger(label: "test"))
        for number in 0..<1000 { writer.write("\(number)") }
        writer.finish(timeout: .seconds(10))
        close(descriptor)
        #expect(lines(from: reader) == (0..<1000).map { "\($0)" })
        #expect(writer.droppedCount == 0)
    }

    /// Nobody reads while the lines are written, so the pipe and then the queue are full.
    @Test func slowReaderLosesTheOldestLinesAndHoldsNothingUp() {
        let (reader, descriptor) = makePipe()
        let writer = LineWriter(descriptor: descriptor, logger: Logger(label: "test"))
        let text = String(repeating: "x", count: 100)
        let count = 10_000
        for number in 0..<count { writer.write("\(number) \(text)") }
        let dropped = writer.droppedCount
        #expect(dropped > 0)
        let result = Mutex<[Int]>([])
        let thread = Thread { [self] in
            let numbers = lines(from: reader).compactMap { $0.split(separator: " ").first.flatMap { Int($0) } }
            result.withLock { $0 = numbers }
        }
        thread.start()
        writer.finish(timeout: .seconds(10))
        close(descriptor)
        while !thread.isFinished { sched_yield() }
        let numbers = result.withLock { $0 }
        #expect(numbers.count == count - Int(dropped))
        #expect(numbers == numbers.sorted() && numbers.last == count - 1)
    }

    @Test func descriptorThatDoesNotBlockLosesNothing() {
        let (reader, descriptor) = makePipe()
        #expect(fcntl(descriptor, F_SETFL, O_NONBLOCK) == 0)
        let writer = LineWriter(descriptor: descriptor, logger: Logger(label: "test"))
        // More than a pipe holds, and not more than the lines that wait.
        let text = String(repeating: "x", count: 100)
        for _ in 0..<LineWriter.limit { writer.write(text) }
        let count = Mutex(0)
        let thread = Thread { [self] in
            let lines = lines(from: reader)
            count.withLock { $0 = lines.count }
        }
        thread.start()
        writer.finish(timeout: .seconds(10))
        close(descriptor)
        while !thread.isFinished { sched_yield() }
        #expect(count.withLock { $0 } == LineWriter.limit)
        #expect(writer.droppedCount == 0)
    }

    @Test func linesAfterAFullDiskAreWritten() {
        let descriptor = open("/dev/full", O_WRONLY)
        let writer = LineWriter(descriptor: descriptor, logger: Logger(label: "test"))
        for number in 0..<3 { writer.write("\(number)") }
        writer.finish(timeout: .seconds(10))
        #expect(writer.droppedCount == 3)
        let (reader, pipe) = makePipe()
        dup2(pipe, descriptor)
        close(pipe)
        for number in 3..<6 { writer.write("\(number)") }
        writer.finish(timeout: .seconds(10))
        close(descriptor)
        #expect(lines(from: reader) == ["3", "4", "5"])
        #expect(writer.droppedCount == 3)
    }

    /// The numbers of bytes that were written, with the lines that are lost, and whether the last one is incomplete.
    @Test(
        arguments: [
            (0, 2, false), (1, 2, true), (2, 2, true), (3, 1, false), (4, 1, true), (6, 0, false),
        ]
    )
    func partOfABatchIsWritten(count: Int, lostCount: Int, isIncomplete: Bool) {
        let batch = LineBatch(["ab", "cd"], isAfterIncompleteLine: false)
        #expect(batch.bytes == Array("ab\ncd\n".utf8))
        #expect(batch.lostCount(afterWriting: count) == lostCount)
        #expect(batch.isIncomplete(afterWriting: count) == isIncomplete)
        // The line break that ends an earlier line is no line.
        let next = LineBatch(["ab", "cd"], isAfterIncompleteLine: true)
        #expect(next.bytes == Array("\nab\ncd\n".utf8))
        #expect(next.lostCount(afterWriting: count + 1) == lostCount)
        #expect(next.isIncomplete(afterWriting: count + 1) == isIncomplete)
        #expect(next.lostCount(afterWriting: 0) == 2 && next.isIncomplete(afterWriting: 0))
    }

    @Test func readerThatHasGoneEndsTheWriting() {
        signal(SIGPIPE, SIG_IGN)
        let (reader, descriptor) = makePipe()
        close(reader)
        let writer = LineWriter(descriptor: descriptor, logger: Logger(label: "test"))
        for _ in 0..<10_000 { writer.write("x") }
        writer.finish(timeout: .seconds(10))
        // A reader that comes later gets nothing.
        let (laterReader, pipe) = makePipe()
        dup2(pipe, descriptor)
        close(pipe)
        writer.write("y")
        writer.finish(timeout: .seconds(10))
        close(descriptor)
        #expect(lines(from: laterReader).isEmpty)
    }
}
