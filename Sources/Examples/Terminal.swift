import Foundation

/// Where an app shows what it would show on a phone's screen, and prints what it would print to a console.
///
/// It may be called from any thread: an app's delegates are called on whatever queue the app has chosen.
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
