import Foundation
import GatewayTestSupport
import Synchronization
import Testing

@testable import Gateway

struct UnwrittenLinesTests {
    private func line(_ text: String) -> FleetOutput.Line {
        .init(text: text, topic: nil, isRetained: false, tokens: [])
    }

    /// The numbers of bytes that are written first, with the lines that are complete then, and the other bytes.
    @Test(
        arguments: [
            (0, [], "ab\n\ncd\n"), (1, [], "b\n\ncd\n"), (2, [], "\n\ncd\n"), (3, ["ab"], "\ncd\n"),
            (4, ["ab", ""], "cd\n"), (6, ["ab", ""], "\n"), (7, ["ab", "", "cd"], nil),
        ] as [(Int, [String], String?)]
    )
    func linesAreCompleteWithTheirLastByte(count: Int, complete: [String], rest: String?) {
        var lines = UnwrittenLines()
        #expect(lines.nextBytes == nil)
        lines.append([line("ab"), line("")])
        lines.append([line("cd")])
        let first = lines.removeWritten(count)
        #expect(first.map(\.text) == complete)
        #expect(lines.nextBytes == rest.map { Array($0.utf8) })
        let second = lines.removeWritten(7 - count)
        #expect((first + second).map(\.text) == ["ab", "", "cd"])
        #expect(lines.nextBytes == nil)
    }

    @Test func manyLinesAreWrittenInParts() {
        var lines = UnwrittenLines()
        let texts = (0..<1000).map { "\($0)" }
        lines.append(texts.map(line))
        var written: [UInt8] = []
        var complete: [String] = []
        while let bytes = lines.nextBytes {
            #expect(bytes.count < 2000)
            // The last byte cannot be written at first.
            let count = max(1, bytes.count - 1)
            written += bytes.prefix(count)
            complete += lines.removeWritten(count).map(\.text)
        }
        #expect(complete == texts)
        #expect(written == texts.flatMap { Array($0.utf8) + [UInt8(ascii: "\n")] })
    }
}

struct FullOutputTests {
    private func line(_ number: UInt64) -> FleetOutput.Line {
        .init(text: "line \(number)", topic: nil, isRetained: false, tokens: [number])
    }

    /// Sets the greatest size of the files of the process, and returns the previous one.
    private func setFileSizeLimit(_ size: rlim_t) throws -> rlim_t {
        let resource = __rlimit_resource_t(RLIMIT_FSIZE.rawValue)
        var limit = rlimit()
        try #require(getrlimit(resource, &limit) == 0)
        let previous = limit.rlim_cur
        limit.rlim_cur = size
        try #require(setrlimit(resource, &limit) == 0)
        return previous
    }

    /// A file that takes ten bytes, as on a full disk. They follow a large hole, so no other test reaches the limit.
    @Test(.timeLimit(.minutes(2)))
    func linesThatHaveNoRoomAreWrittenOnceWhenThereIsRoom() throws {
        signal(SIGXFSZ, SIG_IGN)
        let path = FileManager.default.temporaryDirectory.appending(path: "lines-\(UUID().uuidString)").path
        let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        defer {
            close(descriptor)
            unlink(path)
        }
        let start = off_t(1) << 36
        try #require(lseek(descriptor, start, SEEK_SET) == start)
        let limit = try setFileSizeLimit(rlim_t(start) + 10)
        var isLimited = true
        defer { if isLimited { _ = try? setFileSizeLimit(limit) } }
        let log = LogRecorder()
        let finished = Mutex<[UInt64]>([])
        let output = FleetOutput(descriptor: descriptor, logger: log.logger) { tokens in
            finished.withLock { $0 += tokens }
        } failed: { error in
            Issue.record("\(error)")
        }
        output.write([line(1), line(2), line(3)])
        while output.failure == nil || output.writtenCount == 0 { usleep(1000) }
        output.write([line(4)])
        // The part of the second line is not a line.
        #expect(finished.withLock { $0 } == [1])
        #expect(output.waitingCount == 3)
        _ = try setFileSizeLimit(limit)
        isLimited = false
        while output.waitingCount > 0 { usleep(1000) }
        #expect(output.failure == nil)
        #expect(finished.withLock { $0 } == [1, 2, 3, 4])
        #expect(
            log.lines == [
                "error: lines cannot be written to standard output, and wait: File too large",
                "notice: lines are written to standard output again",
            ]
        )
        var bytes = [UInt8](repeating: 0, count: 100)
        let count = pread(descriptor, &bytes, bytes.count, start)
        #expect(String(decoding: bytes.prefix(max(count, 0)), as: UTF8.self) == "line 1\nline 2\nline 3\nline 4\n")
    }
}
