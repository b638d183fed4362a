import Glibc

/// The terminal that standard output is, if it is one.
enum Terminal {
    static var isPresent: Bool { isatty(STDOUT_FILENO) == 1 && environment("TERM") != "dumb" }

    /// In columns and lines; 80 by 24 if the terminal does not report its size.
    static var size: (width: Int, height: Int) {
        var size = winsize()
        guard unsafe ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0, size.ws_row > 0 else {
            return (80, 24)
        }
        return (Int(size.ws_col), Int(size.ws_row))
    }

    /// The output that replaces the last `count` lines with `lines`.
    static func replacement(of count: Int, with lines: [String]) -> String {
        (count > 0 ? "\u{1B}[\(count)A\u{1B}[J" : "") + lines.map { $0 + "\n" }.joined()
    }
}

/// A variable of the environment that is set and not empty.
func environment(_ name: String) -> String? {
    guard let value = unsafe getenv(name), unsafe value.pointee != 0 else { return nil }
    return unsafe String(cString: value)
}

/// Microseconds since the beginning of 1970, UTC.
func microsecondsSinceEpoch() -> Int64 {
    var now = timespec()
    unsafe clock_gettime(CLOCK_REALTIME, &now)
    return Int64(now.tv_sec) * 1_000_000 + Int64(now.tv_nsec) / 1000
}
