import Dispatch
import Glibc

@testable import BLEHCITransport

/// The name of a host without an address. A part of a name has at most 63 bytes, so no server is asked for it.
let hostWithoutAddress = String(repeating: "a", count: 64)

/// The other end of a stream: a plain blocking descriptor that a test reads and writes.
struct Peer: Sendable {
    let descriptor: OwnedDescriptor

    func write(_ bytes: [UInt8]) {
        var rest = bytes[...]
        while !rest.isEmpty, case .success(let count) = BLEHCITransport.send(descriptor.number, Array(rest).rawSpan) {
            rest = rest.dropFirst(count)
        }
    }

    /// Reads `count` bytes, or fewer if the stream ends before.
    func read(count: Int) async -> [UInt8] {
        await offThread {
            var bytes = [UInt8](repeating: 0, count: count)
            var end = 0
            while end < count {
                let result = BLEHCITransport.read(descriptor.number, into: &bytes, from: end)
                guard case .success(let count) = result, count > 0 else { break }
                end += count
            }
            return Array(bytes.prefix(end))
        }
    }

    /// Reads the result of one call; from a socket that preserves packets, this is one packet.
    func readOnce() async -> [UInt8] {
        await offThread {
            var bytes = [UInt8](repeating: 0, count: 4096)
            guard case .success(let count) = BLEHCITransport.read(descriptor.number, into: &bytes, from: 0) else {
                return []
            }
            return Array(bytes.prefix(count))
        }
    }

    /// Ends the stream, as a disconnecting peer does.
    func hangUp() {
        _ = shutdown(descriptor.number, Int32(SHUT_RDWR))
    }
}

/// Runs blocking code outside the threads of Swift's tasks.
func offThread<Value: Sendable>(_ body: @escaping @Sendable () -> Value) async -> Value {
    await withCheckedContinuation { continuation in
        DispatchQueue.global().async { continuation.resume(returning: body()) }
    }
}

/// Makes two connected sockets. Calls on them do not block.
func makeSockets(preservingPackets: Bool = false) throws -> (Int32, Int32) {
    var ends: [Int32] = [-1, -1]
    let type = (preservingPackets ? SOCK_SEQPACKET : SOCK_STREAM).rawValue | SOCK_NONBLOCK.rawValue
    guard socketpair(AF_UNIX, Int32(type), 0, &ends) == 0 else { throw Errno(code: errno) }
    return (ends[0], ends[1])
}

/// A socket that listens for one transport.
struct Listener: Sendable {
    let specification: AdapterSpecification
    private let descriptor: OwnedDescriptor
    private let folder: TemporaryFolder?

    /// Listens on a free port of 127.0.0.1.
    static func tcp() -> Listener {
        let descriptor = OwnedDescriptor(socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0))
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
                _ = bind(descriptor.number, generic, length)
                _ = getsockname(descriptor.number, generic, &length)
            }
        }
        _ = listen(descriptor.number, 8)
        let port = UInt16(bigEndian: address.sin_port)
        return Listener(specification: .tcp(host: "127.0.0.1", port: port), descriptor: descriptor, folder: nil)
    }

    /// Listens on a path in a new folder.
    static func unix() -> Listener {
        at(SOCK_STREAM) { .unix(path: $0) }
    }

    /// Listens on a path in a new folder, on a socket that preserves packets.
    static func seqpacket() -> Listener {
        at(SOCK_SEQPACKET) { .seqpacket(path: $0) }
    }

    private static func at(_ type: __socket_type, _ specification: (String) -> AdapterSpecification) -> Listener {
        let folder = TemporaryFolder()
        let path = folder.path + "/hci"
        let descriptor = OwnedDescriptor(socket(AF_UNIX, Int32(type.rawValue), 0))
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: Array(path.utf8)) }
        withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
                _ = bind(descriptor.number, generic, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        _ = listen(descriptor.number, 8)
        return Listener(specification: specification(path), descriptor: descriptor, folder: folder)
    }

    func accept() async -> Peer {
        await offThread { Peer(descriptor: OwnedDescriptor(Glibc.accept(descriptor.number, nil, nil))) }
    }
}

/// A new folder for one test's files, which is removed with its last owner.
final class TemporaryFolder: Sendable {
    let path: String

    init() {
        var template = Array("/tmp/hci-transport-XXXXXX".utf8CString)
        path = template.withUnsafeMutableBufferPointer { String(cString: mkdtemp($0.baseAddress!)) }
    }

    deinit {
        TemporaryFolder.removeAll(at: path)
    }

    private static func removeAll(at path: String) {
        if let directory = opendir(path) {
            while let entry = readdir(directory) {
                let name = withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
                    String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
                }
                if name != ".", name != ".." { removeAll(at: path + "/" + name) }
            }
            closedir(directory)
        }
        remove(path)
    }
}
