import BLEHCI
import BluetoothTypes

// Only the plan changes its entries.
extension AdvertisingPlan {
    /// An advertisement, and the part of it that the controller has.
    struct Entry {
        enum State: Equatable {
            case off
            case on
            /// It is on, as far as the host knows, and is to be turned off and on again.
            case stale
            /// The controller cannot advertise in addition to its connections. It is tried again when a connection
            /// ends, or after ``blockedInterval``.
            case blocked
            /// The controller refused a command. It is tried again later.
            case failed
            /// It is to be removed from the controller.
            case ending
            /// It has ended, but the controller has refused to end it and may advertise it still. Its handle is not
            /// used for another advertisement. Its end is tried again when another advertisement starts, when a
            /// connection ends, or after ``blockedInterval``: see ``refusalLimit``.
            case endRefused
        }

        /// The number of refusals after which the end of a set is not tried again. The end of legacy advertising is
        /// still tried again when another advertisement starts, which needs it off, and when a connection ends.
        static let refusalLimit = 3

        let identifier: AdvertisementIdentifier
        let configuration: AdvertisementConfiguration
        /// The advertising handle of extended advertising.
        let handle: UInt8
        /// Whether the controller creates an advertising set for it with the parameters (extended commands).
        let usesSet: Bool
        var state = State.off
        /// Whether the controller has an advertising set for it.
        var hasSet = false
        /// Whether the controller may advertise it.
        var mayBeOn = false {
            didSet { if !mayBeOn { restartRefusalCount = 0 } }
        }
        /// How many of its ``SetupPart``s the controller has.
        var setupCount = 0
        /// The data of the periodic train that the controller has, or gets by the setup.
        var periodicData: AdvertisingData
        /// The data that replaces it; nil for none.
        var nextPeriodicData: AdvertisingData?
        /// The data of the train before the last change; nil if the controller has accepted the new data.
        var earlierPeriodicData: AdvertisingData?
        /// Whether the controller sends the periodic train while it advertises the set.
        var isPeriodicOn = false
        /// The random address that was set for an extended advertising set.
        var address: DeviceAddress?
        /// How often the controller has refused to end it.
        private(set) var refusalCount = 0
        /// How often the controller has refused to turn it off for a restart since it was last known to be off. Starts
        /// again with 1 when the controller refuses its parameters.
        private(set) var restartRefusalCount = 0
        /// The calls that wait until the advertisement has started or ended.
        var calls: [CallToken] = []

        var isOn: Bool { state == .on || state == .stale }
        /// Whether it ends, or has ended although the controller has refused that.
        var isEnding: Bool { state == .ending || state == .endRefused }
        /// Whether it has ended for the app, but may be on because the controller has refused to end it.
        var isLeftOn: Bool { refusalCount > 0 }
        /// Whether it must be turned off for a change of addresses. After a failure, the controller may still advertise
        /// it. After a refused pause it counts as off, so that the change does not wait for it.
        var mustPause: Bool { isOn || mayBeOn && (state == .failed || state == .blocked) }
        /// Whether the controller has nothing of it.
        var isGone: Bool { !hasSet && !mayBeOn }
        /// Whether the controller has refused again to turn it off, perhaps because it is off. Then its parameters are
        /// sent: a controller accepts them only while it is off (Vol 4, Part E, 7.8.5 and 7.8.53).
        ///
        /// False while its periodic train is on. A controller does not accept the parameters then either, so the train
        /// would have to stop first. Such a set is not connectable, so no connection ends it.
        var isOffDoubtful: Bool { restartRefusalCount > 1 && !isPeriodicOn }

        /// Records that the controller does not advertise it. The device that it is directed to may have another
        /// address when it starts again.
        mutating func turnedOff(_ state: State) {
            self.state = state
            if configuration.peer != nil { setupCount = 0 }
        }

        /// Records whether the controller has this data. If it refuses the data, it continues with the earlier data.
        mutating func periodicDataSent(_ data: AdvertisingData, isAccepted: Bool) {
            if isAccepted {
                periodicData = data
                earlierPeriodicData = nil
            }
            if nextPeriodicData == data { nextPeriodicData = nil }
        }

        /// Records that the controller may have this data, because its answer cannot be read. The train is set up with
        /// it, and with the earlier data if the controller refuses it then.
        mutating func periodicDataMayBeSent(_ data: AdvertisingData) {
            let earlier = earlierPeriodicData ?? periodicData
            periodicDataSent(data, isAccepted: true)
            earlierPeriodicData = earlier
        }

