import BLE
import BLEHCITransport
import BLEKeyStore
import BLEProfiles
import BluetoothTypes

/// The reason why a command failed, beyond the errors of the stack.
enum ToolError: Error, Equatable, CustomStringConvertible {
    case notUp(String, Seconds)
    /// The controller closed the stream before it was up.
    case closedAtStart(String)
    case notSeen(Target, Seconds, scansCoded: Bool)
    /// The target was seen, but only with advertisements that accept no connection.
    case notConnectable(Target, Seconds)
    /// The peer does not support subrated connections. The text says so.
    case noSubrating(String)
    /// Fewer notifications arrived than requested.
    case tooFew(Int, of: Int, Seconds)
    case scanEnded
    case deliveriesEnded
    /// Something that must be repaired was found.
    case findings(Int)
    /// No state directory is defined.
    case noStateDirectory
    case noBond(String, String)
    case noBonds(String)
    /// A bond with this address could not be saved in this file.
    case bondNotSaved(String, String)
    case severalHosts([String])
    case noThroughputService(String)
    case unexplored(Seconds)
    /// A device announced no broadcast stream.
    case noBroadcast(Target, Seconds)
    /// The file of a broadcast has more bytes than this.
    case broadcastTooLong(Int)
    /// The receiver of a file did not close the stream.
    case streamNotClosed
    /// Both sides of a stream want to send its file, or both want to receive it.
    case sameDirections

    var description: String {
        switch self {
        case .notUp(let adapter, let time): "\(adapter) was not up in \(time); is it a Bluetooth controller?"
        case .closedAtStart(let adapter):
            "\(adapter): the controller has closed the connection before it was up; stop other programs that use it"
        case .notSeen(.address(let value), let time, let scansCoded):
            "\(Target.address(value)) was not seen in \(time); is it on, near and advertising? "
                + "With --address-type public or random the connection is made without looking for it"
                + ToolError.codedAdvice(scansCoded)
        case .notSeen(let target, let time, let scansCoded):
            "no device with \(target) was seen in \(time); is it on, near and advertising? "
                + "`ble scan` lists the devices in range" + ToolError.codedAdvice(scansCoded)
        case .notConnectable(let target, let time):
            "\(target) was seen, but accepted no connections in \(time); is it connected already, or a broadcaster?"
        case .noSubrating(let problem):
            "\(problem); if `ble serve` runs there, start it with --subrating"
        case .tooFew(let count, let wanted, let time):
            "only \(count) of \(wanted) values arrived in \(time)"
        case .scanEnded: "the scan has ended before its time; is the controller still there?"
        case .deliveriesEnded: "the subscription has ended; is the peer still there?"
        case .findings(let count):
            "\(count) \(count == 1 ? "finding keeps" : "findings keep") Bluetooth from being used"
        case .noStateDirectory: "HOME is not set; name a directory for bonds with --state-dir"
        case .noBond(let address, let directory):
            "there is no bond with \(address) in \(directory); `ble bonds` lists the bonds"
        case .noBonds(let directory): "there are no bonds in \(directory)"
        case .bondNotSaved(let address, let path):
            "the bond with \(address) could not be saved in \(path) and is lost; repair that and pair again"
        case .severalHosts(let hosts):
            "there are bonds of several hosts; name one with --host: \(terminalSafe(hosts.joined(separator: ", ")))"
        case .noBroadcast(let target, let limit):
            "\(target) announced no broadcast stream within \(limit); does `ble iso broadcast` run there?"
        case .broadcastTooLong(let limit): "the broadcast file is longer than \(limit) bytes"
        case .sameDirections:
            "the stream has the other direction; start one side with --send and the other with --receive"
        case .streamNotClosed: "the receiver did not close the stream at the end of the file; is it running?"
        case .noThroughputService(let address):
            "\(address) does not have the service that is measured; run `ble throughput serve` there"
        case .unexplored(let limit):
            "the peer was not explored in \(limit); --limit sets another time, and `ble read` reads single values"
        }
    }
}

extension ToolError {
    private static func codedAdvice(_ scansCoded: Bool) -> String {
        scansCoded ? "" : ". --coded also finds devices on LE Coded"
    }

    /// The text of any error, with the tool's own options that help.
    static func description(of error: any Error) -> String {
        let bondError = BLEError.security(.pairing(.endedByPeer(.pairingNotSupported)))
        if error as? BLEError == bondError {
            return "\(error); if the peer still has a bond with this device, remove it there too, or start `ble serve` "
                + "there with --replace-bond"
        }
        if error is StateFileError { return withStateOption("\(error)") }
        if case .stateUnavailable? = error as? BLEError { return withStateOption("\(error)") }
        let transportError: TransportError? =
            if case .adapter(let error) = error as? BLEError { error } else { error as? TransportError }
        return "\(error)" + (transportError?.advice ?? "")
    }
}

extension ToolError {
    /// A text about the state directory, with the tool's own option for it.
    static func withStateOption(_ text: String) -> String {
        // The library names the variable if it has chosen the directory.
        guard !text.contains("BLE_STATE_DIR") else {
            return text.replacing("BLE_STATE_DIR", with: "--state-dir or BLE_STATE_DIR")
        }
        return StateFileError.text(text, namingDirectoryWith: "--state-dir")
    }
}

extension TransportError {
    /// Options of the tool that help, as text after the error's description; empty if there are none.
    var advice: String {
        switch self {
        case .noAdapter: "; --adapter does the same for one command"
        case .bluetoothUnavailable: ", with --adapter"
        case .monitorUnavailable: "; what a command of ble itself sends and receives is recorded by its --capture"
        default: ""
        }
    }
}
