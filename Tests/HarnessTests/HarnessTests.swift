import Foundation
import Testing

@testable import BLEHarness

@Suite("The harness", .serialized, .timeLimit(.minutes(10)))
struct HarnessTests {
    /// Runs a script in a separate folder, with a host that serves `Server.json`.
    private func run(_ lines: String, options: [String] = []) async throws -> Programs.Outcome {
        let folder = try TemporaryFolder()
        let path = folder.path + "/test.hci"
        let host = "host BLE_STATE_DIR={directory} ble serve \(Programs.scripts)/Server.json --adapter {adapter}\n"
        try write(
            host + "controller legacy\nawait LE_Set_Advertising_Enable 01\nconnect peripheral\n" + lines,
            to: path
        )
        return try await Programs.harness(["--script", path, "--timeout", "60"] + options)
    }

    @Test func firstDifferenceIsReportedWithItsContext() async throws {
        let outcome = try await run(
            "att> 0A u16(0x0102)\natt< 0B \"short\"\natt> 0A u16(0x0999)\natt< 0B $x=*\natt> 0A 00 00\n"
        )
        #expect(outcome.status == 1)
        #expect(outcome.output.contains("test.hci:8: att< 0B $x=*"))
        #expect(outcome.output.contains("expected  ATT Read_Response 0B *\n"))
        #expect(outcome.output.contains("got       ATT Error_Response 01 0A 99 09 01 (Invalid_Handle)\n"))
        #expect(outcome.output.contains("^^ byte 0"))
        #expect(outcome.output.contains("> ACL 0x0040 ATT Read_Request 0A 99 09"))
        #expect(!outcome.output.contains("Read_Request 0A 00 00"))
        #expect(outcome.output.contains("0 passed, 1 failed, 0 skipped"))
    }

    @Test func differenceIsMarkedUnderItsBytes() async throws {
        let outcome = try await run("att> 0A u16(0x0102)\natt< 0B \"shirt\"\n")
        let lines = outcome.output.split(separator: "\n").map { Array($0) }
        let got = try #require(lines.first { String($0).contains("got  ") })
        let mark = try #require(lines.first { String($0).contains("^^ byte 3") }?.firstIndex(of: "^"))
        #expect(String(got[mark..<mark + 2]) == "6F")
    }

    @Test func missingOrUnexpectedMessageEndsTheScript() async throws {
        let missing = try await run("att< 1B * within 50ms\n")
        #expect(missing.status == 1)
        #expect(missing.output.contains("no further packet arrived in 0.05 seconds"))
        #expect(missing.output.contains("expected  ATT Handle_Value_Notification 1B *"))
        // A received packet ends the wait at once, whatever the time limit is.
        let surplus = try await run("att> 0A u16(0x0102)\nnothing 60s\n")
        #expect(surplus.status == 1)
        #expect(surplus.output.contains("a packet arrived"))
    }

    @Test func outputAndExitStatusOfTheHostAreChecked() async throws {
        let wrong = try await run("input quit\nexit 3\n")
        #expect(wrong.status == 1)
        #expect(wrong.output.contains("the host ended with status 0, not with status 3"))
        let right = try await run("input quit\nexit 0\n")
        #expect(right.status == 0, "\(right.output)")
        let silent = try await run("within 200ms\noutput \"event\":\"eclipse\"\n")
        #expect(silent.status == 1)
        #expect(silent.output.contains("has not written a line with \"\"event\":\"eclipse\"\""))
    }

    @Test func hostThatCrashesCannotStartOrUsesNoAdapterIsReported() async throws {
        let folder = try TemporaryFolder()
        let path = folder.path + "/empty.hci"
        try write("title Nothing\n", to: path)
        let none = try await Programs.harness(["--script", path, "--", "true"])
        #expect(none.status == 1)
        #expect(none.output.contains("the host ended with status 0 before it used its adapter"))
        let crashing = try await Programs.harness(["--script", path, "--", "sh", "-c", "kill -SEGV $$"])
        #expect(crashing.status == 1)
        #expect(crashing.output.contains("signal 11"))
        let missing = try await Programs.harness(["--script", path, "--", "/nonexistent/host"])
        #expect(missing.status == 1)
        #expect(missing.output.contains("cannot be started"))
    }