        /// Records that the controller sends the periodic train.
        mutating func periodicStarted() {
            isPeriodicOn = true
            earlierPeriodicData = nil
        }

        /// Records that the controller does not send the periodic train, which is to be set up again.
        mutating func periodicStopped() {
            isPeriodicOn = false
            takeNextPeriodicData()
            setUpPeriodicAgain()
        }

        /// Records that the controller has refused to stop the periodic train. If the train was to stop for new data,
        /// it continues with its data.
        ///
        /// - Returns: whether the advertisement fails, because it cannot be set up again while the train is on.
        mutating func periodicStopRefused(_ failure: CommandFailure) -> Bool {
            var isOff = failure.isOutcomeUnknown
            if case .status(.unknownAdvertisingIdentifier, _) = failure { isOff = true }
            // At its end, the set is removed next. If the controller refuses that too, the train is stopped again.
            guard !isOff, !isEnding else {
                periodicStopped()
                return false
            }
            guard let next = nextPeriodicData else { return true }
            if next.length > PeriodicAdvertisingDataFragment.maximumLength { nextPeriodicData = nil }
            return false
        }

        private mutating func takeNextPeriodicData() {
            guard let next = nextPeriodicData.take() else { return }
            earlierPeriodicData = earlierPeriodicData ?? periodicData
            periodicData = next
        }

        /// Has the train set up with its earlier data, because the controller refuses the new data.
        ///
        /// - Returns: false if there is no earlier data.
        mutating func restorePeriodicData() -> Bool {
            guard let earlier = earlierPeriodicData.take() else { return false }
            periodicData = earlier
            setUpPeriodicAgain()
            return true
        }

        private mutating func setUpPeriodicAgain() {
            let parts = setupParts(usesExtendedCommands: true)
            setupCount = min(setupCount, parts.firstIndex(of: .periodicParameters) ?? parts.count)
        }

        /// Whether the controller has refused a command because it does not have the set. Then the set is not on.
        func isUnknownSet(by failure: CommandFailure) -> Bool {
            guard usesSet, case .status(.unknownAdvertisingIdentifier, _) = failure else { return false }
            return true
        }

        /// Records that the controller has refused to turn it off for a restart, or its parameters after such refusals.
        /// After refused parameters, the controller is to turn it off again.
        ///
        /// - Returns: false if another command was refused.
        mutating func restartRefused(_ purpose: AdvertisingPlan.Purpose) -> Bool {
            switch purpose {
            case .turnOff(_, .restart): restartRefusalCount += 1
            case .setUp(_, .parameters) where mayBeOn: restartRefusalCount = 1
            default: return false
            }
            return true
        }

        /// Records that the controller has refused to turn it off or to remove it at its end.
        ///
        /// - Returns: false if it is off. Then another advertisement may use its handle. If the controller has kept the
        ///   set, that advertisement replaces the parameters and the data.
        mutating func mayStayOn(after failure: CommandFailure, of purpose: AdvertisingPlan.Purpose) -> Bool {
            if isUnknownSet(by: failure) { return false }
            if case .remove = purpose {
                // The controller removes no set that it advertises (Vol 4, Part E, 7.8.59). So the set is turned off
                // again. After the last refusal, it counts as off, because the controller has accepted to turn it off.
                guard case .status(.commandDisallowed, _) = failure, refusalCount + 1 < Entry.refusalLimit else {
                    return false
                }
                mayBeOn = true
                isPeriodicOn = configuration.periodic != nil
            }
            refusalCount += 1
            state = .endRefused
            return true
        }

        /// Has it tried again, or ended again, if the controller has refused that before.
        mutating func unblock() {
            endAgain()
            if state == .blocked { state = .off }
        }

        /// Has it ended again if the controller has refused that before.
        mutating func endAgain() {
            if state == .endRefused, !usesSet || refusalCount < Entry.refusalLimit { state = .ending }
        }

        /// Has the controller get all commands again.
        mutating func startOver(_ state: State) {
            self.state = state
            takeNextPeriodicData()
            setupCount = 0
            address = nil
        }

        /// Records that the controller has nothing of it.
        mutating func forgetController() {
            startOver(isEnding ? state : .off)
            hasSet = false
            mayBeOn = false
            isPeriodicOn = false
        }
    }
}
