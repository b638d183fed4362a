import BLE
import BLEByteCoding
import BLEProfiles
import Testing

@testable import BLETool

@Suite("ble throughput")
struct ThroughputTests {
    @Test("Quantiles are those of the latencies' classes")
    func quantilesAreThoseOfTheClassesOfLatencies() {
        var latencies = Latencies()
        #expect(latencies.quantile(0.5) == nil)
        for microseconds in 1...100 { latencies.add(.microseconds(microseconds)) }
        #expect(latencies.count == 100)
        #expect(latencies.quantile(0) == 1)
        #expect(latencies.quantile(0.5) == 50)
        #expect(latencies.quantile(0.99) == 99)
        #expect(latencies.quantile(1) == 100)
    }

    @Test(
        "Latencies have a resolution of 0.1 us up to 100 ms, then 1 ms, up to 100 s",
        arguments: [
            (Duration.microseconds(-3), 0), (.nanoseconds(1_250), 1.2), (.nanoseconds(99_999_950), 99_999.9),
            (.milliseconds(100), 100_000), (.microseconds(250_700), 250_000), (.seconds(99), 99_000_000),
            (.seconds(1_000_000), 99_999_000),
        ]
    )
    func latenciesHaveAFineResolutionUpTo100Milliseconds(duration: Duration, microseconds: Double) {
        var latencies = Latencies()
        latencies.add(duration)
        #expect(latencies.quantile(0.5) == microseconds)
    }

    private let usage = ProcessUsage(processorMicroseconds: 0x0201, contextSwitches: 4, residentKibibytes: 17_000)

    @Test("A report is four fields of eight bytes")
    func reportIsFourFieldsOfEightBytes() throws {
        let report = ThroughputReport(writes: 3, usage: usage)
        let value = PacketBuffer.bytes { report.encode(into: &$0) }
        #expect(
            value == [
                3, 0, 0, 0, 0, 0, 0, 0,
                1, 2, 0, 0, 0, 0, 0, 0,
                4, 0, 0, 0, 0, 0, 0, 0,
                0x68, 0x42, 0, 0, 0, 0, 0, 0,
            ]
        )
        #expect(try ThroughputReport(decoding: value.span.bytes) == report)
        let (short, long) = ([UInt8](value.dropLast()), value + [0])
        #expect(throws: PacketDecodingError.self) { try ThroughputReport(decoding: short.span.bytes) }
        #expect(throws: PacketDecodingError.self) { try ThroughputReport(decoding: long.span.bytes) }
    }

    @Test(
        arguments: [
            (UInt64(5), UInt64(8), 3), (8, 5, 0), (0, .max, .max),
        ]
    )
    func numberOfWritesSinceAReportIsNeverNegativeAndSaturates(before: UInt64, after: UInt64, count: Int) {
        let earlier = ThroughputReport(writes: before, usage: usage)
        #expect(ThroughputReport(writes: after, usage: usage).writes(since: earlier) == count)
    }

    @Test("Any number in a peer's report can be printed")
    func anyNumberCanBePrinted() {
        let usage = ProcessUsage(processorMicroseconds: .max, contextSwitches: .max, residentKibibytes: .max)
        let result = ThroughputResult(
            operation: .writeWithoutResponse,
            count: 1,
            octets: 1,
            duration: .seconds(1),
            usage: usage,
            peerUsage: usage
        )
        #expect(result.row.count == ThroughputResult.columns.count)
        #expect(result.json.description.contains("\"peerResident\":\(Int.max)"))
    }

    @Test("A result is printed per second and per operation")
    func resultIsPrintedPerSecondAndPerOperation() {
        let result = ThroughputResult(
            operation: .read,
            count: 200,
            octets: 20,
            duration: .milliseconds(500),
            median: 24.5,
            percentile99: 60,
            usage: ProcessUsage(processorMicroseconds: 3000, contextSwitches: 400, residentKibibytes: 17_000),
            peerUsage: ProcessUsage(processorMicroseconds: 4250, contextSwitches: 0, residentKibibytes: 18_000)
        )
        #expect(result.row == ["read", "20", "400", "8", "24.5", "60.0", "15.0", "21.3"])
        #expect(
            result.json.description == #"{"operation":"read","count":200,"bytes":20,"seconds":0.5,"perSecond":400.0,"#
                + #""p50":24.5,"p99":60.0,"cpu":15.0,"switches":2.0,"resident":17000,"peerCPU":21.25,"#
                + #""peerSwitches":0.0,"peerResident":18000}"#
        )
    }

    @Test("A result without arrivals causes no division by zero")
    func resultWithoutArrivals() {
        let result = ThroughputResult(
            operation: .notify,
            count: 0,
            octets: 0,
            duration: .seconds(1),
            usage: usage,
            peerUsage: usage
        )
        #expect(result.row == ["notify", "0", "0", "0", "", "", "513.0", "513.0"])
    }

    @Test("Results are printed although a later operation fails", arguments: [false, true])
    func resultsArePrintedAlthoughALaterOperationFails(asJSON: Bool) async throws {
        let result = ThroughputResult(
            operation: .read,
            count: 200,
            octets: 20,
            duration: .milliseconds(500),
            usage: usage,
            peerUsage: usage
        )
        let lines = PrintedLines()
        let printer = ThroughputPrinter(asJSON: asJSON) { lines.append($0) }
        await #expect(throws: BLEError.closed) {
            try await printer.print([.read, .write, .notify]) { operation in
                guard operation == .read else { throw BLEError.closed }
                return result
            }
        }
        let table = TextTable(header: ThroughputResult.columns, rows: [result.row])
        #expect(lines.all == (asJSON ? [result.json.description] : table.lines()))
        await #expect(throws: BLEError.closed) { try await printer.print([.write]) { _ in throw BLEError.closed } }
        #expect(lines.all.count == (asJSON ? 1 : 2), "a table without a result")
    }

    @Test("The usage of this process is not zero")
    func usageOfThisProcessIsNotZero() {
        let usage = ProcessUsage.current
        #expect(usage.processorMicroseconds > 0)
        #expect(usage.residentKibibytes > 1000)
        #expect((ProcessUsage.current - usage).processorMicroseconds < usage.processorMicroseconds + 60_000_000)
    }

    @Test(
        "A packet holds the MTU without its header, and an attribute 512 bytes",
        arguments: [
            (nil, 20), (23, 20), (247, 244), (515, 512), (517, 512),
        ]
    )
    func greatestLengthIsTheMTUWithoutItsHeaderUpTo512Bytes(mtu: Int?, length: Int) {
        #expect(ThroughputService.greatestLength(mtu: mtu) == length)
    }

    @Test("Lengths that no attribute can have are refused")
    func lengthsThatNoAttributeCanHaveAreRefused() throws {
        let run = try Throughput.Run.parse([
            "Lamp", "--operation", "write-without-response", "--operation", "notify", "--length", "512", "--duration",
            "100ms", "--on-threads",
        ])
        #expect(run.operations == [.writeWithoutResponse, .notify])
        #expect(run.place.onThreads)
        #expect(Throughput.Run.problem(with: ["Lamp", "--length", "513"]) == "--length is 0 to 512 bytes")
        let problem = Throughput.Run.problem(with: ["Lamp", "--operation", "indicate"])
        #expect(problem?.hasPrefix("The value 'indicate' is invalid for '--operation") == true)
        #expect(Throughput.Serve.problem(with: ["--read-length", "513"]) == "--read-length is 0 to 512 bytes")
        #expect(Throughput.Serve.problem(with: ["--notify-length=-1"]) == "--notify-length is 0 to 512 bytes")
    }
}
