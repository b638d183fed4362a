import BLEHCITransport

/// The possible obstacles between this process and a controller.
struct Diagnosis: Hashable, Sendable {
    var findings: [Finding] = []

    var problems: Int { findings.count { $0.severity == .problem } }

    /// - Parameters:
    ///   - specification: the controller to use; nil if the user names none, so that commands use the default.
    ///   - opening: whether a controller that is not of the kernel can be opened; nil if that was not tried.
    init(
        of inventory: AdapterInventory,
        for specification: AdapterSpecification?,
        opening: Result<Void, TransportError>? = nil
    ) {
        var channel = AdapterSpecification.Channel.user
        var wanted: Int?
        var usesKernel = true
        switch specification ?? Diagnosis.usual {
        case .hci(let index, let named)?: (wanted, channel) = (index, named)
        case .address(_, let named)?:
            channel = named
            wanted = (try? specification?.candidates(in: inventory))?.first?.index ?? -1
        case .automatic?: wanted = (try? specification?.candidates(in: inventory))?.first?.index
        case nil: break
        case let other?:
            usesKernel = false
            findings.append(Finding(.good, "the adapter is \(other): nothing is needed of the kernel"))
        }
        addKernel(inventory, channel)
        if inventory.adapters.isEmpty, inventory.socketError == nil {
            findings.append(
                Finding(
                    .problem,
                    "the kernel has no Bluetooth adapter",
                    advice:
                        "plug one in and see `dmesg`, or use --adapter tcp:HOST:PORT, unix:PATH, serial:PATH,BAUD or virtual"
                )
            )
        }
        for adapter in inventory.adapters {
            add(
                adapter,
                inventory,
                channel,
                isWanted: wanted == nil || wanted == adapter.index,
                isBroughtDown: specification == .automatic
            )
        }
        if let wanted, !inventory.adapters.isEmpty, !inventory.adapters.contains(where: { $0.index == wanted }) {
            findings.append(Diagnosis.missing(wanted, specification, inventory))
        }
        guard !usesKernel else { return }
        for index in findings.indices where findings[index].severity == .problem { findings[index].severity = .warning }
        guard let specification, let opening else { return }
        findings.insert(Diagnosis.finding(about: opening, specification), at: 1)
    }

    /// The controller that commands use if the user names none, whether or not it exists.
    private static var usual: AdapterSpecification? {
        try? AdapterSpecification.resolve(nil, environment: nil, hasAdapterZero: { true })
    }

    private static func missing(
        _ index: Int,
        _ specification: AdapterSpecification?,
        _ inventory: AdapterInventory
    ) -> Finding {
        let names = inventory.adapters.map(\.nameWithAddress).joined(separator: ", ")
        return switch specification {
        case .address(let address, _)?:
            Finding(
                .problem,
                "there is no adapter with the address \(address)",
                advice: "use one of those there are: \(names)"
            )
        case nil:
            Finding(
                .problem,
                "there is no adapter hci\(index), which commands use if none is named",
                advice: "name one of those there are with --adapter or BLE_ADAPTER: \(names)"
            )
        default:
            Finding(.problem, "there is no adapter hci\(index)", advice: "use one of those there are: \(names)")
        }
    }

    private static func finding(
        about opening: Result<Void, TransportError>,
        _ specification: AdapterSpecification
    ) -> Finding {
        switch opening {
        case .success:
            Finding(.good, "\(specification) can be opened; `ble info` checks whether a controller answers")
        case .failure(let error):
            Finding(.problem, "\(specification) cannot be opened", advice: "\(error)")
        }
    }

    private mutating func addKernel(_ inventory: AdapterInventory, _ channel: AdapterSpecification.Channel) {
        if let error = inventory.socketError {
            findings.append(Finding(.problem, "HCI sockets: \(error)"))
        } else {
            findings.append(Finding(.good, "the kernel has HCI sockets"))
        }
        let grant = "run as root, or `setcap cap_net_admin,cap_net_raw+eip` on the program"
        findings.append(
            inventory.canAdministerNetwork
                ? Finding(.good, "CAP_NET_ADMIN is there: the user channel may be used")
                : Finding(
                    channel == .user ? .problem : .warning,
                    "CAP_NET_ADMIN is missing: the user channel may not be used",
                    advice: grant
                )
        )
        findings.append(
            inventory.canUseRawSockets
                ? Finding(.good, "CAP_NET_RAW is there: the raw channel may be used")
                : Finding(
                    channel == .raw ? .problem : .warning,
                    "CAP_NET_RAW is missing: the raw channel may not be used",
                    advice: grant
                )
        )
    }

    /// - Parameters:
    ///   - isWanted: whether the adapter is the controller to use.
    ///   - isBroughtDown: whether an adapter that is up is brought down before its use.
    private mutating func add(
        _ adapter: KernelAdapter,
        _ inventory: AdapterInventory,
        _ channel: AdapterSpecification.Channel,
        isWanted: Bool,
        isBroughtDown: Bool
    ) {
        let name = adapter.name
        let named = adapter.nameWithAddress
        if let block = adapter.radioBlock, block.byHardware || block.bySoftware {
            findings.append(
                Finding(
                    isWanted ? .problem : .warning,
                    "\(named) is blocked by \(block.byHardware ? "a switch on the device" : "rfkill")",
                    advice: block.byHardware ? "turn the switch" : "`rfkill unblock bluetooth`"
                )
            )
        }
        guard adapter.flags != nil else {
            findings.append(Finding(.warning, "\(named) exists, but the kernel does not report its state"))
            return
        }
        switch (adapter.isUp, inventory.bluetoothDaemon, channel) {
        case (true, _, .raw): findings.append(Finding(.good, "\(named) is up, as the raw channel needs it"))
        case (false, _, .raw):
            findings.append(
                Finding(
                    isWanted ? .problem : .warning,
                    "\(named) is down",
                    advice: "`hciconfig \(name) up` for the raw channel"
                )
            )
        case (true, let daemon?, .user):
            findings.append(
                Finding(
                    isWanted ? .problem : .warning,
                    "\(named) is up: bluetoothd (process \(daemon)) has it",
                    advice:
                        "`systemctl stop bluetooth` and `hciconfig \(name) down`, or try --adapter '\(name)?channel=raw'"
                )
            )
        case (true, nil, .user):
            findings.append(
                Finding(
                    isWanted && !isBroughtDown ? .problem : .warning,
                    "\(named) is up: the kernel or another program has it",
                    advice: isBroughtDown
                        ? "--adapter auto brings it down when it opens it; if that fails, stop the other program"
                        : "`hciconfig \(name) down`, or stop the other program"
                )
            )
        case (false, let daemon?, .user):
            findings.append(
                Finding(
                    .warning,
                    "\(named) is down and free, but bluetoothd (process \(daemon)) runs and may bring it up",
                    advice: "`systemctl stop bluetooth`"
                )
            )
        case (false, nil, .user): findings.append(Finding(.good, "\(named) is down and free for the user channel"))
        }
    }
}

extension KernelAdapter {
    /// The name with the address, if it is known, as in "hci0 (00:1A:7D:DA:71:13)".
    fileprivate var nameWithAddress: String { address.map { "\(name) (\($0))" } ?? name }
}
