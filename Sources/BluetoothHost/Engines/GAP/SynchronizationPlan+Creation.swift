import BLEHCI
import BluetoothTypes

extension SynchronizationPlan {
    /// The synchronization that the controller creates.
    struct Creation {
        /// The synchronizations that it can become: one, or several of the periodic advertiser list. None if no app
        /// wants it any more.
        var identifiers: [SynchronizationIdentifier]
        /// Whether the controller selects the train by its periodic advertiser list.
        let usesList: Bool
        /// Whether the controller is to end the creation, because no app wants it or because others wait.
        var isEnding = false
        /// When the plan assumes that the creation has ended; nil until its cancellation.
        var endDeadline: Instant?
        /// When another synchronization has its turn; nil if the controller is only to end an earlier creation.
        var deadline: Instant?
    }

    /// The waiting synchronizations that can be created by one command: the first one, and those with the same
    /// parameters that fit on the periodic advertiser list with it.
    func nextGroup(_ controller: ControllerInformation) -> [Entry] {
        guard let first = entries.first(where: { $0.state == .waiting }) else { return [] }
        guard controller.canUsePeriodicAdvertiserList, !list.isRefused, first.request.isListable else { return [first] }
        let group = entries.lazy.filter { entry in
            entry.state == .waiting && entry.request.isListable && entry.request.skip == first.request.skip
                && entry.request.timeout == first.request.timeout
        }
        return Array(group.prefix(list.capacity))
    }

    /// Has a synchronization that is stopped, or that has got its train otherwise, no longer created. The controller
    /// ends the creation, and creates those that remain by another one.
    mutating func abandonCreation(of identifier: SynchronizationIdentifier) {
        creation?.identifiers.removeAll { $0 == identifier }
        creation?.isEnding = true
    }

    /// Has a synchronization created again, after the others that wait.
    mutating func waitForNextTurn(at index: Int) {
        var entry = entries.remove(at: index)
        entry.wait()
        entries.append(entry)
    }

    /// Ends the creation. Its synchronizations have their next turn after the others.
    mutating func endCreation() {
        for identifier in creation.take()?.identifiers ?? [] {
            if let index = index(of: identifier) { waitForNextTurn(at: index) }
        }
    }

    /// Ends the creation, which has succeeded. Synchronizations that it could also have become wait again.
    ///
    /// - Returns: the index of the synchronization that it has become; nil if no app wants it.
    mutating func takeCreated(_ event: LEPeriodicAdvertisingSyncEstablishedV2) -> Int? {
        guard let creation = creation.take() else { return nil }
        let found = creation.identifiers.first { identifier in
            guard creation.usesList else { return true }
            return index(of: identifier).map { entries[$0].request.isTrain(of: event) } ?? false
        }
        for identifier in creation.identifiers where identifier != found {
            if let index = index(of: identifier) { entries[index].state = .waiting }
        }
        // A controller that reports other addresses than those on the list would find the same train again.
        if found == nil, !creation.isEnding { list.isRefused = true }
        return index(of: found)
    }
}

extension PeriodicTrainRequest {
    /// Whether the train can be on the periodic advertiser list. An advertiser with a resolvable private address can be
    /// reported by its identity address, which is not known to be its own.
    fileprivate var isListable: Bool { address.kind != .resolvablePrivate }

    fileprivate func isTrain(of event: LEPeriodicAdvertisingSyncEstablishedV2) -> Bool {
        event.advertiserAddress.deviceAddress == address && event.advertisingSID == sid
    }
}

/// What the plan knows of the controller's periodic advertiser list (Vol 4, Part E, 7.8.70).
struct PeriodicAdvertiserListState {
    /// A command that changes the list.
    enum Change: Equatable {
        case clear
        case add(PeriodicTrainRequest.Train)
    }

    /// The trains on the list; nil if that is not known.
    private var trains: [PeriodicTrainRequest.Train]? = []
    /// Maximum number of trains, as far as the controller has shown it.
    private(set) var capacity = Int.max
    /// Whether the list is not used, because the controller has refused it.
    var isRefused = false

    /// The next change on the way to a list of these trains; nil if it has them.
    func change(to wanted: [PeriodicTrainRequest.Train]) -> Change? {
        guard let trains, trains.allSatisfy(wanted.contains) else { return .clear }
        return wanted.first { !trains.contains($0) }.map { .add($0) }
    }

    /// Records that the controller has made a change.
    mutating func changed(_ change: Change) {
        switch change {
        case .clear: trains = []
        case .add(let train): trains?.append(train)
        }
    }

    /// Records that the controller has refused a change.
    mutating func refused(_ change: Change, _ failure: CommandFailure) {
        if case .add = change, case .status(.memoryCapacityExceeded, _) = failure, let trains, !trains.isEmpty {
            capacity = trains.count
        } else {
            trains = nil
            isRefused = true
        }
    }
}

extension GAPCommand {
    /// The command that changes the periodic advertiser list.
    init(_ change: PeriodicAdvertiserListState.Change) {
        switch change {
        case .clear: self.init(LEClearPeriodicAdvertiserList())
        case .add(let train):
            self.init(
                LEAddDeviceToPeriodicAdvertiserList(advertiserAddress: train.address, advertisingSID: train.sid)
            )
        }
    }
}
