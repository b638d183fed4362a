import Foundation
import Synchronization

/// Reports of API misuse by the app, and of other facts that its author should know.
package enum ProgrammerError {
    /// The destination of the lines. A closure stored bare under the lock would be wrapped once more at each access.
    package struct Output {
        package var write: @Sendable (String) -> Void
    }

    /// Standard error; tests and the fuzzer replace it.
    package static let output = Mutex(
        Output { line in
            // A line that cannot be written is lost: standard error may be closed, or its disk full.
            try? FileHandle.standardError.write(contentsOf: Data("CoreBluetooth: \(line)\n".utf8))
        }
    )

    /// Reports a call that has no effect, and why, as the system's log does on Apple's platforms.
    static func report(_ text: String) {
        note("API MISUSE: \(text)")
    }

    /// Writes a line.
    static func note(_ text: String) {
        output.withLock { $0 }.write(text)
    }

    /// Ends the process for an error that raises `NSInternalInconsistencyException` on Apple's platforms. Swift cannot
    /// catch that exception either. The reason is printed in release builds too.
    static func raise(_ reason: String, file: StaticString = #fileID, line: UInt = #line) -> Never {
        fatalError("NSInternalInconsistencyException: \(reason)", file: file, line: line)
    }
}

extension NSObject {
    /// The front of an object's description: its class and address.
    var nameAndAddress: String {
        unsafe "\(type(of: self)): \(Unmanaged.passUnretained(self).toOpaque())"
    }
}
