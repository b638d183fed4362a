import FaultInjection
import Foundation
import Glibc
import Testing

@testable import BLEKeyStore

@Suite("A fault of the system, while a state file is used,")
struct StateFileFaultTests {
    private static let noSpace = "No space left on device; free space, or name another directory"
    private static let noDescriptor = "Too many open files; raise the limit of open files with `ulimit -n`"
    private static let noSystemDescriptor =
        "Too many open files in system; close other programs, or raise the limit with `sysctl fs.file-max`"
    private static let noDisk = "Input/output error; check the disk with `dmesg`"

    /// Runs a case. Returns the folder.
    @discardableResult
    private func run<Value>(
        _ item: StateFaultCase,
        exists: Bool = true,
        of action: (StateFile) throws -> Value
    ) throws -> (StateFaultFolder, Value?) {
        let folder = try StateFaultFolder(exists: exists)
        let trial = FaultRun(item.faults) { try action(folder.file) }
        #expect(trial.message == folder.text(item.message))
        #expect(trial.unused.isEmpty)
        #expect(trial.leakedDescriptors == 0)
        #expect(folder.contents == item.contents)
        #expect(!folder.names.contains { $0.hasSuffix(".new") })
        return (folder, try? trial.result.get())
    }

    @Test(
        "keeps the old contents or has the new ones, and leaves no temporary file",
        arguments: [
            .init(
                Fault(.mkdir, .fails(EROFS)),
                message: "cannot make DIRECTORY: Read-only file system; name another directory"
            ),
            .init(Fault(.stat, .fails(EACCES)), message: "cannot make DIRECTORY: Permission denied"),
            .init(Fault(.opendir, .fails(EMFILE)), contents: "new"),
            .init(Fault(.readdir, .fails(EIO)), contents: "new"),
            .init(Fault(.closedir, .fails(EIO)), contents: "new"),
            .init(Fault(.open, .fails(ENOSPC)), message: "cannot create TEMPORARY: \(noSpace)"),
            .init(Fault(.open, .fails(EMFILE)), message: "cannot create TEMPORARY: \(noDescriptor)"),
            .init(Fault(.open, .fails(ENFILE)), message: "cannot create TEMPORARY: \(noSystemDescriptor)"),
            .init(Fault(.open, .fails(EINTR), count: 3), contents: "new"),
            .init(Fault(.write, .fails(ENOSPC)), message: "cannot write TEMPORARY: \(noSpace)"),
            .init(
                Fault(.write, .fails(EDQUOT)),
                message: "cannot write TEMPORARY: Disk quota exceeded; free space, or name another directory"
            ),
            .init(Fault(.write, .fails(EIO)), message: "cannot write TEMPORARY: \(noDisk)"),
            .init(Fault(.write, .fails(EFBIG)), message: "cannot write TEMPORARY: File too large"),
            .init(Fault(.write, .fails(EINTR), count: 3), contents: "new"),
            .init(Fault(.write, .returns(0)), message: "cannot write TEMPORARY: \(noDisk)"),
            .init(Fault(.write, .transfers(1)), contents: "new"),
            .init(
                Fault(.write, .transfers(1)),
                Fault(.write, .fails(ENOSPC), after: 2),
                message: "cannot write TEMPORARY: \(noSpace)"
            ),
            .init(Fault(.fsync, .fails(EIO)), message: "cannot synchronize TEMPORARY: \(noDisk)"),
            .init(Fault(.fsync, .fails(ENOSPC)), message: "cannot synchronize TEMPORARY: \(noSpace)"),
            .init(Fault(.fsync, .fails(EINTR), count: 3), contents: "new"),
            .init(Fault(.close, .fails(EIO)), message: "cannot write TEMPORARY: \(noDisk)"),
            .init(Fault(.close, .fails(ENOSPC)), message: "cannot write TEMPORARY: \(noSpace)"),
            .init(Fault(.close, .fails(EINTR)), contents: "new"),
            .init(Fault(.rename, .fails(EIO)), message: "cannot replace FILE: \(noDisk)"),
            .init(Fault(.rename, .fails(ENOSPC)), message: "cannot replace FILE: \(noSpace)"),
            .init(
                Fault(.open, .fails(EMFILE), after: 1),
                message: "cannot open DIRECTORY: \(noDescriptor)",
                contents: "new"
            ),
            .init(Fault(.open, .fails(EINTR), after: 1, count: 3), contents: "new"),
            .init(
                Fault(.fsync, .fails(EIO), after: 1),
                message: "cannot synchronize DIRECTORY: \(noDisk)",
                contents: "new"
            ),
            .init(Fault(.close, .fails(EIO), after: 1), contents: "new"),
        ] as [StateFaultCase]
    )
    func replacingKeepsTheOldContentsOrHasTheNewOnes(item: StateFaultCase) throws {
        let (folder, _) = try run(item) { try $0.replace(with: Data("new".utf8)) }
        #expect(folder.names == ["a.json"])
        // The next attempt succeeds.
        try folder.file.replace(with: Data("newer".utf8))
        #expect(folder.contents == "newer")
    }

