import BLEHCI

// The observers of one link's events.
extension LinkControl {
    /// Adds an observer of the link's events.
    mutating func observe(
        _ observation: LinkObservation,
        _ request: LinkEventRequest
    ) throws(HostError) -> [ControlEffect] {
        if let endError { throw endError }
        try reports.add(observation, request)
        return continueReports()
    }

    mutating func removeObservation(_ observation: LinkObservation) -> [ControlEffect] {
        guard endError == nil else { return [] }
        reports.remove(observation)
        return continueReports()
    }

    /// Takes the success of a command that starts or stops reports.
    mutating func reportsChanged(_ step: LinkReportStep) -> [ControlEffect] {
        guard endError == nil else { return [] }
        reports.succeeded(step)
        return continueReports()
    }

    mutating func continueReports() -> [ControlEffect] {
        guard let step = reports.next(), let command = reports.command(step, handle) else { return [] }
        return [.command(command, .reports(step))]
    }
}
