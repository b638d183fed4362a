import BLEHCITransport
import BLEProfiles
import BluetoothTypes
import Testing

@testable import BLETool

@Suite("Diagnosis")
struct DiagnosisTests {
    private func inventory(_ change: (inout AdapterInventory) -> Void) -> AdapterInventory {
        var inventory = AdapterInventory()
        inventory.canAdministerNetwork = true
        inventory.canUseRawSockets = true
        change(&inventory)
        return inventory
    }

    private func adapter(_ index: Int, _ flags: KernelAdapter.Flags?) -> KernelAdapter {
        var adapter = KernelAdapter(index: index)
        adapter.flags = flags
        return adapter
    }

    private let groundwork = [
        Finding(.good, "the kernel has HCI sockets"),
        Finding(.good, "CAP_NET_ADMIN is there: the user channel may be used"),
        Finding(.good, "CAP_NET_RAW is there: the raw channel may be used"),
    ]

    @Test("An adapter that is down is free for the user channel")
    func adapterThatIsDownIsFreeForTheUserChannel() {
        let diagnosis = Diagnosis(of: inventory { $0.adapters = [adapter(0, [])] }, for: nil)
        #expect(diagnosis.findings == groundwork + [Finding(.good, "hci0 is down and free for the user channel")])
        #expect(diagnosis.problems == 0)
    }

