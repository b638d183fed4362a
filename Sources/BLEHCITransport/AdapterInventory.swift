import BluetoothTypes
import CBLEBluetooth
import Glibc

/// The ways to reach a controller on this machine, and the obstacles.
public struct AdapterInventory: Hashable, Sendable {
    /// The kernel's adapters, ordered by index.
    public var adapters: [KernelAdapter] = []
    /// The reason why the kernel provides no HCI socket, or nil if it does.
    public var socketError: TransportError?
    /// The process number of a running bluetoothd. It brings adapters up, which blocks their user channels.
    public var bluetoothDaemon: Int32?
    /// Whether the process has the capability for the user channel (CAP_NET_ADMIN).
    public var canAdministerNetwork = false
    /// Whether the process has the capability to send any packet on the raw channel (CAP_NET_RAW).
    public var canUseRawSockets = false

    /// Creates an empty inventory.
    public init() {}

    /// Reads the inventory from the kernel.
    public static func read() -> AdapterInventory {
        var inventory = AdapterInventory(fileSystem: "")
        let socket = OwnedDescriptor(ble_hci_socket())
        if socket.number < 0 {
            inventory.socketError = .hciSocket(errno: -socket.number, index: 0)
        } else {
            inventory.addAnswers(of: socket)
        }
        return inventory
    }

    /// Reads `/proc` and `/sys` below the folder `root`.
    init(fileSystem root: String) {
        for name in entries(of: root + "/sys/class/bluetooth") {
            if let index = adapterIndex(name) { adapters.append(KernelAdapter(index: index)) }
        }
        adapters.sort { $0.index < $1.index }
        readRadioBlocks(root + "/sys/class/rfkill/")
        readCapabilities(root + "/proc/self/status")
        for name in entries(of: root + "/proc") {
            guard let process = Int32(name), line(root + "/proc/\(name)/comm") == "bluetoothd" else { continue }
            bluetoothDaemon = process
            break
        }
    }

    private mutating func readRadioBlocks(_ folder: String) {
        for name in entries(of: folder) {
            let path = folder + name
            guard line(path + "/type") == "bluetooth", let adapter = line(path + "/name").flatMap(adapterIndex),
                let position = adapters.firstIndex(where: { $0.index == adapter })
            else { continue }
            adapters[position].radioBlock = KernelAdapter.RadioBlock(
                bySoftware: line(path + "/soft") == "1",
                byHardware: line(path + "/hard") == "1"
            )
        }
    }

    /// Reads the effective capabilities: a hexadecimal mask. CAP_NET_ADMIN is bit 12 and CAP_NET_RAW is bit 13.
    private mutating func readCapabilities(_ path: String) {
        guard let text = contents(path),
            let field = text.split(separator: "\n").first(where: { $0.hasPrefix("CapEff:") }),
            let digits = field.split(whereSeparator: { $0 == "\t" || $0 == " " }).last,
            let mask = UInt64(digits, radix: 16)
        else { return }
        canAdministerNetwork = mask >> 12 & 1 == 1
        canUseRawSockets = mask >> 13 & 1 == 1
    }

    private mutating func addAnswers(of socket: OwnedDescriptor) {
        var indices = [UInt16](repeating: 0, count: 32)
        let count = unsafe ble_hci_list(socket.number, &indices)
        // An adapter that was removed remains in the file system for a moment. A full list may lack some adapters.
        if count >= 0, count < indices.count {
            adapters.removeAll { !indices.prefix(Int(count)).contains(UInt16(clamping: $0.index)) }
        }
        for index in indices.prefix(Int(max(count, 0))) {
            var information = ble_hci_information()
            guard unsafe ble_hci_get_information(socket.number, index, &information) >= 0 else { continue }
            let position = adapters.firstIndex { $0.index == Int(index) } ?? adapters.endIndex
            if position == adapters.endIndex { adapters.append(KernelAdapter(index: Int(index))) }
            if information.address != 0 {
                adapters[position].address = DeviceAddress(information.address, isRandom: false)
            }
            adapters[position].bus = KernelAdapter.Bus(rawValue: information.bus)
            adapters[position].flags = KernelAdapter.Flags(rawValue: information.flags)
        }
        adapters.sort { $0.index < $1.index }
        if adapters.contains(where: \.lacksAddress), let management = ManagementSocket.open() {
            addAddresses(from: management)
        }
    }

    /// Adds the addresses that only the management interface reports, as of some drivers before the adapter is up.
    mutating func addAddresses(from management: ManagementSocket) {
        for position in adapters.indices where adapters[position].lacksAddress {
            let information = management.readInformation(index: UInt16(clamping: adapters[position].index))
            adapters[position].address = information?.address
        }
    }
}

extension KernelAdapter {
    /// Whether the kernel has answered for the adapter, but not with its address.
    fileprivate var lacksAddress: Bool { address == nil && flags != nil }
}

// MARK: Files

/// Returns the number in "hci0", or nil for other names, such as the connection "hci0:42" beside the adapters.
private func adapterIndex(_ name: String) -> Int? {
    name.hasPrefix("hci") ? UInt16(name.dropFirst(3)).map(Int.init) : nil
}

/// Returns the names in a folder, or none if it cannot be read.
private func entries(of folder: String) -> [String] {
    guard let directory = unsafe opendir(folder) else { return [] }
    defer { unsafe _ = closedir(directory) }
    var names: [String] = []
    while let entry = unsafe readdir(directory) {
        let name = unsafe withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
            unsafe String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
        }
        if name != ".", name != ".." { names.append(name) }
    }
    return names
}

/// Returns the start of a small file, up to 16 KiB.
private func contents(_ path: String) -> String? {
    let file = OwnedDescriptor(unsafe ble_open(path, O_RDONLY | O_NONBLOCK, 0))
    guard file.number >= 0 else { return nil }
    var buffer = [UInt8](repeating: 0, count: 16 << 10)
    var end = 0
    while end < buffer.count, case .success(let count) = read(file.number, into: &buffer, from: end), count > 0 {
        end += count
    }
    return String(decoding: buffer.prefix(end), as: UTF8.self)
}

private func line(_ path: String) -> String? {
    contents(path)?.split(separator: "\n").first.map(String.init)
}
