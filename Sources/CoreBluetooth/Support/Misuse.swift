import Foundation

/// What apps do that they must not, and what else they should know.
enum Misuse {
    /// Says on standard error what was dropped and why, as the system's log does on Apple's platforms.
    static func report(_ text: String) {
        note("API MISUSE: \(text)")
    }

    /// Writes a line to standard error.
    static func note(_ text: String) {
        FileHandle.standardError.write(Data("CoreBluetooth: \(text)\n".utf8))
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
