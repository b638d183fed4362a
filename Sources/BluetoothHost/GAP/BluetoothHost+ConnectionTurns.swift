import BluetoothTypes

// Peers that do not all fit on the controller's filter accept list take turns.
extension BluetoothHost {
    /// How long the controller initiates connections to the same peers while others wait for their turn. A peer that
    /// advertises about once a second is found within this time.
    private static let turnDuration = Duration.seconds(4)

    /// Runs a timer while there are more peers than fit on the controller's filter accept list.
    func superviseConnectionTurns(_ information: ControllerInformation) {
        if !connectorWindow(information).isPartial {
            timers.cancel(connector.turnTimer)
            connector.turnTimer = nil
        } else if connector.turnTimer == nil {
            connector.turnTimer = schedule(.connectionTurn, after: BluetoothHost.turnDuration)
        }
    }

    /// Gives the peers that wait their turn.
    func connectionTurnEnded() {
        connector.turnTimer = nil
        if power == .on, privacy.hold == .nothing, let information {
            connector.endTurn(of: connectorWindow(information))
        }
        reconcileConnections()
    }
}
