import Foundation
import Synchronization

/// One end of an example that runs: with a terminal, and a user who reads it and acts.
///
/// The apps use the main queue, as on a phone: the process must run it.
public final class Performance: Terminal, @unchecked Sendable {
    // @unchecked: the constant `options` are of any type; `screen` is used on the main queue only.

    /// What is shown; ends with the last line that was expected.
    public let lines: AsyncStream<String>
    private let continuation: AsyncStream<String>.Continuation
    private let part: Part
    private let options: [String: Any]
    private let unseen: Mutex<[String]>
    /// Of the main queue.
    private(set) var screen: (any Screen)?

    /// - Parameter options: for the manager of this end, beside those that the app itself gives it.
    public convenience init(_ example: Example, _ role: Example.Role, options: [String: Any] = [:]) {
        self.init(example.part(role), options: options)
    }

    init(_ part: Part, options: [String: Any]) {
        self.part = part
        self.options = options
        unseen = Mutex(part.expected)
        (lines, continuation) = AsyncStream.makeStream()
    }

    /// What was expected and has not been shown yet: the beginnings of lines.
    public var missing: [String] {
        unseen.withLock { $0 }
    }

    /// Opens the screen.
    public func begin() async {
        await withCheckedContinuation { opened in
            DispatchQueue.main.async { [self] in
                screen = part.open(self, options)
                opened.resume()
            }
        }
    }

    /// Leaves the screen and lets the app go.
    public func end() async {
        await withCheckedContinuation { ended in
            DispatchQueue.main.async { [self] in
                screen?.viewWillDisappear()
                screen = nil
                ended.resume()
            }
        }
        continuation.finish()
    }

    public func show(_ line: String) {
        let isComplete = unseen.withLock { unseen in
            if let index = unseen.firstIndex(where: line.hasPrefix) { unseen.remove(at: index) }
            return unseen.isEmpty
        }
        continuation.yield(line)
        if isComplete { continuation.finish() }
        DispatchQueue.main.async { [self] in screen?.userReads(line) }
    }
}
