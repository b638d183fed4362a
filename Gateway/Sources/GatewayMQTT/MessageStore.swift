import Foundation
import GRDB

/// Messages that wait for the broker in a file, in the order of their numbers.
///
/// A message that was appended survives the end of the process. It is removed once the broker has confirmed it.
struct MessageStore: Sendable {
    /// A message with its number.
    struct Entry: Sendable {
        let number: Int64
        let message: MQTTMessage
        /// When the message was stored, in seconds since 1970; nil if the clock was not set.
        var time: Int64?
    }

    /// How long a transaction waits for another program that has locked the file, in seconds.
    static let lockTimeout = 1.0

    /// The path of the file.
    let path: String
    private let database: DatabaseQueue
    /// The number of messages when the file was opened.
    let initialCount: Int
    /// The greatest number of a message when the file was opened; 0 if there was none.
    let initialLastNumber: Int64

    /// Opens a file, or creates it.
    init(path: String) throws {
        self.path = path
        var configuration = Configuration()
        configuration.busyMode = .timeout(Self.lockTimeout)
        configuration.prepareDatabase { database in
            try database.execute(sql: "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL")
        }
        database = try DatabaseQueue(path: path, configuration: configuration)
        (initialCount, initialLastNumber) = try database.write { database in
            try database.execute(
                sql: """
                    CREATE TABLE IF NOT EXISTS message (
                        number INTEGER PRIMARY KEY AUTOINCREMENT, topic TEXT NOT NULL, payload TEXT NOT NULL,
                        time INTEGER
                    )
                    """
            )
            // Files of earlier versions have no times.
            if try !database.columns(in: "message").contains(where: { $0.name == "time" }) {
                try database.execute(sql: "ALTER TABLE message ADD COLUMN time INTEGER")
            }
            let row = try Row.fetchOne(database, sql: "SELECT count(*), coalesce(max(number), 0) FROM message")
            return (row?[0] ?? 0, row?[1] ?? 0)
        }
    }

    /// Whether an error says that the file is no valid database. Another error may pass, such as a full disk.
    static func isDamage(_ error: any Error) -> Bool {
        guard let error = error as? DatabaseError else { return false }
        return [.SQLITE_CORRUPT, .SQLITE_NOTADB].contains(error.resultCode)
    }

    /// Whether an error says that another program has locked the file for too long.
    static func isLocked(_ error: any Error) -> Bool {
        (error as? DatabaseError)?.resultCode == .SQLITE_BUSY
    }

    /// Renames a damaged file and its log, and opens a new file in its place.
    static func replaceDamaged(_ path: String) throws -> MessageStore {
        unlink(path + "-shm")
        for suffix in ["-wal", ""] where rename(path + suffix, path + ".damaged" + suffix) != 0 && errno != ENOENT {
            throw CocoaError(.fileWriteUnknown)
        }
        return try MessageStore(path: path)
    }

    /// Adds messages, in one transaction. Their numbers must be new.
    func append(_ entries: some Collection<Entry>) throws {
        guard !entries.isEmpty else { return }
        try database.write { database in
            let statement = try database.cachedStatement(
                sql: "INSERT INTO message (number, topic, payload, time) VALUES (?, ?, ?, ?)"
            )
            for entry in entries {
                try statement.execute(arguments: [entry.number, entry.message.topic, entry.message.payload, entry.time])
            }
        }
    }

    /// The oldest messages after a number. A row that is no message has an empty topic.
    func entries(after number: Int64, limit: Int) throws -> [Entry] {
        try database.read { database in
            let rows = try Row.fetchAll(
                database,
                sql: "SELECT number, topic, payload, time FROM message WHERE number > ? ORDER BY number LIMIT ?",
                arguments: [number, limit]
            )
            return rows.map { row in
                let texts = [1, 2].map { String.fromDatabaseValue(row[$0] as DatabaseValue) ?? "" }
                let time = Int64.fromDatabaseValue(row[3] as DatabaseValue)
                return Entry(number: row[0], message: MQTTMessage(topic: texts[0], payload: texts[1]), time: time)
            }
        }
    }

    /// Adds seconds to the times of the messages after a number. A message without a time still has none.
    func addTime(_ seconds: Int64, after number: Int64) throws {
        try database.write { database in
            try database.execute(
                sql: "UPDATE message SET time = time + ? WHERE number > ?",
                arguments: [seconds, number]
            )
        }
    }

    /// Adds a message and removes it, in one transaction.
    ///
    /// - Throws: the error with which other messages could not be added or removed.
    func checkWrites() throws {
        try database.write { database in
            try database.execute(
                sql: """
                    INSERT INTO message (topic, payload) VALUES ('', '');
                    DELETE FROM message WHERE number = last_insert_rowid();
                    """
            )
        }
    }

    /// Removes messages that the broker has confirmed.
    func remove(_ numbers: [Int64]) throws {
        guard !numbers.isEmpty else { return }
        try database.write { database in
            let statement = try database.cachedStatement(sql: "DELETE FROM message WHERE number = ?")
            for number in numbers { try statement.execute(arguments: [number]) }
        }
    }

    /// Removes the oldest messages after a number.
    ///
    /// - Returns: how many were removed.
    func removeOldest(_ count: Int, after number: Int64) throws -> Int {
        try database.write { database in
            try database.execute(
                sql: """
                    DELETE FROM message
                    WHERE number IN (SELECT number FROM message WHERE number > ? ORDER BY number LIMIT ?)
                    """,
                arguments: [number, count]
            )
            return database.changesCount
        }
    }
}
