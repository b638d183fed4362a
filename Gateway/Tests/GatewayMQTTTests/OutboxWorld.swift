import Foundation
import GRDB

@testable import GatewayMQTT

/// Runs `body` with the path of a store in a directory of its own.
func withStore(_ body: (String) throws -> Void) throws {
    let directory = FileManager.default.temporaryDirectory.appending(path: "outbox-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: directory) }
    try body(directory.appending(path: "mqtt.sqlite").path)
}

/// Lets another program execute statements in a store.
func execute(_ sql: String, in path: String, isTransaction: Bool = true) throws {
    let database = try DatabaseQueue(path: path)
    if isTransaction {
        try database.write { try $0.execute(sql: sql) }
    } else {
        try database.writeWithoutTransaction { try $0.execute(sql: sql) }
    }
}

/// A statement that makes a store fail like a full disk, until ``allowInsertions``.
let refuseInsertions = """
    CREATE TRIGGER refuse BEFORE INSERT ON message BEGIN SELECT RAISE(ABORT, 'no space'); END
    """
let allowInsertions = "DROP TRIGGER refuse"

/// A statement that makes a store keep its messages like a disk that is read-only, until ``allowRemovals``.
let refuseRemovals = """
    CREATE TRIGGER refuse BEFORE DELETE ON message BEGIN SELECT RAISE(ABORT, 'read-only'); END
    """
let allowRemovals = "DROP TRIGGER refuse"

/// A broker that confirms each message at once, or not at all.
struct TestBroker {
    private(set) var received: [String] = []
    private var last: Int32 = 0

    mutating func receive(from outbox: inout Outbox, confirms: Bool = true) {
        var numbers: [Int32] = []
        repeat {
            var received: [String] = []
            var last = last
            numbers = []
            outbox.sendAll { message in
                last += 1
                received.append(message.payload)
                numbers.append(last)
                return last
            }
            self.last = last
            self.received += received
            if confirms { for number in numbers { outbox.confirm(number) } }
        } while confirms && !numbers.isEmpty
    }
}
