import BluetoothTypes

/// Links that the controller no longer handles.
///
/// Controllers have defects, and their events can be lost. Without a time limit, a link that the controller has
/// forgotten would stay forever.
extension BluetoothHost {
    /// Schedules the next check for stalled links, while the controller holds packets.
    func watchForStall() {
        guard sender.needsStallCheck else { return }
        let due = sender.scheduleStallCheck(at: loop.now)
        _ = schedule(.stallCheck, at: due)
    }

    /// Ends the links that the controller has forgotten: it holds their packets, and neither sends them nor ends the
    /// links.
    func endStalledLinks() {
        let stalled = sender.advance(to: loop.now)
        if !stalled.isEmpty {
            for link in links.values where stalled.contains(link.slot) { giveUp(link, .transmissionStalled) }
        }
        watchForStall()
    }
}
