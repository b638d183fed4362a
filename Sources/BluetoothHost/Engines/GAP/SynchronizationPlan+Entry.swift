import BLEHCI
import BluetoothTypes

extension SynchronizationPlan {
    /// A synchronization of an app.
    struct Entry {
        enum State: Equatable {
            case waiting
            case creating
            /// The controller receives the train, and reports it under this handle.
            case established(UInt16)
        }

        let identifier: SynchronizationIdentifier
        let request: PeriodicTrainRequest
        /// Whether the advertiser was received on the LE Coded PHY, so that the train is searched for on that PHY too.
        var usesCodedPHY = false
        /// Whether a connected device has transferred it.
        var isTransferred = false
        var state = State.waiting
        /// Whether the controller has to be told which subevents the app wants.
        var needsSubevents = false
        /// The data of an event that the controller reports in several fragments; nil if no fragment waits.
        var partial: PartialData?
        /// How long a fragment waits for the next one.
        var fragmentLifetime = Duration.zero
    }

    /// The fragments of the data of one event, or of one subevent.
    struct PartialData {
        let place: PeriodicPlace?
        /// When the last fragment was received.
        let time: Instant
        /// Whether the beginning of the data may be missing.
        var isTail = false
        var bytes: [UInt8] = []
    }
}
