import Foundation
import Testing

/// `.ci/setup`, which `make demo` runs first, with a simulated package manager.
@Suite("The setup of a fresh machine")
struct SetupTests {
    /// Runs the setup with replacements of the system's programs.
    ///
    /// - Parameter apt: the action of `apt-get` in its call number `$n`.
    private func setup(apt: String, timeout: Int = 600) async throws -> (outcome: Programs.Outcome, calls: [String]) {
        let folder = NSTemporaryDirectory() + "setup-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let programs = [
            "dpkg-query": "exit 1", "id": "echo 0",
            "apt-get": "echo \"$*\" >> \(folder)/calls; n=$(wc -l < \(folder)/calls); \(apt)",
        ]
        for (name, script) in programs {
            let path = "\(folder)/\(name)"
            try write("#!/bin/sh\n\(script)\n", to: path)
            try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: path)
        }
        let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"
        let outcome = try await Programs.run(
            Programs.root + "/.ci/setup",
            ["some-package"],
            environment: ["PATH": "\(folder):\(path)", "SETUP_LOCK_TIMEOUT": "\(timeout)"]
        )
        let calls = try String(contentsOfFile: "\(folder)/calls", encoding: .utf8)
        return (outcome, calls.split(separator: "\n").map(String.init))
    }

    private let held =
        "echo 'E: Could not get lock /var/lib/apt/lists/lock. It is held by process 77 (apt-get)' >&2; exit 100"
    private let update = "-o DPkg::Lock::Timeout=600 update -qq"
    private let install = "-o DPkg::Lock::Timeout=600 install -y -qq --no-install-recommends some-package"

    @Test("The setup waits while another package manager holds a lock")
    func setupWaitsForAnotherPackageManager() async throws {
        let (outcome, calls) = try await setup(apt: "case $n in 1|3) \(held);; esac")
        #expect(outcome.status == 0)
        #expect(calls == [update, update, install, install])
        #expect(outcome.output.contains("another package manager is running; waiting for it"))
    }

    @Test("The setup fails if a lock is held beyond the limit, and at once for every other error")
    func setupFailsAtALongLockAndAtOnceForEveryOtherError() async throws {
        let (locked, _) = try await setup(apt: held, timeout: 0)
        #expect(locked.status != 0 && locked.errors.contains("Could not get lock"))
        let (failed, calls) = try await setup(apt: "echo 'E: Unable to locate package' >&2; exit 100")
        #expect(failed.status != 0 && failed.errors.contains("Unable to locate package"))
        #expect(calls == [update])
    }

    @Test("Without dpkg, the setup names what is needed and succeeds")
    func setupNamesWhatIsNeededWithoutDpkg() async throws {
        let folder = NSTemporaryDirectory() + "setup-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        // The only program that the setup finds is its interpreter.
        try FileManager.default.createSymbolicLink(atPath: folder + "/bash", withDestinationPath: "/bin/bash")
        let outcome = try await Programs.run(
            Programs.root + "/.ci/setup",
            ["some-package", "other-package"],
            environment: ["PATH": folder]
        )
        #expect(outcome.status == 0)
        #expect(outcome.errors.contains("it needs the equivalents of some-package other-package"))
    }
}
