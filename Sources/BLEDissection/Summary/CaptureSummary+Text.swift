import BLEHCI
import BluetoothTypes

extension CaptureSummary {
    /// Appends the summary as lines of text.
    package func appendText(to text: inout TextBuffer) {
        appendCounts(to: &text)
        appendDevices(to: &text)
        appendLinks(to: &text)
        appendTable("Procedures", procedures, to: &text)
        appendTable("Errors", errors, to: &text)
        appendTimes("Commands", commandTimes.map { (HCIOpcode(rawValue: $0.key).title, $0.value) }, to: &text)
        appendTimes("ATT requests", requestTimes.map { ($0.key, $0.value) }, to: &text)
    }

    private func appendCounts(to text: inout TextBuffer) {
        let total = packets.values.reduce(0, +)
        text.append("\(total) packets")
        if let firstTime {
            text.append(" from " as StaticString)
            text.append(time: firstTime)
            text.append(" in " as StaticString)
            text.append(duration: lastTime &- firstTime)
        }
        var counts = Layer.Kind.allCases.compactMap { kind in packets[kind].map { "\($0) \(kind.rawValue)" } }
        if !counts.isEmpty { counts.append("\(malformed) malformed") }
        if dropped > 0 { counts.append("\(dropped) dropped") }
        if !counts.isEmpty { text.append(": " + counts.joined(separator: ", ")) }
        text.append(ascii: "\n")
    }

    private func appendDevices(to text: inout TextBuffer) {
        guard !devices.isEmpty else { return }
        text.append("\nDevices\n" as StaticString)
        let sorted = devices.sorted { ($1.value.reports, $0.key.address) < ($0.value.reports, $1.key.address) }
        for (peer, device) in sorted {
            text.append("  " as StaticString)
            text.append(address: peer.address)
            text.append(
                peer.type.map { " \(NamedValues.all["addressType"]?[UInt64($0)] ?? "type \($0)")" } ?? " BR/EDR"
            )
            text.append(", \(device.reports) reports")
            if let weakest = device.weakest, let strongest = device.strongest {
                text.append(weakest == strongest ? ", \(weakest) dBm" : ", \(weakest) to \(strongest) dBm")
            }
            for name in device.names {
                text.append(", \"" as StaticString)
                text.append(foreign: name)
                text.append(ascii: "\"")
            }
            if !device.services.isEmpty {
                text.append(", " as StaticString)
                text.append(device.services.map { $0.name ?? $0.description }.joined(separator: " + "))
            }
            text.append(ascii: "\n")
        }
        if uncountedReports > 0 { text.append("  and \(uncountedReports) reports of other devices\n") }
    }

    private func appendLinks(to text: inout TextBuffer) {
        guard !links.isEmpty else { return }
        text.append("\nLinks\n" as StaticString)
        for link in links.values.sorted(by: { $0.reference.number < $1.reference.number }) {
            text.append("  #\(link.reference.number) 0x" as String)
            text.append(hexadecimal: UInt64(link.reference.handle), digits: 4)
            text.append(ascii: " ")
            if let peer = link.reference.peer {
                text.append(address: peer.address)
            } else {
                text.append("made before the capture" as StaticString)
            }
            if let isCentral = link.reference.isCentral { text.append(isCentral ? ", central" : ", peripheral") }
            text.append(", " as StaticString)
            text.append(duration: (link.end ?? lastTime) &- link.begin)
            if link.end == nil {
                text.append(", open at the end" as StaticString)
            } else if let reason = link.reason {
                text.append(", \(reason)")
            }
            appendTraffic("sent", link.sent, to: &text)
            appendTraffic("received", link.received, to: &text)
            text.append(ascii: "\n")
        }
        if uncountedLinks > 0 { text.append("  and \(uncountedLinks) more\n") }
    }

    private func appendTraffic(_ word: String, _ traffic: Traffic, to text: inout TextBuffer) {
        text.append(", \(word) \(traffic.byteCount) bytes in \(traffic.packets) packets")
        guard let throughput = traffic.throughput else { return }
        text.append(" (" as StaticString)
        text.append(decimal: Int64(min(throughput, 1e15)))
        text.append(" bytes/s)" as StaticString)
    }

    private func appendTable(_ title: String, _ table: [String: Int], to text: inout TextBuffer) {
        guard !table.isEmpty else { return }
        text.append("\n\(title)\n")
        for (key, count) in table.sorted(by: { ($1.value, $0.key) < ($0.value, $1.key) }) {
            text.append(decimal: Int64(count), width: 8)
            text.append("  \(key)\n")
        }
    }

    private func appendTimes(_ title: String, _ times: [(String, RoundTrips)], to text: inout TextBuffer) {
        guard !times.isEmpty else { return }
        text.append("\nRound trips: \(title) (least, median, most)\n")
        for (name, trips) in times.sorted(by: { ($1.1.count, $0.0) < ($0.1.count, $1.0) }) {
            text.append(decimal: Int64(trips.count), width: 8)
            text.append("  \(name): ")
            text.append(duration: trips.least)
            text.append(", " as StaticString)
            text.append(duration: trips.median ?? 0)
            text.append(", " as StaticString)
            text.append(duration: trips.most)
            text.append(ascii: "\n")
        }
    }
}
