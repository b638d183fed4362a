import Foundation

/// The output of an app: the lines that it would show on a phone's screen or print to a console.
///
/// It may be called from any thread, because an app's delegates are called on the queue that the app has chosen.
public protocol Terminal: AnyObject, Sendable {
    func show(_ line: String)
}

/// A class of an app that has a terminal in place of a screen.
protocol TerminalApp {
    var terminal: any Terminal { get }
}

extension TerminalApp {
    /// Prints on this app's own terminal: both ends of an app may run in one process.
    func print(_ line: String) {
        terminal.show(line)
    }
}
