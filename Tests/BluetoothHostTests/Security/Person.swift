import BLE
import BluetoothTesting
import Synchronization

/// A simulated user of one or both devices, who reads what one shows and types it on the other.
final class Person: Sendable {
    private struct State {
        var shown: UInt32?
        var inquiries: [PairingInquiry] = []
    }

    /// Differences from the behavior of a user who wants to pair.
    struct Mood: Sendable {
        var refusesConsent = false
        var refusesToReplace = false
        var mistypes = false
        var seesAnotherNumber = false
        /// Does not answer at all.
        var isAway = false
    }

    private let state = Mutex(State())
    let mood: Mood
    private let world: World

    init(in world: World, mood: Mood = Mood()) {
        self.world = world
        self.mood = mood
    }

    /// The questions that the user was asked, in their order.
    var inquiries: [PairingInquiry] { state.withLock { $0.inquiries } }

    /// The numbers that the user had to compare.
    var numbers: [UInt32] {
        inquiries.compactMap { if case .compare(let number) = $0.question { number } else { nil } }
    }

    /// Makes the user the delegate of one device.
    func hold() -> some PairingDelegate { Hand(person: self) }

    private struct Hand: PairingDelegate {
        let person: Person

        func answer(_ inquiry: PairingInquiry) async -> PairingAnswer { await person.answer(inquiry) }
    }

    private func answer(_ inquiry: PairingInquiry) async -> PairingAnswer {
        state.withLock { $0.inquiries.append(inquiry) }
        if mood.isAway {
            try? await world.sleep(for: .seconds(3600))
            return .refuse
        }
        switch inquiry.question {
        case .consent:
            let isUnwanted = mood.refusesConsent || inquiry.replaces != nil && mood.refusesToReplace
            return isUnwanted ? .refuse : .accept
        case .showPasskey(let passkey):
            state.withLock { $0.shown = passkey }
            return .accept
        case .enterPasskey: return .passkey(await passkey() ^ (mood.mistypes ? 1 : 0))
        case .compare: return mood.seesAnotherNumber ? .refuse : .accept
        }
    }

    /// The passkey that the other device shows; if none shows one, the user's own choice.
    private func passkey() async -> UInt32 {
        for _ in 0..<20 {
            if let shown = state.withLock({ $0.shown }) { return shown }
            try? await world.sleep(for: .milliseconds(50))
        }
        return 271_828
    }
}
