import BluetoothHost
import FoundationEssentials

/// A document of its own with the bonds and the identity of a host.
package struct BondExport: Sendable {
    /// The host's name.
    package var host: String
    package var security: HostSecurityState

    package init(host: String, security: HostSecurityState) {
        self.host = host
        self.security = security
    }

    /// Decodes a document strictly: any error makes the whole document invalid.
    package init(reading octets: [UInt8]) throws(BondExportError) {
        do {
            let document = try JSONDecoder().decode(Document.self, from: Data(octets))
            host = document.host
            security = HostSecurityState(identity: document.identity?.identity, bonds: document.bonds.map(\.record))
        } catch {
            throw BondExportError(description: BondExport.problem(error))
        }
        var known: Set = [] as Set<String>
        for record in security.bonds {
            let peer = "\(record.bond.identity) (\(record.bond.identity.isRandom ? "random" : "public"))"
            guard known.insert(peer).inserted else {
                throw BondExportError(description: "there are two bonds with \(peer)")
            }
        }
    }

    private static func problem(_ error: any Error) -> String {
        if case DecodingError.dataCorrupted(let context) = error, context.codingPath.isEmpty {
            return "this is no JSON"
        }
        let text = BondFileStore.describe(error)
        return String(text.drop { ".: ".contains($0) })
    }

    /// Returns the encoded document.
    package var octets: [UInt8] {
        let document = Document(
            format: Document.format,
            host: host,
            identity: security.identity.map(IdentityEntry.init),
            bonds: security.bonds.map(BondEntry.init)
        )
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        guard let data = try? encoder.encode(document) else { return [] }
        return Array(data) + [UInt8(ascii: "\n")]
    }

    /// Adds the bonds to those of a host. A bond replaces an existing one with the same peer. Sign counters of the same
    /// keys never decrease: the higher value stays.
    ///
    /// - Parameter takesIdentity: whether the host takes the identity of the host that the bonds come from.
    package func add(to other: inout HostSecurityState, takesIdentity: Bool) throws(BondExportError) {
        if takesIdentity, let identity = security.identity {
            guard other.identity == nil || other.identity == identity else {
                throw BondExportError(
                    description: "these bonds are of a host with another identity, which their peers know it by"
                )
            }
            other.identity = identity
        }
        let earlier = other
        for record in security.bonds {
            var record = record
            for existing in other.bonds where existing.bond.identity == record.bond.identity {
                record.bond.raiseCounters(to: existing.bond)
            }
            other.bonds.removeAll { $0.bond.identity == record.bond.identity }
            other.bonds.append(record)
        }
        other.keepPeerCounters(of: earlier)
    }
}

/// An error in a document of bonds, described in one line.
package struct BondExportError: Error, Hashable, CustomStringConvertible {
    package let description: String
}

private struct Document: Codable {
    static let format = 1

    let format: Int
    let host: String
    let identity: IdentityEntry?
    let bonds: [BondEntry]

    init(format: Int, host: String, identity: IdentityEntry?, bonds: [BondEntry]) {
        self.format = format
        self.host = host
        self.identity = identity
        self.bonds = bonds
    }

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        format = try container.decode(Int.self, forKey: .format)
        guard format == Document.format else {
            throw container.problem(.format, "this version reads format \(Document.format), not \(format)")
        }
        host = try container.decode(String.self, forKey: .host)
        identity = try container.decodeIfPresent(IdentityEntry.self, forKey: .identity)
        bonds = try container.decode([BondEntry].self, forKey: .bonds)
    }
}
