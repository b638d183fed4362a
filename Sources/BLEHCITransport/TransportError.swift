import BluetoothTypes
import Glibc

/// The reason why a controller cannot be reached, or its connection ended. The description says what to do.
public enum TransportError: Error, Hashable, Sendable {
    /// The adapter's name cannot be parsed.
    case invalidSpecification(AdapterSpecificationError)
    /// No adapter has this index.
    case noSuchAdapter(index: Int)
    /// No adapter has this address. `present` lists the adapters with their addresses.
    case noAdapterWithAddress(DeviceAddress, present: String)
    /// No adapter is free. `present` lists the adapters, each with the reason.
    case noFreeAdapter(present: String)
    /// The adapter is up, or another program uses it.
    case adapterBusy(index: Int)
    /// The process lacks CAP_NET_ADMIN or CAP_NET_RAW.
    case permissionDenied(String)
    /// The kernel has no Bluetooth.
    case bluetoothUnavailable
    /// The kernel has no monitor channel: it has no Bluetooth, or is too old.
    case monitorUnavailable
    /// The adapter is down, and the channel does not bring it up.
    case adapterDown(index: Int)
    /// The adapter was unplugged, or its driver released it.
    case adapterRemoved(index: Int)
    /// The radio is blocked by rfkill.
    case blockedByRFKill(index: Int)
    /// Connecting failed with this errno, for example because no process listens at the address.
    case connectionFailed(String, errno: Int32)
    /// The host name has no address.
    case unknownHost(String)
    /// The system could not look up the host name now. It may have an address.
    case hostLookupFailed(String)
    /// The other end of a stream did not answer in time.
    case connectTimedOut(String)
    /// A serial line cannot be opened or configured.
    case serialLine(String, errno: Int32)
    /// The capture file cannot be opened or written.
    case captureFile(String, errno: Int32)
    /// The other end has closed the connection.
    case closedByPeer
    /// Reading failed for another reason.
    case readFailed(errno: Int32)
    /// Writing failed for another reason.
    case writeFailed(errno: Int32)
    /// The stream has lost its framing: this byte is in place of a packet indicator.
    case brokenStream(octet: UInt8)
    /// More bytes wait to be written than the transport can hold.
    case overflow
    /// No adapter was named, and hci0 does not exist.
    case noAdapter
    /// This process does not support this kind of adapter.
    case unsupported(String)
}

extension TransportError: CustomStringConvertible {
    public var description: String {
        switch self {
        case .invalidSpecification(let error): error.description
        case .noSuchAdapter(let index):
            "there is no adapter hci\(index); `ble adapters` lists those there are"
        case .noAdapterWithAddress(let address, let present):
            "no adapter has the address \(address); there is \(present.isEmpty ? "none" : present)"
                + "; plug it in, or copy an address from `ble adapters`"
        case .noFreeAdapter(let present):
            "no adapter is free: \(present); `ble doctor` shows what to do"
        case .adapterBusy(let index):
            "hci\(index) is in use; stop what has it (`systemctl stop bluetooth`) and bring it down "
                + "(`hciconfig hci\(index) down`), or try hci\(index)?channel=raw"
        case .permissionDenied(let what):
            "no permission for \(what); run as root or grant it with "
                + "`setcap cap_net_admin,cap_net_raw+eip` on the program"
        case .bluetoothUnavailable:
            "this kernel has no Bluetooth sockets (`modprobe bluetooth`); "
                + "without hardware use the adapter virtual, tcp:HOST:PORT or unix:PATH"
        case .monitorUnavailable:
            "this kernel has no Bluetooth to monitor (`modprobe bluetooth`)"
        case .adapterDown(let index):
            "hci\(index) is down; bring it up with `hciconfig hci\(index) up`, or use it without ?channel=raw"
        case .adapterRemoved(let index): "hci\(index) was removed; plug it in again or see `dmesg`"
        case .blockedByRFKill(let index):
            "hci\(index) is blocked by rfkill; unblock it with `rfkill unblock bluetooth`"
        case .connectionFailed(let what, let errno):
            "cannot connect to \(what): \(describe(errno)); \(advice(errno) ?? "is the controller listening there?")"
        case .unknownHost(let host): "the host \(host) has no address; check its name"
        case .hostLookupFailed(let host): hostLookupDescription(host)
        case .connectTimedOut(let what): "\(what) does not answer; is it the right address?"
        case .serialLine(let path, let errno):
            "cannot use the serial line \(path): \(describe(errno)); \(advice(errno) ?? serialAdvice(errno))"
        case .captureFile(let path, let errno):
            "cannot write the capture file \(path): \(describe(errno)); \(advice(errno) ?? captureAdvice(errno))"
        case .closedByPeer: "the controller has closed the connection"
        case .readFailed(let errno):
            "reading from the controller failed: \(describeWithAdvice(errno))"
        case .writeFailed(let errno):
            "writing to the controller failed: \(describeWithAdvice(errno))"
        case .brokenStream(let octet):
            "the stream from the controller is broken: 0x\(String(octet, radix: 16)) instead of the start of an H4 packet"
        case .overflow: "the controller takes nothing any more; too much waits to be written to it"
        case .noAdapter:
            "there is no Bluetooth adapter; name one with BLE_ADAPTER, or use the adapter virtual"
        case .unsupported(let what): "\(what) is not available here"
        }
    }
}

/// Describes the temporary failure of a lookup of a host name.
func hostLookupDescription(_ host: String) -> String {
    "the host \(host) cannot be looked up now; check the network and its name server, or use the IP address of the host"
}

private func serialAdvice(_ errno: Int32) -> String {
    switch errno {
    case EACCES, EPERM: "add the user to the group that owns it"
    case EBUSY: "stop the program that uses it"
    case EINVAL: "the device does not support this rate; choose another one"
    default: "is it the right device?"
    }
}

private func captureAdvice(_ errno: Int32) -> String {
    switch errno {
    case ENOSPC, EDQUOT: "free space or choose another path"
    case EFBIG: "raise the limit for the size of files with `ulimit -f`, or choose another path"
    case EIO: "check the disk with `dmesg`"
    case ENXIO: "if it is a pipe, start its reader first"
    case EAGAIN: "the pipe is full because its reader is too slow; write to a regular file instead"
    default: "choose another path"
    }
}
