import CBLEBluetooth
import Dispatch
import Glibc
import Testing

@testable import BLEHCITransport

@Suite("An error of a transport")
struct TransportErrorTests {
    @Test(
        arguments: [
            (EBUSY, .adapterBusy(index: 1), "systemctl stop bluetooth"),
            (EUSERS, .adapterBusy(index: 1), "hciconfig hci1 down"),
            (EALREADY, .adapterBusy(index: 1), "hci1?channel=raw"),
            (EPERM, .permissionDenied("the HCI socket of hci1"), "setcap cap_net_admin"),
            (EACCES, .permissionDenied("the HCI socket of hci1"), "root"),
            (ENODEV, .noSuchAdapter(index: 1), "ble adapters"),
            (EAFNOSUPPORT, .bluetoothUnavailable, "the adapter virtual"),
            (EPROTONOSUPPORT, .bluetoothUnavailable, "modprobe bluetooth"),
            (ENETDOWN, .adapterDown(index: 1), "hciconfig hci1 up"),
            (ble_ERFKILL, .blockedByRFKill(index: 1), "rfkill unblock bluetooth"),
            (EIO, .connectionFailed("hci1", errno: EIO), "hci1"),
        ] as [(Int32, TransportError, String)]
    )
    func hciSocketErrorGivesAdvice(errno: Int32, expected: TransportError, advice: String) {
        let error = TransportError.hciSocket(errno: errno, index: 1)
        #expect(error == expected)
        #expect(error.description.contains(advice), "\(error)")
        #expect(!error.description.contains("\n"))
    }

    @Test(
        arguments: [
            .noSuchAdapter(index: 1), .adapterBusy(index: 1), .permissionDenied("hci1"), .bluetoothUnavailable,
            .monitorUnavailable, .adapterDown(index: 1), .adapterRemoved(index: 1), .blockedByRFKill(index: 1),
            .connectionFailed("hci1", errno: EIO), .unknownHost("nowhere"), .hostLookupFailed("nowhere"),
            .connectTimedOut("nowhere"),
            .serialLine("/dev/tty", errno: EIO), .captureFile("capture", errno: EIO), .closedByPeer,
            .readFailed(errno: EIO), .writeFailed(errno: EIO), .brokenStream(octet: 7), .overflow, .noAdapter,
            .unsupported("it"),
        ] as [TransportError]
    )
    func errorNamesNoCommandLineOption(error: TransportError) {
        #expect(!error.description.contains(" --"), "\(error)")
    }

    @Test func failedLookupAdvisesToCheckTheNetworkNotTheController() {
        let descriptions = [
            TransportError.hostLookupFailed("nowhere").description,
            ListeningError.hostLookupFailed("nowhere").description,
        ]
        for description in descriptions {
            #expect(description.contains("nowhere") && description.contains("check the network"))
        }
    }

    @Test func missingAdapterOrBluetoothSupportOfThisKernelIsNamed() async {
        let socket = OwnedDescriptor(ble_hci_socket())
        let expected: TransportError =
            socket.number >= 0 ? .noSuchAdapter(index: 60_000) : .hciSocket(errno: -socket.number, index: 60_000)
        let error = await #expect(throws: TransportError.self) {
            try await AdapterSpecification.hci(index: 60_000, channel: .user).open(on: DispatchQueue(label: "here"))
        }
        #expect(error == expected || error == .permissionDenied("the HCI socket of hci60000"))
        #expect(
            AdapterInventory.read().socketError
                == (socket.number >= 0 ? nil : .hciSocket(errno: -socket.number, index: 0))
        )
    }
}
