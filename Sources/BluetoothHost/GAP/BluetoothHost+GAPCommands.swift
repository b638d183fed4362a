import HCI

// How the commands of GAP's plans are sent, and how their replies get back.
extension BluetoothHost {
    /// Sends a plan's command. Everything that was done before ends as one input.
    ///
    /// The plan gets the reply at once when it arrives, so that it never sees a later event first. It decides the next
    /// command in a pass of its own, after the jobs that wait on the loop already.
    func send(_ command: GAPCommand, as step: GAPStep) {
        endInput()
        submit(CommandRequest(command, .plan(step)))
    }

    /// Gives a plan the reply to its command.
    func planCommandEnded(_ step: GAPStep, _ failure: CommandFailure?) {
        switch step.plan {
        case .scan, .connection, .advertising, .addresses: break
        }
    }
}
