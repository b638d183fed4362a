import Foundation

/// An app with a central and a peripheral, written as for a phone.
public struct Example: Sendable {
    /// One end of the app.
    public enum Role: String, CaseIterable, Sendable {
        case peripheral
        case central
    }

    /// What users call it.
    public let name: String
    /// What it does, in one line.
    public let summary: String
    let peripheral: Part
    let central: Part

    /// All examples, the one to begin with first.
    public static let all: [Example] = [.brightness, .textTransfer, .walkthrough, .tiTan, .practicalPeripheral]

    func part(_ role: Role) -> Part {
        switch role {
        case .peripheral: peripheral
        case .central: central
        }
    }
}

/// One end of an example: what there is to see when all goes well, and how its screen is opened.
struct Part: Sendable {
    /// The beginnings of lines that are shown, each once at least.
    let expected: [String]
    /// Opens the screen; the options are for the manager that it makes.
    let open: @Sendable (any Terminal, [String: Any]) -> any Screen
}

/// What a user has before him; on the main queue.
protocol Screen: AnyObject {
    /// The user has read a line and does what he does then.
    func userReads(_ line: String)

    /// The user leaves.
    func viewWillDisappear()
}