    @Test("An adapter that is up is held by bluetoothd, if that runs, or by another program")
    func adapterThatIsUpIsHeldByAnotherProgram() {
        let held = Diagnosis(
            of: inventory {
                $0.adapters = [adapter(0, .up)]
                $0.bluetoothDaemon = 321
            },
            for: nil
        )
        #expect(
            held.findings.last
                == Finding(
                    .problem,
                    "hci0 is up: bluetoothd (process 321) has it",
                    advice: "`systemctl stop bluetooth` and `hciconfig hci0 down`, or try --adapter 'hci0?channel=raw'"
                )
        )
        #expect(held.problems == 1)
        let other = Diagnosis(of: inventory { $0.adapters = [adapter(0, .up)] }, for: nil)
        #expect(other.findings.last?.text == "hci0 is up: the kernel or another program has it")
    }

    @Test("Without a named adapter, the diagnosis is about the default one, and others cause warnings only")
    func defaultAdapterIsDiagnosed() {
        let free = Diagnosis(of: inventory { $0.adapters = [adapter(0, []), adapter(1, .up)] }, for: nil)
        #expect(free.findings.map(\.severity) == [.good, .good, .good, .good, .warning])
        #expect(free.problems == 0)
        let held = Diagnosis(of: inventory { $0.adapters = [adapter(0, .up), adapter(1, [])] }, for: nil)
        #expect(held.findings.map(\.severity) == [.good, .good, .good, .problem, .good])
    }

    @Test("If the default adapter does not exist, the advice names the options that name another one")
    func missingDefaultAdapterIsAProblem() {
        let diagnosis = Diagnosis(of: inventory { $0.adapters = [adapter(1, []), adapter(2, .up)] }, for: nil)
        #expect(diagnosis.problems == 1)
        #expect(
            diagnosis.findings.last
                == Finding(
                    .problem,
                    "there is no adapter hci0, which commands use if none is named",
                    advice: "name one of those there are with --adapter or BLE_ADAPTER: hci1, hci2"
                )
        )
    }

    @Test("A problem with an adapter that was not requested is only a warning")
    func otherAdaptersCauseWarningsOnly() {
        let diagnosis = Diagnosis(
            of: inventory { $0.adapters = [adapter(0, []), adapter(1, .up)] },
            for: .hci(index: 0, channel: .user)
        )
        #expect(diagnosis.findings.last?.severity == .warning)
        #expect(diagnosis.problems == 0)
    }

    @Test("The adapter auto may be up, unless bluetoothd has it, because it is brought down")
    func automaticAdapterMayBeUp() {
        let diagnosis = Diagnosis(of: inventory { $0.adapters = [adapter(0, .up)] }, for: .automatic)
        #expect(
            diagnosis.findings.last
                == Finding(
                    .warning,
                    "hci0 is up: the kernel or another program has it",
                    advice: "--adapter auto brings it down when it opens it; if that fails, stop the other program"
                )
        )
        #expect(diagnosis.problems == 0)
        let held = Diagnosis(
            of: inventory {
                $0.adapters = [adapter(0, .up)]
                $0.bluetoothDaemon = 321
            },
            for: .automatic
        )
        #expect(held.problems == 1)
        let named = Diagnosis(of: inventory { $0.adapters = [adapter(0, .up)] }, for: .hci(index: 0, channel: .user))
        #expect(named.problems == 1)
    }

    @Test("The raw channel needs its own capability and an adapter that is up")
    func rawChannelNeedsItsCapabilityAndAnAdapterThatIsUp() {
        let diagnosis = Diagnosis(
            of: inventory {
                $0.adapters = [adapter(0, [])]
                $0.canUseRawSockets = false
                $0.canAdministerNetwork = false
            },
            for: .hci(index: 0, channel: .raw)
        )
        #expect(diagnosis.findings.map(\.severity) == [.good, .warning, .problem, .problem])
        #expect(
            diagnosis.findings.last
                == Finding(.problem, "hci0 is down", advice: "`hciconfig hci0 up` for the raw channel")
        )
    }

    @Test("A blocked radio is unblocked by rfkill or by a switch")
    func blockedRadioGetsAdviceForRfkillOrTheSwitch() {
        for (byHardware, advice) in [(false, "`rfkill unblock bluetooth`"), (true, "turn the switch")] {
            let diagnosis = Diagnosis(
                of: inventory {
                    var adapter = adapter(0, [])
                    adapter.radioBlock = .init(bySoftware: true, byHardware: byHardware)
                    $0.adapters = [adapter]
                },
                for: nil
            )
            #expect(diagnosis.problems == 1)
            #expect(diagnosis.findings.first { $0.severity == .problem }?.advice == advice)
        }
    }

    @Test("A missing adapter is a problem, whose text names the existing ones")
    func missingAdapterIsAProblemThatNamesTheExistingOnes() {
        let diagnosis = Diagnosis(
            of: inventory { $0.adapters = [adapter(0, []), adapter(2, [])] },
            for: .hci(index: 1, channel: .user)
        )
        #expect(
            diagnosis.findings.last
                == Finding(.problem, "there is no adapter hci1", advice: "use one of those there are: hci0, hci2")
        )
    }

    @Test("A missing address is a problem, whose text has the addresses to copy")
    func missingAddressIsAProblemWithTheAddressesToCopy() {
        var known = adapter(0, [])
        known.address = DeviceAddress(0x001A_7DDA_7113, isRandom: false)
        let adapters = [known, adapter(2, .up)]
        func diagnosis(_ address: UInt64) -> Diagnosis {
            let wanted = AdapterSpecification.address(DeviceAddress(address, isRandom: false), channel: .user)
            return Diagnosis(of: inventory { $0.adapters = adapters }, for: wanted)
        }
        #expect(
            diagnosis(1).findings.last
                == Finding(
                    .problem,
                    "there is no adapter with the address 00:00:00:00:00:01",
                    advice: "use one of those there are: hci0 (00:1A:7D:DA:71:13), hci2"
                )
        )
        #expect(diagnosis(0x001A_7DDA_7113).problems == 0)
        #expect(Diagnosis(of: inventory { $0.adapters = adapters }, for: .automatic).problems == 0)
    }

    @Test("Without any adapter, the other ways to a controller are named")
    func withoutAdapterOtherWaysAreNamed() {
        let diagnosis = Diagnosis(of: inventory { _ in }, for: nil)
        #expect(
            diagnosis.findings.last
                == Finding(
                    .problem,
                    "the kernel has no Bluetooth adapter",
                    advice: "plug one in and see `dmesg`, "
                        + "or use --adapter tcp:HOST:PORT, unix:PATH, serial:PATH,BAUD or virtual"
                )
        )
    }

    @Test("Missing kernel features do not matter for a controller that is reached without them")
    func kernelFeaturesDoNotMatterForOtherTransports() {
        let diagnosis = Diagnosis(
            of: inventory { $0.socketError = .bluetoothUnavailable },
            for: .tcp(host: "127.0.0.1", port: 6402)
        )
        #expect(diagnosis.findings.first?.text == "the adapter is tcp:127.0.0.1:6402: nothing is needed of the kernel")
        #expect(diagnosis.problems == 0)
    }

    @Test("A controller on a socket is a problem if it cannot be opened")
    func controllerThatCannotBeOpenedIsAProblem() async throws {
        let missing = AdapterSpecification.unix(path: "/nonexistent/controller")
        let probed = await missing.probe(timeout: .seconds(1))
        let opening = try #require(probed)
        let failed = Diagnosis(of: inventory { _ in }, for: missing, opening: opening)
        #expect(failed.problems == 1)
        #expect(failed.findings[1].text == "unix:/nonexistent/controller cannot be opened")
        #expect(failed.findings[1].severity == .problem && failed.findings[1].advice != nil)
        let opened = Diagnosis(of: inventory { _ in }, for: missing, opening: .success(()))
        #expect(opened.problems == 0 && opened.findings[1].severity == .good)
        let virtual = await AdapterSpecification.virtual(name: "").probe()
        #expect(virtual.map { _ in true } == nil)
    }

    @Test("A finding is a line of JSON, or one of text with its advice below")
    func findingIsALineOfJSONOrText() {
        let finding = Finding(.problem, "hci0 is down", advice: "bring it up")
        #expect(
            finding.json.description
                == #"{"event":"finding","severity":"problem","text":"hci0 is down","advice":"bring it up"}"#
        )
        #expect(finding.lines == ["✗ hci0 is down", "    bring it up"])
        #expect(Finding(.good, "fine").lines == ["✓ fine"])
    }

    @Test("An adapter is a line of JSON or a row of a table")
    func adapterIsALineOfJSONOrARow() {
        var up = adapter(0, .up)
        up.address = DeviceAddress(0x0012_3456_789A, isRandom: false)
        up.bus = .usb
        let row = AdapterRow(adapter: up, bluetoothDaemon: 12)
        #expect(
            row.json.description == #"{"adapter":"hci0","address":"00:12:34:56:78:9A","bus":"usb","state":"up","#
                + #""heldBy":"bluetoothd","blocked":null}"#
        )
        #expect(row.cells == ["hci0", "00:12:34:56:78:9A", "usb", "up", "bluetoothd", "no"])
        #expect(AdapterRow(adapter: adapter(1, nil)).cells == ["hci1", "-", "-", "unknown", "-", "no"])
    }
}
