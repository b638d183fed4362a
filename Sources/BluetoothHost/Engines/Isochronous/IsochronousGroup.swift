import BLEHCI
import BluetoothTypes

extension IsochronousEngine {
    /// One stream of a group, or of a peripheral.
    struct Stream {
        enum Phase: Equatable {
            /// The handle exists, but the stream is not established.
            case idle
            /// LE CIS Established is awaited.
            case creating
            /// The answers to this number of commands for data paths are awaited.
            case settingUpPaths(Int)
            case open
            /// Disconnection Complete is awaited.
            case closing
        }

        let link: LinkIdentifier
        /// The group of this controller, if this host is the central.
        let cigID: UInt8?
        var phase = Phase.idle
        var information: IsochronousStreamInformation?
        /// Why the stream ends once it is established: a command for a data path has failed, or the identity of the
        /// peripheral's central is no longer verified.
        var failure: HostError?
        /// Whether the stream was reported as opened.
        var isReported = false
        var assembler = SDUAssembler()
    }

    struct Opening {
        let number: UInt64
        let links: [LinkIdentifier]
        let parameters: ConnectedGroupParameters
        /// The links whose gates are closed. The opening begins when all of them have opened.
        var gatedLinks: Set<LinkIdentifier>
    }

    /// The removal of a group from the controller.
    enum Removal {
        case none
        /// The answer to the command is awaited.
        case requested
        /// The controller has refused. It is asked again before the next opening.
        case refused
    }

    /// A handle whose link has ended. The controller may still report the end of the stream.
    struct EndedHandle {
        let handle: ConnectionHandle
        let deadline: Instant
    }

    struct Group {
        var handles: [ConnectionHandle] = []
        /// The opening that has not ended.
        var opening: Opening?
        /// Why the opening fails when its streams have ended.
        var failure: HostError?
        var removal = Removal.none
    }
}
