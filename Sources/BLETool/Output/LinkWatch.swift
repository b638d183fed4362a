import BLE
import BLEProfiles

/// Shows the state of a connection, and then each change.
///
/// The observation starts before the state is read, so no change between them is lost. A change at that time is in the
/// state already, and is shown again after it.
struct LinkWatch: Sendable {
    let peer: RemotePeripheral
    /// Whether changes of transmit powers are shown.
    let reportsPower: Bool
    let pathLoss: PathLossThresholds?
    let asJSON: Bool
    /// Prints a line.
    var output: @Sendable (String) throws -> Void = { try Output.standard.line($0) }

    /// Shows the connection until the link ends, or until `continues` returns false.
    ///
    /// - Parameters:
    ///   - shown: called when the state was shown.
    ///   - continues: called after each change.
    func run(whenShown shown: () -> Void, while continues: () -> Bool) async throws {
        let connection = peer.connection
        var events = connection.events(transmitPower: reportsPower, pathLoss: pathLoss).makeAsyncIterator()
        try await events.start()
        let own = try await known { try await connection.readTransmitPower() }
        let power = try await known { try await connection.readPeerTransmitPower() }
        let rssi: Int? = try await known { try await peer.readRSSI() } ?? nil
        // The last of them, because the changes since the start are shown after it.
        let information = try await connection.information
        try print(.state(information, own: own, peer: power, rssi: rssi))
        shown()
        while let event = try await events.next() {
            try print(.event(event))
            guard continues() else { return }
        }
    }

    /// Returns a value that a device may not report; nil if it does not.
    private func known<Value: Sendable>(_ read: @Sendable () async throws -> Value) async throws -> Value? {
        do {
            return try await read()
        } catch BLEError.notSupported, BLEError.controllerFailed {
            return nil
        }
    }

    private func print(_ line: LinkLine) throws {
        try output(asJSON ? line.json.description : line.text)
    }
}
