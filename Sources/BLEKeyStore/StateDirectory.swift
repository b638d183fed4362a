import FoundationEssentials
import Glibc

/// The location of the persistent state of hosts.
package enum StateDirectory {
    /// The directory that the environment names: `$BLE_STATE_DIR`, else `$STATE_DIRECTORY`, which systemd sets, else
    /// `$XDG_STATE_HOME/swift-ble`, else `~/.local/state/swift-ble`; nil if there is no home either.
    package static func resolve(
        environment: [String: String] = ProcessInfo.processInfo.environment
    ) -> String? {
        if let path = environment["BLE_STATE_DIR"], !path.isEmpty { return path }
        // A unit with several state directories lists them all, separated by colons.
        if let path = environment["STATE_DIRECTORY"]?.split(separator: ":").first { return String(path) }
        // A relative path must be ignored (XDG Base Directory Specification).
        if let path = environment["XDG_STATE_HOME"], path.hasPrefix("/") { return path + "/swift-ble" }
        if let home = environment["HOME"], home.hasPrefix("/") { return home + "/.local/state/swift-ble" }
        return nil
    }

    /// Returns the files of a state directory, by their names; none if the directory does not exist.
    package static func files(in directory: String) throws(StateFileError) -> [StateFile] {
        try names(in: directory).filter { $0.hasSuffix(".json") }.sorted()
            .map { StateFile(directory: directory, name: $0) }
    }

    /// Returns the names of a directory's entries in no particular order; none if the directory does not exist.
    static func names(in directory: String) throws(StateFileError) -> [String] {
        guard let stream = unsafe opendir(directory) else {
            if errno == ENOENT { return [] }
            throw .failed("read", directory)
        }
        defer { unsafe closedir(stream) }
        var names: [String] = []
        while true {
            // Only the errno distinguishes the end from a failure.
            errno = 0
            guard let entry = unsafe readdir(stream) else {
                guard errno == 0 else { throw .failed("read", directory) }
                return names
            }
            names.append(
                unsafe withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                    unsafe pointer.withMemoryRebound(to: CChar.self, capacity: 256) { unsafe String(cString: $0) }
                }
            )
        }
    }
}
