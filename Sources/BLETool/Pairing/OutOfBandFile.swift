import BLE
import BLEProfiles
import BluetoothTypes
import Glibc

/// Out-of-band data as a file: `{"confirm": "32 digits", "random": "32 digits"}` for LE Secure Connections,
/// `{"temporaryKey": "32 digits"}` for LE legacy pairing. The most significant byte comes first, as the specification
/// writes numbers.
struct OutOfBandFile: Hashable, Sendable {
    let data: OutOfBandData

    init(data: OutOfBandData) {
        self.data = data
    }

    /// - Parameter path: the file; `-` is standard input.
    init(contentsOf path: String) async throws {
        let octets = try await File.read(path, followsLinks: false)
        do {
            self.init(data: try OutOfBandFile.data(in: JSON(parsing: octets)))
        } catch let error as JSONSyntaxError {
            throw FileError(path: path, problem: "\(error)")
        } catch let problem as ArgumentProblem {
            throw FileError(path: path, problem: "\(problem)")
        }
    }

    private static func data(in json: JSON) throws(ArgumentProblem) -> OutOfBandData {
        guard case .object(let members) = json else {
            throw ArgumentProblem("out of band data are an object, not \(json.kind)")
        }
        if let key = try number("temporaryKey", members) { return .temporaryKey(key) }
        guard let confirm = try number("confirm", members), let random = try number("random", members) else {
            throw ArgumentProblem("out of band data are \"confirm\" and \"random\", or \"temporaryKey\"")
        }
        return .secureConnections(confirm: confirm, random: random)
    }

    private static func number(_ key: String, _ members: [JSON.Member]) throws(ArgumentProblem) -> UInt128? {
        guard let value = members.first(where: { $0.key == key })?.value else { return nil }
        guard case .string(let text) = value, text.utf8.count == 32, let octets = [UInt8](hexadecimal: text) else {
            throw ArgumentProblem("\"\(key)\" is not a string of 32 hexadecimal digits")
        }
        return octets.reduce(0) { $0 << 8 | UInt128($1) }
    }

    private var json: JSON {
        switch data {
        case .temporaryKey(let key): ["temporaryKey": .string(digits(key))]
        case .secureConnections(let confirm, let random):
            ["confirm": .string(digits(confirm)), "random": .string(digits(random))]
        }
    }

    private func digits(_ number: UInt128) -> String { hexadecimalDigits(number, count: 32, uppercase: false) }

    /// Writes the file, and replaces an existing one. Only its owner can read it. A symbolic link is not followed, and
    /// a file of another user is not written.
    func write(to path: String) throws(FileError) {
        let descriptor = unsafe open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw unsafe FileError(path: path, problem: String(cString: strerror(errno))) }
        defer { close(descriptor) }
        var status = stat()
        guard unsafe fstat(descriptor, &status) == 0 else {
            throw unsafe FileError(path: path, problem: String(cString: strerror(errno)))
        }
        if status.st_mode & S_IFMT == S_IFREG {
            guard status.st_uid == geteuid() else { throw FileError(path: path, problem: "it belongs to another user") }
            guard fchmod(descriptor, 0o600) == 0, ftruncate(descriptor, 0) == 0 else {
                throw unsafe FileError(path: path, problem: String(cString: strerror(errno)))
            }
        }
        if let failure = Output.write(Array("\(json)\n".utf8), to: descriptor) {
            throw unsafe FileError(path: path, problem: String(cString: strerror(failure.errno)))
        }
    }
}
