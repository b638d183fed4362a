import Foundation

/// Writes the Swift that follows from the tables of HCI: `hci-generator [ROOT]`.
///
/// `ROOT` is the root of the package; the current directory by default. The grammar of the tables is at the top of
/// ``TableReader``.
@main
enum HCIGenerator {
    static func main() {
        let root = CommandLine.arguments.dropFirst().first ?? "."
        do {
            let tree = SourceTree(root: URL(fileURLWithPath: root))
            let changed = try tree.write(GeneratedFiles(try Tables(try tree.tables())))
            for path in changed { print(path) }
        } catch {
            try? FileHandle.standardError.write(contentsOf: Data("\(error)\n".utf8))
            exit(1)
        }
    }
}
