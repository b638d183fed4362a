import BLEHCI
import BluetoothTypes

// The results of a session.
extension ChannelSoundingEngine {
    /// Sets the time by which the next procedure ends. A procedure takes at most 41 s.
    mutating func awaitProcedure(at now: Instant) {
        deadline = now + procedureTimeout
    }

    /// Handles the first results of a subevent. Steps that cannot be decoded are missing in it.
    mutating func received(_ event: borrowing LECSSubeventResult, at now: Instant) -> [ChannelSoundingEffect] {
        guard phase == .running, event.configID == configuration?.identifier else { return [] }
        // The controller has not completed the previous subevent.
        let incomplete = subevent.take().map { ChannelSoundingEffect.subevent($0, session: session) }
        var result = ChannelSoundingSubevent(event)
        let error = result.append(event.stepBytes, count: event.numStepsReported)
        return [incomplete, error.map { .malformed($0) }].compactMap { $0 } + take(result, at: now)
    }

    /// Handles further results of a subevent. Of those without the first ones, only the end of the procedure is used.
    mutating func received(_ event: borrowing LECSSubeventResultContinue, at now: Instant) -> [ChannelSoundingEffect] {
        guard phase == .running, event.configID == configuration?.identifier else { return [] }
        guard var result = subevent.take() else { return procedureEnded(event.progress, at: now) }
        result.progress = event.progress
        // A controller may report 0 for results without phases.
        if event.numAntennaPaths != 0 { result.antennaPaths = event.numAntennaPaths }
        let error = result.append(event.stepBytes, count: event.numStepsReported)
        return (error.map { [.malformed($0)] } ?? []) + take(result, at: now)
    }

    private mutating func take(_ result: ChannelSoundingSubevent, at now: Instant) -> [ChannelSoundingEffect] {
        guard result.progress.subeventDoneStatus != .partial else {
            subevent = result
            return []
        }
        return [.subevent(result, session: session)] + procedureEnded(result.progress, at: now)
    }

    /// Counts a procedure if it has ended, and ends the session after the last.
    private mutating func procedureEnded(
        _ progress: ChannelSoundingProgress,
        at now: Instant
    ) -> [ChannelSoundingEffect] {
        guard progress.procedureDoneStatus != .partial else { return [] }
        awaitProcedure(at: now)
        guard let remaining = remainingProcedures else { return [] }
        remainingProcedures = remaining - 1
        // The controllers do not report the end of the last procedure in another way.
        return remaining > 1 ? [] : end(nil) + removeConfig(at: now)
    }
}
