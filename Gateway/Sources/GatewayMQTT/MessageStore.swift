import Foundation
import GRDB

/// Messages that wait for the broker in a file, the oldest first.
///
/// A message that was appended survives the end of the process. It is removed once the broker has confirmed it.
struct MessageStore: Sendable {
    /// A message with its number in the store.
    struct Entry: Sendable {
        let number: Int64
        let message: MQTTMessage
    }

    private let database: DatabaseQueue
    /// The number of messages.
    private(set) var count: Int

    /// Opens a file, or creates it.
    init(path: String) throws {
        var configuration = Configuration()
        configuration.prepareDatabase { database in
            try database.execute(sql: "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL")
        }
        database = try DatabaseQueue(path: path, configuration: configuration)
        count = try database.write { database in
            try database.execute(
                sql: """
                    CREATE TABLE IF NOT EXISTS message (
                        number INTEGER PRIMARY KEY AUTOINCREMENT, topic TEXT NOT NULL, payload TEXT NOT NULL
                    )
                    """
            )
            return try Int.fetchOne(database, sql: "SELECT count(*) FROM message") ?? 0
        }
    }

    /// Appends messages, in one transaction.
    mutating func append(_ messages: some Collection<MQTTMessage>) throws {
        try database.write { database in
            let statement = try database.cachedStatement(sql: "INSERT INTO message (topic, payload) VALUES (?, ?)")
            for message in messages { try statement.execute(arguments: [message.topic, message.payload]) }
        }
        count += messages.count
    }

    /// The oldest messages after a number.
    func entries(after number: Int64, limit: Int) throws -> [Entry] {
        try database.read { database in
            let rows = try Row.fetchAll(
                database,
                sql: "SELECT number, topic, payload FROM message WHERE number > ? ORDER BY number LIMIT ?",
                arguments: [number, limit]
            )
            return rows.map { Entry(number: $0[0], message: MQTTMessage(topic: $0[1], payload: $0[2])) }
        }
    }

    /// Removes messages that the broker has confirmed.
    mutating func remove(_ numbers: [Int64]) throws {
        count -= try database.write { database in
            let statement = try database.cachedStatement(sql: "DELETE FROM message WHERE number = ?")
            var removed = 0
            for number in numbers {
                try statement.execute(arguments: [number])
                removed += database.changesCount
            }
            return removed
        }
    }

    /// Removes the oldest messages.
    mutating func removeOldest(_ number: Int) throws {
        count -= try database.write { database in
            try database.execute(
                sql: "DELETE FROM message WHERE number IN (SELECT number FROM message ORDER BY number LIMIT ?)",
                arguments: [number]
            )
            return database.changesCount
        }
    }
}
