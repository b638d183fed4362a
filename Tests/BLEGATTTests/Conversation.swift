import BLEATT
import BLEByteCoding
import BLEGATT
import BluetoothTypes
import Testing

/// A client and a server on one bearer, with a record of the requests.
final class Conversation {
    let server: Server
    private(set) var session: ServerSession
    private(set) var client = Client()
    /// The client's requests since the connection was made.
    private(set) var requests: [[UInt8]] = []
    /// The caches that the client output, in their order.
    private(set) var caches: [DatabaseCache?] = []
    /// The last cache that the client output.
    var cache: DatabaseCache? { caches.last ?? nil }
    var mtu = 64
    /// Called with each request before the server receives it.
    var onRequest: (([UInt8]) -> Void)?
    /// Called with each procedure that has ended.
    var onEnd: ((ProcedureRun) -> Void)?

    init(_ services: [ServiceDefinition], hasHash: Bool = true) throws {
        server = hasHash ? Server(cmac: Conversation.digest) : Server()
        _ = try server.publish(services)
        session = ServerSession(server: server)
        begin()
    }

    /// A replacement of AES-CMAC that gives different values for different messages. The tests need no more.
    static func digest(key: [UInt8], message: [UInt8]) -> [UInt8] {
        var state: UInt64 = 0xCBF2_9CE4_8422_2325
        var digest: [UInt8] = []
        for round in UInt8(0)..<16 {
            for octet in message + [round] {
                state ^= UInt64(octet)
                state = state &* 0x100_0000_01B3
            }
            digest.append(UInt8(truncatingIfNeeded: state >> 32))
        }
        return digest
    }

    /// The client reconnects and keeps its cache; the server has stored nothing.
    func reconnect() {
        client.close()
        client = Client()
        session = ServerSession(server: server)
        requests = []
        begin()
    }

    private func begin() {
        session.mtu = mtu
    }

    /// Exchanges PDUs until the client has no further request.
    func run() {
        var buffer = PacketBuffer()
        takeOutputs()
        var opcode = nextRequest(into: &buffer)
        while opcode != nil {
            let request = [UInt8](copying: buffer.bytes)
            requests.append(request)
            onRequest?(request)
            var response = PacketBuffer()
            guard session.receive(request.rawSpan, into: &response) == .respond else {
                Issue.record("no response to \(request.hexadecimal)")
                return
            }
            buffer = PacketBuffer()
            opcode = client.receive(response.bytes, mtu: mtu, into: &buffer)
            if opcode == nil { opcode = nextRequest(into: &buffer) }
        }
    }

    /// Takes the outputs and starts the next procedure, until one has written a request.
    private func nextRequest(into buffer: inout PacketBuffer) -> ATTOpcode? {
        repeat {
            if let opcode = client.nextRequest(mtu: mtu, into: &buffer) { return opcode }
        } while takeOutputs()
        return nil
    }

    @discardableResult
    private func takeOutputs() -> Bool {
        var hasOutput = false
        while let output = client.takeOutput() {
            hasOutput = true
            switch output {
            case .ended(let run): onEnd?(run)
            case .cacheChanged(let cache): caches.append(cache)
            case .securityRequired: Issue.record("a client that is not to elevate wants to")
            }
        }
        return hasOutput
    }

    /// Performs a procedure, and everything else that the client has to do.
    func perform<P: ClientProcedure>(_ procedure: P) -> Result<P.Output, ClientError>? {
        let run = client.perform(procedure)
        self.run()
        return run.outcome
    }

    /// Makes the client validate its cache of the server's database.
    func validate() {
        client.validate(cache)
        run()
    }

    /// The server indicates Service Changed, and the client confirms.
    func indicateServiceChanged(_ range: HandleRange = .all) throws {
        let handle = try #require(server.serviceChanged)
        var buffer = PacketBuffer()
        let value = [range.start.rawValue, range.end.rawValue].flatMap {
            [UInt8(truncatingIfNeeded: $0), UInt8(truncatingIfNeeded: $0 >> 8)]
        }
        session.indicate(value.rawSpan, of: handle, into: &buffer)
        session.serviceChangedConfirmed(revision: session.databaseRevision)
        client.indicationReceived(from: handle)
        run()
    }
}

extension TypedProcedureRun {
    /// The outcome of the procedure; nil while it runs.
    var outcome: Result<P.Output, ClientError>? {
        guard hasEnded else { return nil }
        do throws(ClientError) {
            return .success(try output())
        } catch {
            return .failure(error)
        }
    }
}

extension Client {
    /// Takes all outputs, which are changes of the cache, and returns the caches.
    func takeCaches() -> [DatabaseCache?] {
        var caches: [DatabaseCache?] = []
        while let output = takeOutput() {
            switch output {
            case .cacheChanged(let cache): caches.append(cache)
            case .ended, .securityRequired: Issue.record("only caches are expected")
            }
        }
        return caches
    }
}
