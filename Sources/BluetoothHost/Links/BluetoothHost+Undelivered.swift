// Events that an app does not take in time. They are dropped and counted, or the link ends.
extension BluetoothHost {
    /// Counts a command that was dropped because the app's handler did not keep up.
    ///
    /// - Parameter droppedBefore: the number of this client's commands that were dropped before this one.
    package nonisolated func commandWasDropped(from client: LinkIdentifier, droppedBefore: Int) {
        metrics.droppedWriteCommands.increment()
        if droppedBefore == 0 {
            logger.warning("a client's Write Commands are dropped: the app's handler does not keep up with them")
        }
    }

    /// Counts a notification or indication of a server that was dropped because the app's queue did not keep up.
    ///
    /// - Parameter droppedBefore: the number of this server's values that were dropped before this one.
    package nonisolated func valueWasDropped(droppedBefore: Int) {
        metrics.droppedReceivedValues.increment()
        if droppedBefore == 0 {
            logger.warning("a server's values are dropped: the app's queue does not keep up with them")
        }
    }

    /// Counts the report of an advertisement that was dropped because the app's queue did not keep up.
    ///
    /// - Parameter droppedBefore: the number of this scan's reports that were dropped before this one.
    package nonisolated func advertisementWasDropped(droppedBefore: Int) {
        metrics.droppedAdvertisements.increment()
        if droppedBefore == 0 {
            logger.warning("advertisements are not reported: the app's queue does not keep up with them")
        }
    }

    /// Disconnects a peer that causes more events than the app takes, if none of them may be dropped.
    package func disconnectFlooding(_ identifier: LinkIdentifier) {
        guard let link = links[identifier], !link.control.isDisconnecting else { return }
        logger.warning("\(link.peer) causes more events than the app handles; it is disconnected")
        giveUp(link, .peerFlooding)
        endInput()
    }
}
