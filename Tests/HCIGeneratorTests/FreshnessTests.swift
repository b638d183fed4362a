import Foundation
import Testing

@testable import hci_generator

@Suite("The generated files")
struct FreshnessTests {
    @Test func generatedFilesFollowFromTheTablesAndNoOthersExist() throws {
        let root = URL(fileURLWithPath: #filePath)
            .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        let tree = SourceTree(root: root)
        let expected = GeneratedFiles(try Tables(try tree.tables())).texts
        let actual = try tree.generatedFiles()
        #expect(expected.count > 25)
        for path in Set(expected.keys).union(actual.keys).sorted() {
            let isFresh = actual[path] == expected[path]
            #expect(isFresh, "\(path) differs from the tables: run make generate")
        }
    }

    @Test func writingUpdatesFilesAndRemovesStrayOnes() throws {
        let root = FileManager.default.temporaryDirectory.appendingPathComponent("hci-generator-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: root) }
        let stray = root.appendingPathComponent("Sources/BLEHCI/Generated/Stray.generated.swift")
        try FileManager.default.createDirectory(
            at: stray.deletingLastPathComponent(),
            withIntermediateDirectories: true
        )
        try "stray".write(to: stray, atomically: true, encoding: .utf8)
        let tree = SourceTree(root: root)
        let files = GeneratedFiles(try Tables(["A.hci": "event 11 Flush Occurred\n"]))
        let changed = try tree.write(files)
        #expect(changed.contains("Sources/BLEHCI/Generated/Stray.generated.swift"))
        #expect(changed.count == files.texts.count + 1)
        #expect(try tree.generatedFiles() == files.texts)
        #expect(try tree.write(files) == [])
    }
}
