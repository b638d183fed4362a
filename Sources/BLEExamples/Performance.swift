import Foundation
import Synchronization

/// One end of an example that is running: its app, a terminal, and a simulated user that reads the terminal and acts.
///
/// The apps use the main queue, as on a phone. The process must run it.
public final class Performance: Terminal, Sendable {
    /// The lines that are shown. The stream ends with the last expected line.
    public let lines: AsyncStream<String>
    private let continuation: AsyncStream<String>.Continuation
    private let part: Part
    private let options: [String: any Sendable]
    private let unseen: Mutex<[String]>
    @MainActor private(set) var screen: (any Screen)?

    /// - Parameter options: options for the manager of this end, in addition to those of the app itself.
    public convenience init(_ example: Example, _ role: Example.Role, options: [String: any Sendable] = [:]) {
        self.init(example.part(role), options: options)
    }

    init(_ part: Part, options: [String: any Sendable]) {
        self.part = part
        self.options = options
        unseen = Mutex(part.expected)
        (lines, continuation) = AsyncStream.makeStream()
    }

    /// The expected lines that were not shown yet, each given by its beginning.
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

    /// Leaves the screen and releases the app.
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
