import CBLEBluetooth
import Glibc

/// A socket that is bound and listening.
struct ListeningSocket: Sendable {
    let descriptor: OwnedDescriptor
    let address: ListeningAddress
    let file: SocketFile?

    init(_ address: ListeningAddress) throws(ListeningError) {
        switch address {
        case .unix(let path): self = try ListeningSocket.unix(path)
        case .tcp(let host, let port): self = try ListeningSocket.tcp(host, port)
        }
    }

    private init(_ descriptor: OwnedDescriptor, _ address: ListeningAddress, _ file: SocketFile? = nil) {
        self.descriptor = descriptor
        self.address = address
        self.file = file
    }

    /// Accepts a waiting connection. Returns its descriptor, which does not block, or a negative errno.
    static func accept(_ descriptor: OwnedDescriptor) -> Int32 {
        ble_accept(descriptor.number)
    }

    private static func unix(_ path: String) throws(ListeningError) -> ListeningSocket {
        let address = ListeningAddress.unix(path: path)
        guard let socketAddress = SocketAddress(path: path) else { throw .failed(address, errno: ENAMETOOLONG) }
        let descriptor = try open(address, AF_UNIX)
        var failure = bind(descriptor, to: socketAddress)
        if failure == EADDRINUSE {
            // Another process may have removed the file by now.
            if case .failure(let error) = SocketFile.read(path), error.code != ENOENT { throw .occupied(path: path) }
            guard try isStale(socketAddress, address) else { throw .addressInUse(address) }
            guard unsafe unlink(path) == 0 || errno == ENOENT else { throw ListeningError(address, errno: errno) }
            failure = bind(descriptor, to: socketAddress)
        }
        guard failure == 0 else { throw ListeningError(address, errno: failure) }
        // Without its identity, the file could not be removed at the end. It is not removed here either: it may be the
        // file of another process by now.
        let file: SocketFile
        switch SocketFile.read(path) {
        case .success(let own): file = own
        case .failure(Errno(code: ENOTSOCK)): throw .occupied(path: path)
        case .failure(let error): throw ListeningError(address, errno: error.code)
        }
        failure = listen(descriptor)
        guard failure == 0 else {
            file.remove()
            throw ListeningError(address, errno: failure)
        }
        return ListeningSocket(descriptor, address, file)
    }

    /// Returns whether no process listens on an existing socket, as after its process was killed.
    private static func isStale(
        _ socketAddress: SocketAddress,
        _ address: ListeningAddress
    ) throws(ListeningError) -> Bool {
        let descriptor = try open(address, AF_UNIX)
        return switch uninterrupted({ socketAddress.connect(descriptor.number) }) {
        case .failure(let error): error.code == ECONNREFUSED || error.code == ENOENT
        case .success: false
        }
    }

    private static func tcp(_ host: String, _ port: UInt16) throws(ListeningError) -> ListeningSocket {
        let address = ListeningAddress.tcp(host: host, port: port)
        let candidates: [SocketAddress]
        switch SocketAddress.all(ofHost: host, port: port) {
        case .success(let addresses): candidates = addresses
        case .failure(let error) where error.code == EAGAIN: throw .hostLookupFailed(host)
        case .failure(let error): throw .failed(address, errno: error.code)
        }
        return try tcp(host, port, on: candidates)
    }

    /// Listens on the first of a host's addresses on which that is possible.
    static func tcp(
        _ host: String,
        _ port: UInt16,
        on candidates: [SocketAddress]
    ) throws(ListeningError) -> ListeningSocket {
        var failure = ListeningError.unknownHost(host)
        for candidate in candidates {
            do throws(ListeningError) {
                return try tcp(.tcp(host: host, port: port), host, candidate)
            } catch {
                failure = error
            }
        }
        throw failure
    }

    private static func tcp(
        _ address: ListeningAddress,
        _ host: String,
        _ socketAddress: SocketAddress
    ) throws(ListeningError) -> ListeningSocket {
        let descriptor = try open(address, socketAddress.family)
        _ = ble_reuse_address(descriptor.number)
        var failure = bind(descriptor, to: socketAddress)
        if failure == 0 { failure = listen(descriptor) }
        let port = failure == 0 ? ble_tcp_port(descriptor.number) : -failure
        guard port > 0 else { throw ListeningError(address, errno: -port) }
        return ListeningSocket(descriptor, .tcp(host: host, port: UInt16(clamping: port)))
    }

    private static func open(_ address: ListeningAddress, _ family: Int32) throws(ListeningError) -> OwnedDescriptor {
        let descriptor = OwnedDescriptor(ble_stream_socket(family))
        guard descriptor.number >= 0 else { throw .failed(address, errno: -descriptor.number) }
        return descriptor
    }

    /// Returns the errno, or zero on success.
    private static func bind(_ descriptor: OwnedDescriptor, to address: SocketAddress) -> Int32 {
        if case .failure(let error) = uninterrupted({ address.bind(descriptor.number) }) { error.code } else { 0 }
    }

    /// Returns the errno, or zero on success.
    private static func listen(_ descriptor: OwnedDescriptor) -> Int32 {
        if case .failure(let error) = uninterrupted({ Int(Glibc.listen(descriptor.number, 64)) }) {
            error.code
        } else {
            0
        }
    }
}

/// The file of a UNIX socket, distinguished from another file that may have replaced it.
struct SocketFile: Sendable {
    private let path: String
    private let device: dev_t
    private let number: ino_t

    /// Reads the file at the path. Fails with `ENOTSOCK` if it is not a socket.
    static func read(_ path: String) -> Result<SocketFile, Errno> {
        var status = stat()
        guard unsafe lstat(path, &status) == 0 else { return .failure(Errno(code: errno)) }
        guard status.st_mode & S_IFMT == S_IFSOCK else { return .failure(Errno(code: ENOTSOCK)) }
        return .success(SocketFile(path: path, device: status.st_dev, number: status.st_ino))
    }

    /// Removes the file, unless another file has replaced it.
    func remove() {
        guard case .success(let now) = SocketFile.read(path), now.device == device, now.number == number else { return }
        _ = unsafe unlink(path)
    }
}
