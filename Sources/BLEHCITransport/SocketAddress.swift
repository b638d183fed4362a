import Glibc

/// A socket's address of any family.
struct SocketAddress: Sendable {
    let family: Int32
    /// The sockaddr.
    private let bytes: [UInt8]

    private init(family: Int32, bytes: [UInt8]) {
        self.family = family
        self.bytes = bytes
    }

    /// Creates the address of a UNIX socket. Returns nil if the path is too long.
    init?(path: String) {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let name = Array(path.utf8) + [0]
        let fits = unsafe withUnsafeMutableBytes(of: &address.sun_path) { room in
            guard name.count <= room.count else { return false }
            unsafe room.copyBytes(from: name)
            return true
        }
        guard fits else { return nil }
        self.init(family: AF_UNIX, bytes: unsafe withUnsafeBytes(of: &address) { unsafe Array($0) })
    }

    /// Returns the addresses of a host, in the system's order of preference, or none if the host is unknown. It fails
    /// if the system could not find out: with EAGAIN if a later lookup may succeed.
    ///
    /// - Parameter isNumeric: whether only an address is accepted, not a name. Then the call does not wait.
    static func all(ofHost host: String, port: UInt16, isNumeric: Bool = false) -> Result<[SocketAddress], Errno> {
        var hints = unsafe addrinfo()
        if isNumeric { unsafe hints.ai_flags = AI_NUMERICHOST }
        unsafe hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var list: UnsafeMutablePointer<addrinfo>?
        switch unsafe getaddrinfo(host, String(port), &hints, &list) {
        case 0: break
        case EAI_SYSTEM: return .failure(Errno(code: errno))
        case EAI_MEMORY: return .failure(Errno(code: ENOMEM))
        case EAI_AGAIN: return .failure(Errno(code: EAGAIN))
        default: return .success([])
        }
        defer { unsafe freeaddrinfo(list) }
        var addresses: [SocketAddress] = []
        var entry = unsafe list
        while let address = unsafe entry {
            if let sockaddr = unsafe address.pointee.ai_addr {
                let bytes = unsafe UnsafeRawBufferPointer(start: sockaddr, count: Int(address.pointee.ai_addrlen))
                addresses.append(SocketAddress(family: unsafe address.pointee.ai_family, bytes: unsafe Array(bytes)))
            }
            unsafe entry = address.pointee.ai_next
        }
        return .success(addresses)
    }

    func connect(_ descriptor: Int32) -> Int {
        unsafe withSockaddr { unsafe Int(Glibc.connect(descriptor, $0, $1)) }
    }

    func bind(_ descriptor: Int32) -> Int {
        unsafe withSockaddr { unsafe Int(Glibc.bind(descriptor, $0, $1)) }
    }

    private func withSockaddr(_ body: (UnsafePointer<sockaddr>?, socklen_t) -> Int) -> Int {
        unsafe bytes.withUnsafeBytes { raw in
            unsafe body(raw.assumingMemoryBound(to: sockaddr.self).baseAddress, socklen_t(raw.count))
        }
    }
}
