import FaultInjection
import Foundation
import Glibc
import Testing

@testable import BLEKeyStore

/// A new folder for the state file of one case, which is removed with its last reference.
final class StateFaultFolder: Sendable {
    let directory: String

    var file: StateFile { StateFile(directory: directory, name: "a.json") }

    /// - Parameter exists: whether the folder is made, with a file of the contents "old".
    init(exists: Bool = true) throws {
        directory = FileManager.default.temporaryDirectory.path + "/state-faults-\(UUID().uuidString)"
        if exists { try file.replace(with: Data("old".utf8)) }
    }

    deinit {
        try? FileManager.default.removeItem(atPath: directory)
    }

    /// The names in the folder.
    var names: [String] { ((try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []).sorted() }

    var contents: String? { try? file.read().map { String(decoding: $0.data, as: UTF8.self) } }

    /// The number of descriptors that are open on files of the folder.
    var openDescriptors: Int {
        ((try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []).filter { number in
            (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(number)"))?
                .hasPrefix(directory) == true
        }.count
    }

    /// Replaces the words of a table by paths.
    func text(_ template: String?) -> String? {
        template?.replacing("TEMPORARY", with: "\(file.path).\(getpid()).new").replacing("FILE", with: file.path)
            .replacing("PARENT", with: FileManager.default.temporaryDirectory.path)
            .replacing("DIRECTORY", with: directory)
    }
}

/// Faults of the system, and what they lead to.
struct StateFaultCase: Sendable, CustomTestStringConvertible {
    let faults: [Fault]
    /// The text of the error, with words in place of paths; nil if there is none.
    let message: String?
    /// The contents of the file afterwards.
    let contents: String?

    init(_ faults: Fault..., message: String? = nil, contents: String? = "old") {
        self.faults = faults
        self.message = message
        self.contents = contents
    }

    var testDescription: String { "\(faults)" }
}
