/// What the caller of a ``ScanPlan`` does after an input.
enum ScanEffect: Equatable {
    /// Report to a scan that it has ended: the controller refused a command. The plan has removed the scan.
    case end(ScanIdentifier, CommandFailure)
    /// Report that the scan is restarted after a silence of this length, and have the plan run.
    case restart(afterSilence: Duration)
    /// Reset the controller: it receives nothing although the scan was restarted.
    case reset(silence: Duration)
    /// Have the plan run.
    case run
    /// Have the connection plan cancel again: the controller may have refused to scan because it still initiates. The
    /// scan starts when that has ended.
    case cancelInitiation
    /// Log that the controller refused a command of the search for peers or trains. The plan tries again.
    case refused(CommandFailure)
    /// Log that the controller refused to scan on LE Coded. The plan does not use this PHY until the next reset.
    case codedRefused(CommandFailure)
}
