import Foundation
import Synchronization

/// Reports what an app must not do, and other things that its author should know.
enum ProgrammerError {
    /// Where lines go. A bare function under the lock would be wrapped once more each time that it is taken out.
    struct Output {
        var write: @Sendable (String) -> Void
    }

    /// Standard error; tests replace it.
    static let output = Mutex(
        Output { line in FileHandle.standardError.write(Data("CoreBluetooth: \(line)\n".utf8)) }
    )

    /// Reports a call that has no effect, and why, as the system's log does on Apple's platforms.
    static func report(_ text: String) {
        note("API MISUSE: \(text)")
    }

    /// Writes a line.
    static func note(_ text: String) {
        output.withLock { $0 }.write(text)
    }

    /// Ends the process for what raises `NSInternalInconsistencyException` on Apple's platforms; Swift cannot catch that
    /// either. The reason is printed in release builds too.
    static func raise(_ reason: String, file: StaticString = #fileID, line: UInt = #line) -> Never {
        fatalError("NSInternalInconsistencyException: \(reason)", file: file, line: line)
    }
}

extension NSObject {
    /// The front of an object's description: its class and address.
    var nameAndAddress: String {
        "\(type(of: self)): \(Unmanaged.passUnretained(self).toOpaque())"
    }
}
