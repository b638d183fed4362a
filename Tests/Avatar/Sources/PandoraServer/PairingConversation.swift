import BLE

/// The questions of pairings to the test that listens to pairing events, and its answers.
actor PairingConversation {
    private struct OpenQuestion {
        let event: Pandora_PairingEvent
        let answer: CheckedContinuation<Pandora_PairingEventAnswer?, Never>
    }

    private struct Listener {
        let number: UInt64
        let events: AsyncStream<Pandora_PairingEvent>.Continuation
    }

    private var listener: Listener?
    private var lastListener: UInt64 = 0
    private var questions: [UInt64: OpenQuestion] = [:]
    private var lastNumber: UInt64 = 0

    var isListening: Bool { listener != nil }

    /// Listens while `body` runs, which receives the events. An earlier listener receives nothing more.
    ///
    /// After `body` has returned or thrown, nobody listens, and the listener's open questions are refused.
    func listen(_ body: @Sendable (AsyncStream<Pandora_PairingEvent>) async throws -> Void) async throws {
        reset()
        let (events, continuation) = AsyncStream.makeStream(of: Pandora_PairingEvent.self)
        lastListener += 1
        let number = lastListener
        listener = Listener(number: number, events: continuation)
        defer { if listener?.number == number { reset() } }
        try await body(events)
    }

    /// Ends the listener's stream and refuses all open questions.
    func reset() {
        listener?.events.finish()
        listener = nil
        for number in questions.keys.sorted() { withdraw(number) }
    }

    /// Sends an event that needs no answer.
    func notify(_ event: Pandora_PairingEvent) { listener?.events.yield(event) }

    /// Sends an event, and returns the listener's answer; nil if the question was withdrawn.
    func ask(_ event: Pandora_PairingEvent) async -> Pandora_PairingEventAnswer? {
        guard let listener else { return nil }
        lastNumber += 1
        let number = lastNumber
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                if Task.isCancelled { return continuation.resume(returning: nil) }
                questions[number] = OpenQuestion(event: event, answer: continuation)
                listener.events.yield(event)
            }
        } onCancel: {
            Task { await self.withdraw(number) }
        }
    }

    /// Takes an answer to the oldest open question with the same event. Other answers are ignored.
    func receive(_ answer: Pandora_PairingEventAnswer) {
        let answered = questions.filter { $0.value.event == answer.event }.keys.min()
        guard let answered else { return }
        questions.removeValue(forKey: answered)?.answer.resume(returning: answer)
    }

    private func withdraw(_ number: UInt64) {
        questions.removeValue(forKey: number)?.answer.resume(returning: nil)
    }
}

/// Passes the questions of pairings on to the test. Without a listener, pairings by just works are accepted, and those
/// that need a person are refused.
struct PairingQuestions: PairingDelegate {
    /// The device keeps the adapter, and the adapter keeps its delegate.
    unowned let device: Device

    func answer(_ inquiry: PairingInquiry) async -> PairingAnswer {
        let pairings = device.pairings
        var event = Pandora_PairingEvent()
        event.connection = Pandora_Connection(await device.number(of: inquiry.link))
        switch inquiry.question {
        case .consent(.justWorks, _):
            guard await pairings.isListening else { return .accept }
            event.justWorks = .init()
            return await pairings.ask(event)?.confirm == true ? .accept : .refuse
        case .consent:
            return .accept
        case .showPasskey(let passkey):
            event.passkeyEntryNotification = passkey
            await pairings.notify(event)
            return .accept
        case .enterPasskey:
            event.passkeyEntryRequest = .init()
            guard case .passkey(let passkey)? = await pairings.ask(event)?.answer else { return .refuse }
            return .passkey(passkey)
        case .compare(let number):
            event.numericComparison = number
            return await pairings.ask(event)?.confirm == true ? .accept : .refuse
        }
    }
}