    @Test("leaves an unfinished file that cannot be removed to the next attempt")
    func unfinishedFileIsRemovedByTheNextAttempt() throws {
        let folder = try StateFaultFolder()
        let trial = FaultRun([Fault(.rename, .fails(EIO)), Fault(.unlink, .fails(EIO))]) {
            try folder.file.replace(with: Data("new".utf8))
        }
        #expect(trial.message == folder.text("cannot replace FILE: \(Self.noDisk)"))
        #expect(trial.leakedDescriptors == 0)
        #expect(folder.names.count == 2)
        try folder.file.replace(with: Data("newer".utf8))
        #expect(folder.names == ["a.json"])
    }

    @Test("keeps the unfinished file of a process that cannot be queried")
    func unfinishedFileOfAnotherProcessIsKept() throws {
        let folder = try StateFaultFolder()
        let other = "a.json.2147483646.new"
        try Data().write(to: URL(fileURLWithPath: "\(folder.directory)/\(other)"))
        let trial = FaultRun([Fault(.kill, .fails(EPERM))]) { try folder.file.replace(with: Data("new".utf8)) }
        #expect(trial.message == nil && trial.unused.isEmpty)
        #expect(folder.names == ["a.json", other])
    }

    @Test(
        "leaves no directory behind that might not survive a loss of power",
        arguments: [
            .init(Fault(.mkdir, .fails(ENOSPC)), message: "cannot make DIRECTORY: \(noSpace)", contents: nil),
            .init(Fault(.open, .fails(EMFILE)), message: "cannot open PARENT: \(noDescriptor)", contents: nil),
            .init(Fault(.fsync, .fails(EIO)), message: "cannot synchronize PARENT: \(noDisk)", contents: nil),
        ] as [StateFaultCase]
    )
    func directoryIsMadeDurablyOrNotAtAll(item: StateFaultCase) throws {
        let (folder, _) = try run(item, exists: false) { try $0.replace(with: Data("new".utf8)) }
        #expect(access(folder.directory, F_OK) != 0)
    }

    @Test("keeps a new directory whose parent may be changed but not read")
    func directoryBelowAnUnreadableParentIsKept() throws {
        let folder = try StateFaultFolder()
        let deep = StateFile(directory: folder.directory + "/b", name: "a.json")
        let trial = FaultRun([Fault(.open, .fails(EACCES), count: 1)]) { try deep.replace(with: Data("new".utf8)) }
        #expect(trial.message == nil && trial.unused.isEmpty && trial.leakedDescriptors == 0)
        #expect(try deep.read()?.data == Data("new".utf8))
    }

    @Test("reports the failure to make a directory below a new one, or to remove it again")
    func failureBelowANewDirectoryIsReported() throws {
        let folder = try StateFaultFolder()
        let deep = StateFile(directory: folder.directory + "/b/c", name: "a.json")
        // The calls are: the directory, its parent, the directory again.
        let second = FaultRun([Fault(.mkdir, .fails(EIO), after: 2)]) { try deep.replace(with: Data()) }
        #expect(second.message == "cannot make \(folder.directory)/b/c: \(Self.noDisk)")
        let stays = FaultRun([Fault(.fsync, .fails(EIO)), Fault(.rmdir, .fails(EIO))]) {
            try deep.replace(with: Data())
        }
        #expect(stays.message == "cannot synchronize \(folder.directory)/b: \(Self.noDisk)")
        #expect(second.leakedDescriptors == 0 && stays.leakedDescriptors == 0)
        try deep.replace(with: Data())
    }

