import BLEHCI

extension ConnectionPlan {
    /// Whether a controller that reports the LE Coded PHY refuses to initiate on it.
    ///
    /// A refused command does not say which parameter the controller refuses. So the same initiation is tried on LE 1M
    /// alone. If the controller accepts that, it has refused the PHY. If it refuses that as well, the reason is another
    /// one, and a later initiation uses LE Coded again.
    enum CodedRefusal: Equatable {
        case none
        /// The controller refused this initiation on LE Coded. It has not answered yet without this PHY.
        case suspected(Initiation, CommandFailure)
        /// LE Coded is not used until the controller's next reset.
        case confirmed

        /// Whether an initiation on LE Coded must be tried on LE 1M alone.
        func covers(_ initiation: Initiation) -> Bool {
            switch self {
            case .none: false
            case .suspected(let refused, _): initiation == refused
            case .confirmed: true
            }
        }

        /// Whether the controller's refusal of LE Coded is to be confirmed.
        func isSuspected(by failure: CommandFailure) -> Bool {
            if case .suspected(_, failure) = self { true } else { false }
        }

        /// Records that the controller refused an initiation.
        ///
        /// - Returns: whether the initiation is to be tried on LE 1M alone.
        mutating func suspect(_ failure: CommandFailure, of initiation: Initiation) -> Bool {
            guard initiation.usesCodedPHY, case .status(let status, _) = failure, status.mayRefuseAPHY else {
                return false
            }
            self = .suspected(initiation, failure)
            return true
        }

        /// Records that the controller accepted an initiation.
        ///
        /// - Returns: the refusal of LE Coded that this confirms; nil if it confirms none.
        mutating func confirm(by initiation: Initiation) -> CommandFailure? {
            guard case .suspected(let refused, let failure) = self, initiation == refused.withoutCodedPHY else {
                return nil
            }
            self = .confirmed
            return failure
        }

        /// Records that the controller refused an initiation for a reason that is not the PHY.
        mutating func clear(by initiation: Initiation) {
            guard case .suspected(let refused, _) = self, initiation == refused.withoutCodedPHY else { return }
            self = .none
        }
    }
}

extension ConnectionPlan.Initiation {
    fileprivate var withoutCodedPHY: Self {
        var initiation = self
        initiation.usesCodedPHY = false
        return initiation
    }
}

extension HCIErrorCode {
    /// Whether this answer to LE Extended Create Connection may mean that the controller does not use a PHY. The other
    /// errors depend on what the controller does at the time (Vol 4, Part E, 7.8.66).
    fileprivate var mayRefuseAPHY: Bool {
        switch self {
        case .commandDisallowed, .connectionAlreadyExists, .connectionLimitExceeded, .memoryCapacityExceeded,
            .connectionRejectedDueToLimitedResources:
            false
        default: true
        }
    }
}
