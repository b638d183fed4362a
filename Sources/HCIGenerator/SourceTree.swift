import Foundation

/// The files of the package: the tables and the generated files.
struct SourceTree {
    /// The root of the package.
    let root: URL

    /// Reads the tables.
    ///
    /// - Returns: the text of each table by the name of its file.
    func tables() throws -> [String: String] {
        let directory = root.appendingPathComponent(Tables.directory)
        var texts: [String: String] = [:]
        for name in try FileManager.default.contentsOfDirectory(atPath: directory.path) where name.hasSuffix(".hci") {
            texts[name] = try String(contentsOf: directory.appendingPathComponent(name), encoding: .utf8)
        }
        return texts
    }

    /// Reads the generated files that are on disk.
    ///
    /// - Returns: the text of each file by its path from the root.
    func generatedFiles() throws -> [String: String] {
        var texts: [String: String] = [:]
        for directory in GeneratedFiles.directories {
            let url = root.appendingPathComponent(directory)
            for case let path as String in FileManager.default.enumerator(atPath: url.path) ?? .init()
            where path.hasSuffix(GeneratedFiles.suffix) {
                let text = try String(contentsOf: url.appendingPathComponent(path), encoding: .utf8)
                texts["\(directory)/\(path)"] = text
            }
        }
        return texts
    }

    /// Writes the files that differ from those on disk, and removes stray ones.
    ///
    /// - Returns: the paths of the files that were written or removed.
    func write(_ files: GeneratedFiles) throws -> [String] {
        let current = try generatedFiles()
        for (path, text) in files.texts where current[path] != text {
            let url = root.appendingPathComponent(path)
            try FileManager.default.createDirectory(
                at: url.deletingLastPathComponent(),
                withIntermediateDirectories: true
            )
            try text.write(to: url, atomically: true, encoding: .utf8)
        }
        for path in current.keys where files.texts[path] == nil {
            try FileManager.default.removeItem(at: root.appendingPathComponent(path))
        }
        return Set(current.keys).union(files.texts.keys).filter { current[$0] != files.texts[$0] }.sorted()
    }
}