    @Test(
        "makes reading fail with its reason, or is overcome",
        arguments: [
            .init(Fault(.open, .fails(EMFILE)), message: "cannot read FILE: \(noDescriptor)"),
            .init(Fault(.open, .fails(ENFILE)), message: "cannot read FILE: \(noSystemDescriptor)"),
            .init(Fault(.open, .fails(EIO)), message: "cannot read FILE: \(noDisk)"),
            .init(Fault(.open, .fails(EINTR), count: 3)),
            .init(Fault(.fstat, .fails(EIO)), message: "cannot read FILE: \(noDisk)"),
            .init(Fault(.read, .fails(EIO)), message: "cannot read FILE: \(noDisk)"),
            .init(Fault(.read, .fails(EIO), after: 1), message: "cannot read FILE: \(noDisk)"),
            .init(Fault(.read, .fails(EINTR), count: 3)),
            .init(Fault(.read, .transfers(1))),
            .init(Fault(.close, .fails(EIO))),
        ] as [StateFaultCase]
    )
    func readingFailsWithItsReason(item: StateFaultCase) throws {
        let (_, contents) = try run(item) { try $0.read() }
        if item.message == nil { #expect(contents??.data == Data("old".utf8)) }
    }

    @Test("makes a check of the directory or a change of the mode fail")
    func checksFailWithTheirReason() throws {
        try run(.init(Fault(.stat, .fails(EIO)), message: "cannot read DIRECTORY: \(Self.noDisk)")) {
            try $0.checkDirectory()
        }
        try run(.init(Fault(.stat, .fails(ENOENT)))) { try $0.checkDirectory() }
        try run(.init(Fault(.chmod, .fails(EPERM)), message: "cannot change the mode of FILE: Operation not permitted"))
        {
            try $0.tighten()
        }
    }

    @Test("makes the listing of a directory fail, not end early")
    func listingFailsAndDoesNotEndEarly() throws {
        let list: (StateFile) throws -> [String] = { try StateDirectory.files(in: $0.directory).map(\.name) }
        try run(
            .init(Fault(.opendir, .fails(EMFILE)), message: "cannot read DIRECTORY: \(Self.noDescriptor)"),
            of: list
        )
        for count in 0..<3 {
            try run(
                .init(Fault(.readdir, .fails(EIO), after: count), message: "cannot read DIRECTORY: \(Self.noDisk)"),
                of: list
            )
        }
        let (_, names) = try run(.init(Fault(.closedir, .fails(EIO))), of: list)
        #expect(names == ["a.json"])
    }

    @Test("makes the copy of a damaged file fail, or take the next name")
    func copyFailsOrTakesTheNextName() throws {
        for (errno, words) in [(EPERM, "Operation not permitted"), (ENOSPC, Self.noSpace), (EIO, Self.noDisk)] {
            try run(.init(Fault(.link, .fails(errno)), message: "cannot set aside FILE: \(words)")) {
                try $0.copyAside()
            }
        }
        let folder = try StateFaultFolder()
        #expect(try folder.file.copyAside() == folder.file.path + ".damaged-1")
        let trial = FaultRun([Fault(.lstat, .fails(EIO))]) { try folder.file.copyAside() }
        #expect(try trial.result.get() == folder.file.path + ".damaged-2")
        #expect(folder.contents == "old")
    }

    // MARK: The lock

    @Test(
        "makes the lock fail with its reason, or is overcome",
        arguments: [
            .init(Fault(.mkdir, .fails(EIO)), message: "cannot make DIRECTORY: \(noDisk)"),
            .init(Fault(.open, .fails(EMFILE)), message: "cannot lock FILE.lock: \(noDescriptor)"),
            .init(Fault(.open, .fails(ENOSPC)), message: "cannot lock FILE.lock: \(noSpace)"),
            .init(Fault(.open, .fails(EINTR), count: 3)),
            .init(Fault(.flock, .fails(ENOLCK)), message: "cannot lock FILE.lock: No locks available"),
            .init(Fault(.flock, .fails(EINTR), count: 100)),
            .init(Fault(.flock, .fails(EWOULDBLOCK), count: 3), Fault(.usleep, .returns(0))),
            .init(
                Fault(.flock, .fails(EWOULDBLOCK)),
                Fault(.usleep, .returns(0)),
                message: "FILE is in use by another process"
            ),
            .init(Fault(.pwrite, .fails(ENOSPC))),
            .init(Fault(.pwrite, .fails(EINTR), count: 3)),
            .init(Fault(.ftruncate, .fails(EIO))),
            .init(Fault(.close, .fails(EIO))),
        ] as [StateFaultCase]
    )
    func lockFailsWithItsReason(item: StateFaultCase) throws {
        try run(item) { file in _ = try StateLock(file) }
    }

    @Test(
        "on writing the owner into the lock file makes it unknown, never an earlier owner",
        arguments: [
            (Fault(.pwrite, .fails(ENOSPC)), nil), (Fault(.pwrite, .transfers(1)), nil),
            (Fault(.ftruncate, .fails(EIO)), getpid()),
        ] as [(Fault, pid_t?)]
    )
    func ownerIsNeverAnEarlierOne(fault: Fault, owner: pid_t?) throws {
        let folder = try StateFaultFolder()
        let earlier = Data("2147483646\n".utf8)
        try earlier.write(to: URL(fileURLWithPath: folder.file.path + ".lock"))
        var lock: StateLock?
        let trial = FaultRun([fault]) { lock = try StateLock(folder.file) }
        #expect(trial.message == nil && trial.unused.isEmpty)
        let second = FaultRun([Fault(.usleep, .returns(0))]) { _ = try StateLock(folder.file) }
        #expect(second.message == "\(StateFileError.inUse(folder.file.path, process: owner))")
        let unread = FaultRun([Fault(.usleep, .returns(0)), Fault(.pread, .fails(EIO))]) {
            _ = try StateLock(folder.file)
        }
        #expect(unread.message == "\(StateFileError.inUse(folder.file.path, process: nil))")
        #expect(second.leakedDescriptors == 0 && unread.leakedDescriptors == 0)
        withExtendedLifetime(lock) {}
    }
}
