import BluetoothTypes
import Testing

@testable import BLEHCITransport

@Suite("The kernel's adapters to which a notation refers")
struct AdapterCandidatesTests {
    private static func adapter(
        _ index: Int,
        _ address: UInt64? = nil,
        _ flags: KernelAdapter.Flags = [],
        isBlocked: Bool = false
    ) -> KernelAdapter {
        var adapter = KernelAdapter(index: index)
        adapter.address = address.map { DeviceAddress($0, isRandom: false) }
        adapter.flags = flags
        if isBlocked { adapter.radioBlock = .init(bySoftware: true, byHardware: false) }
        return adapter
    }

    private static func inventory(_ adapters: [KernelAdapter], daemon: Int32? = nil) -> AdapterInventory {
        var inventory = AdapterInventory()
        inventory.adapters = adapters
        inventory.bluetoothDaemon = daemon
        return inventory
    }

    @Test(
        arguments: [
            ("addr:00:00:00:00:00:0A", [adapter(0, 0xB), adapter(1, 0xA)], nil, [1]),
            ("addr:00:00:00:00:00:0A", [adapter(0, 0xA), adapter(3, 0xA, .up)], nil, [0, 3]),
            ("addr:00:00:00:00:00:0A?channel=raw", [adapter(7, 0xA, .up)], 9, [7]),
            ("hci3", [adapter(0), adapter(3)], nil, [3]),
            ("auto", [adapter(0, 1), adapter(1, 2)], nil, [0, 1]),
            ("auto", [adapter(0, 1, .up), adapter(1, 2)], nil, [1, 0]),
            ("auto", [adapter(0, 1, .up), adapter(1, 2)], 9, [1]),
            ("auto", [adapter(0, isBlocked: true), adapter(4)], nil, [4]),
            ("virtual", [adapter(0)], nil, []), ("tcp:localhost:1", [adapter(0)], nil, []),
        ] as [(String, [KernelAdapter], Int32?, [Int])]
    )
    func candidatesHaveTheAddressOrAreFree(
        text: String,
        adapters: [KernelAdapter],
        daemon: Int32?,
        expected: [Int]
    ) throws {
        let found = try AdapterSpecification(parsing: text).candidates(in: Self.inventory(adapters, daemon: daemon))
        #expect(found.map(\.index) == expected)
    }

    @Test(
        arguments: [
            (
                "addr:00:00:00:00:00:0A", [adapter(0, 0xB), adapter(2)], nil,
                "no adapter has the address 00:00:00:00:00:0A; there is hci0 (00:00:00:00:00:0B), "
                    + "hci2 (address unknown); plug it in, or copy an address from `ble adapters`"
            ),
            (
                "addr:00:00:00:00:00:0A", [], nil,
                "no adapter has the address 00:00:00:00:00:0A; there is none; "
                    + "plug it in, or copy an address from `ble adapters`"
            ),
            ("hci1", [adapter(0)], nil, "there is no adapter hci1; `ble adapters` lists those there are"),
            (
                "auto", [adapter(0, 1, .up), adapter(1, isBlocked: true)], 812,
                "no adapter is free: hci0 is used by bluetoothd (process 812), hci1 is blocked by rfkill; "
                    + "`ble doctor` shows what to do"
            ),
            (
                "auto", [], nil,
                "there is no Bluetooth adapter; name one with BLE_ADAPTER, or use the adapter virtual"
            ),
        ] as [(String, [KernelAdapter], Int32?, String)]
    )
    func errorNamesTheAdaptersThatExist(
        text: String,
        adapters: [KernelAdapter],
        daemon: Int32?,
        message: String
    ) throws {
        let specification = try AdapterSpecification(parsing: text)
        let error = #expect(throws: TransportError.self) {
            try specification.candidates(in: Self.inventory(adapters, daemon: daemon))
        }
        #expect(error?.description == message)
    }

    @Test(arguments: ["hci0", "auto", "addr:00:00:00:00:00:0A"])
    func kernelWithoutBluetoothIsTheReasonIfThereIsNoAdapter(text: String) throws {
        var inventory = AdapterInventory()
        inventory.socketError = .bluetoothUnavailable
        let specification = try AdapterSpecification(parsing: text)
        let error = #expect(throws: TransportError.self) { try specification.candidates(in: inventory) }
        #expect(error == .bluetoothUnavailable)
    }
}
