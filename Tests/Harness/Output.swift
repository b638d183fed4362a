import Glibc

/// Writes a line to standard error.
func printError(_ line: String) {
    write(line, to: STDERR_FILENO)
}

/// Writes a line to standard output at once.
func printLine(_ line: String) {
    write(line, to: STDOUT_FILENO)
}

private func write(_ line: String, to descriptor: Int32) {
    var rest = Array((line + "\n").utf8)[...]
    while !rest.isEmpty {
        let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
        // The reader has closed the stream.
        if count <= 0 { return }
        rest = rest.dropFirst(count)
    }
}
