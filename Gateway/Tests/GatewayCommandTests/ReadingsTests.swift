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

    @Test func readerThatHasGoneEndsTheWriting() {
        signal(SIGPIPE, SIG_IGN)
        let (reader, descriptor) = makePipe()
        close(reader)
        let writer = LineWriter(descriptor: descriptor, logger: Logger(label: "test"))
        for _ in 0..<10_000 { writer.write("x") }
        writer.finish(timeout: .seconds(10))
        writer.write("y")
        close(descriptor)
    }
}
