import Foundation

/// The folder with exchanges of the SIG's test purposes and with samples of other stacks.
///
/// It is the folder that `SWIFT_BLE_CONFORMANCE` names, otherwise `shared/conformance` beside the package.
public enum ConformanceFolder {
    private static let named = ProcessInfo.processInfo.environment["SWIFT_BLE_CONFORMANCE"]

    private static let folder: URL = {
        let beside = URL(fileURLWithPath: #filePath).resolvingSymlinksInPath()
            .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent().appendingPathComponent("shared/conformance")
        return named.map { URL(fileURLWithPath: $0) } ?? beside
    }()

    /// The location of a file of the folder.
    public static func location(of file: String) -> URL { folder.appendingPathComponent(file) }

    /// Whether the tests of a file run. They are skipped only if no folder is named and the file does not exist.
    public static func isExpected(_ file: String) -> Bool {
        named != nil || FileManager.default.fileExists(atPath: location(of: file).path)
    }
}