    @Test func invalidUsageIsReported() async throws {
        let folder = try TemporaryFolder()
        try write("title t\natt> 0\n", to: folder.path + "/bad.hci")
        let bad = try await Programs.harness(["--script", folder.path + "/bad.hci"])
        #expect(bad.status == 2)
        #expect(bad.errors.hasPrefix("hci-harness: \(folder.path)/bad.hci:2: "))
        let both = try await Programs.harness(["--script", "a", "--capture", "b"])
        #expect(both.status != 0)
        #expect(both.errors.contains("--script, or one capture"))
        let listen = try await Programs.harness(["--script", "a", "--listen", "nowhere"])
        #expect(listen.status != 0)
        #expect(listen.errors.contains("nothing to listen on"))
        let capture = try await Programs.harness(["--capture", folder.path + "/bad.hci"])
        #expect(capture.status == 2)
        #expect(capture.errors.contains("text, not a capture"))
    }

    @Test func scriptWithAMissingAbilityIsSkippedUnlessDeclared() async throws {
        let skipped = try await run("needs wings\natt< 01\n")
        #expect(skipped.status == 0)
        #expect(skipped.output.contains("needs wings"))
        #expect(skipped.output.contains("0 passed, 0 failed, 1 skipped"))
        let failed = try await run("needs wings\natt< 01 within 50ms\n", options: ["--with", "wings"])
        #expect(failed.status == 1)
    }

    @Test(arguments: ["unix:", "tcp:127.0.0.1:0"])
    func hostIsServedOverAStream(listen: String) async throws {
        let folder = try TemporaryFolder()
        let address = listen == "unix:" ? "unix:\(folder.path)/hci" : listen
        let outcome = try await run(
            "fragments 5\natt> 0A u16(0x0102)\natt< 0B \"short\"\n",
            options: ["--listen", address]
        )
        #expect(outcome.status == 0, "\(outcome.output)\(outcome.errors)")
    }

    @Test func playedCaptureFindsTheDifferencesOfTheHost() async throws {
        let folder = try TemporaryFolder()
        let file = folder.path + "/read.btsnoop"
        let read = ["BLE_STATE_DIR={directory}", "ble", "read", "F0:12:34:56:78:9A"]
        let rest = ["--address-type", "random", "--adapter", "{adapter}"]
        let script = Programs.scripts + "/gatt-client-read-long.hci"
        let recorded = try await Programs.harness(
            ["--script", script, "--timeout", "60", "--"] + read + ["#3", "--capture", file] + rest
        )
        #expect(recorded.status == 0, "\(recorded.output)\(recorded.errors)")
        let same = try await Programs.harness(["--capture", file, "--timeout", "60", "--"] + read + ["#3"] + rest)
        #expect(same.status == 0, "\(same.output)\(same.errors)")
        let other = try await Programs.harness(["--capture", file, "--timeout", "60", "--"] + read + ["#4"] + rest)
        #expect(other.status == 1)
        #expect(other.output.contains("ATT Read_Request 0A 03 00 was recorded as packet"))
        #expect(other.output.contains("ATT Read_Request 0A 04 00 has come"))
        #expect(other.output.contains("^^ byte 10"))
    }

    @Test func allowedCommandDifferencesAreIgnored() async throws {
        let folder = try TemporaryFolder()
        let file = folder.path + "/read.btsnoop"
        let script = Programs.scripts + "/gatt-client-read.hci"
        func read(_ address: String, _ more: [String]) -> [String] {
            ["--timeout", "60", "--", "BLE_STATE_DIR={directory}", "ble", "read", address, "#3"]
                + ["--address-type", "random", "--adapter", "{adapter}"] + more
        }
        _ = try await Programs.harness(["--script", script] + read("F0:12:34:56:78:9A", ["--capture", file]))
        let strict = try await Programs.harness(["--capture", file] + read("F0:12:34:56:78:9B", []))
        #expect(strict.status == 1)
        #expect(strict.output.contains("Command LE_Create_Connection 60 00"))
        // The link in the capture is then to another peer than the requested one, so the host ends it.
        let lenient = try await Programs.harness(
            ["--capture", file, "--any", "LE_Create_Connection"] + read("F0:12:34:56:78:9B", [])
        )
        #expect(lenient.status == 1)
        #expect(!lenient.output.contains("got       Packet 01 0D 20"))
    }
}
