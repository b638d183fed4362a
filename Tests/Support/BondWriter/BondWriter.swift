import BLE
import BLEKeyStore
import Glibc

/// Changes the bonds of a store, one change after the other, until it is killed.
///
/// It prints on standard output, one line each, the change that it begins to write (`+ 12`), the change that was
/// reported as saved (`= 12`), and the warnings of the store.
@main
enum BondWriter {
    static let host = "00:11:22:33:44:55"

    static func main() async {
        guard CommandLine.arguments.count == 2 else { exit(EXIT_FAILURE) }
        let store = await KeyStore.open(adapter: host, in: CommandLine.arguments[1], warn: say)
        let bonds = BondFileStore(store, warn: say)
        let saved = await bonds.load(for: nil)
        guard let first = saved.identity == nil ? Generation(number: 0) : Generation(of: saved) else {
            say("this is no generation")
            exit(EXIT_FAILURE)
        }
        for number in (first.number + 1)... {
            say("+ \(number)")
            // Others begin while one is being written, as when several devices pair.
            let mustWait = number.isMultiple(of: 3)
            await withCheckedContinuation { continuation in
                bonds.save(Generation(number: number).security) { isSaved in
                    say(isSaved ? "= \(number)" : "\(number) is not saved")
                    if mustWait { continuation.resume() }
                }
                if !mustWait { continuation.resume() }
            }
        }
    }

    /// One call writes the whole line, or none of it.
    @Sendable
    private static func say(_ text: String) {
        let line = Array((text + "\n").utf8)
        if write(STDOUT_FILENO, line, line.count) != line.count { exit(EXIT_FAILURE) }
    }
}
