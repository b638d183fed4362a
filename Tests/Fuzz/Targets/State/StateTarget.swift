import BLE
import BLEKeyStore
import Foundation

/// Fuzzes the files of a state directory: a state file, the caches of its bonds, and exported bonds.
///
/// The first packet with choice 0 is the state file. The packets with choice 1 are the caches of its bonds in their
/// order, and each packet with choice 2 is a document of exported bonds.
func fuzzState(_ input: [UInt8]) {
    let packets = Script(input).packets
    for packet in packets where packet.choice & 3 == 2 { readTwice(export: packet.octets) }
    guard let document = packets.first(where: { $0.choice & 3 == 0 }) else { return }
    let folder = StateFolder()
    defer { folder.remove() }
    let caches = packets.filter { $0.choice & 3 == 1 }.map(\.octets)
    StateFuzzing(folder: folder, original: document.octets, caches: caches).run()
}

/// A valid document of bonds is equal after it is written and read again.
private func readTwice(export octets: [UInt8]) {
    guard let export = try? BondExport(reading: octets) else { return }
    guard let again = try? BondExport(reading: export.octets) else { fatalError("an export that cannot be read") }
    require(again.host == export.host, "another host's name after an export was read")
    require(again.security == export.security, "other bonds after an export was read")
    require(again.octets == export.octets, "an export that differs when it is written again")
}

/// A temporary directory for one input. Its name begins with the identifier of the process, because a process that has
/// found a fault leaves it behind, and `Tests/Fuzz/run` removes it.
struct StateFolder {
    let path: String

    init() {
        let memory = "/dev/shm"
        let parent = FileManager.default.isWritableFile(atPath: memory) ? memory : NSTemporaryDirectory()
        let process = ProcessInfo.processInfo.processIdentifier
        path = parent + "/swift-ble-fuzz-\(process)-\(UUID().uuidString)"
    }

    func remove() {
        try? FileManager.default.removeItem(atPath: path)
    }

    /// The contents of a file; nil if it does not exist.
    func contents(of name: String) -> [UInt8]? {
        ((try? StateFile(directory: path, name: name).read()) ?? nil).map { [UInt8]($0.data) }
    }

    /// The names of all entries, in their order.
    var names: [String] {
        ((try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []).sorted()
    }
}
