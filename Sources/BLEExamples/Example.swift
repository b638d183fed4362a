import Foundation

/// An app with a central and a peripheral, written as for a phone.
public struct Example: Sendable {
    /// One end of the app.
    public enum Role: String, CaseIterable, Sendable {
        case peripheral
        case central
    }

    /// The name by which users select the example.
    public let name: String
    /// A description of the example, in one line.
    public let summary: String
    let peripheral: Part
    let central: Part

    /// All examples; a reader should begin with the first.
    public static let all: [Example] = [.brightness, .textTransfer, .walkthrough, .tiTan, .practicalPeripheral]

    func part(_ role: Role) -> Part {
        switch role {
        case .peripheral: peripheral
        case .central: central
        }
    }
}

/// One end of an example: the output of a successful run, and the function that opens its screen.
struct Part: Sendable {
    /// The beginnings of expected lines, each shown at least once.
    let expected: [String]
    /// Opens the screen; the options are for the manager that the screen makes.
    let open: @Sendable (any Terminal, [String: Any]) -> any Screen
}

/// The user interface of an app; used on the main queue.
protocol Screen: AnyObject {
    /// Called when the user has read a line; performs the user's reaction.
    func userReads(_ line: String)

    /// Called when the user leaves.
    func viewWillDisappear()
}
