import Glibc

/// Writes a line to standard output immediately, without buffering.
public func writeLine(_ line: String) {
    write(line, to: STDOUT_FILENO)
}

/// Writes a line to standard error and ends the program with status 2.
public func fail(_ line: String) -> Never {
    write(line, to: STDERR_FILENO)
    exit(2)
}

private func write(_ line: String, to descriptor: CInt) {
    let bytes = Array((line + "\n").utf8)
    _ = unsafe Glibc.write(descriptor, bytes, bytes.count)
}
