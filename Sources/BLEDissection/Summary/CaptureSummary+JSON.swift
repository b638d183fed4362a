import BLEHCI
import BluetoothTypes

extension CaptureSummary {
    /// Appends the summary as one JSON object, without a line break. Times are in microseconds.
    package func appendJSON(to text: inout TextBuffer) {
        text.append("{\"packets\":{" as StaticString)
        let kinds = Layer.Kind.allCases.filter { packets[$0] != nil }
        text.appendList(kinds) { kind, text in
            text.append("\"\(kind.rawValue)\":\(packets[kind] ?? 0)")
        }
        text.append("},\"malformed\":\(malformed),\"dropped\":\(dropped)")
        text.append(",\"microseconds\":\(lastTime &- (firstTime ?? lastTime))")
        text.append(",\"devices\":[" as StaticString)
        text.appendList(devices.sorted { ($1.value.reports, $0.key.address) < ($0.value.reports, $1.key.address) }) {
            CaptureSummary.append($0.key, $0.value, to: &$1)
        }
        text.append("],\"links\":[" as StaticString)
        text.appendList(links.values.sorted { $0.reference.number < $1.reference.number }) { append($0, to: &$1) }
        text.append("],\"procedures\":" as StaticString)
        CaptureSummary.append(procedures, to: &text)
        text.append(",\"errors\":" as StaticString)
        CaptureSummary.append(errors, to: &text)
        text.append(",\"commands\":" as StaticString)
        CaptureSummary.append(commandTimes.map { (HCIOpcode(rawValue: $0.key).title, $0.value) }, to: &text)
        text.append(",\"requests\":" as StaticString)
        CaptureSummary.append(requestTimes.map { ($0.key, $0.value) }, to: &text)
        text.append(ascii: "}")
    }

    private static func append(_ peer: PeerReference, _ device: Device, to text: inout TextBuffer) {
        text.append("{\"address\":\"" as StaticString)
        text.append(address: peer.address)
        text.append(ascii: "\"")
        if let type = peer.type { text.append(",\"addressType\":\(type)") }
        text.append(",\"reports\":\(device.reports)")
        if let weakest = device.weakest, let strongest = device.strongest {
            text.append(",\"weakest\":\(weakest),\"strongest\":\(strongest)")
        }
        text.append(",\"names\":[" as StaticString)
        text.appendList(device.names) { $1.append(json: $0) }
        text.append("],\"services\":[" as StaticString)
        text.appendList(device.services) { $1.append(json: $0.description) }
        text.append("]}" as StaticString)
    }

    private func append(_ link: Link, to text: inout TextBuffer) {
        text.append("{\"number\":\(link.reference.number),\"handle\":\(link.reference.handle)")
        if let peer = link.reference.peer {
            text.append(",\"peer\":\"" as StaticString)
            text.append(address: peer.address)
            text.append(ascii: "\"")
        }
        if let isCentral = link.reference.isCentral {
            text.append(isCentral ? ",\"role\":\"central\"" : ",\"role\":\"peripheral\"")
        }
        text.append(",\"microseconds\":\((link.end ?? lastTime) &- link.begin),\"isOpen\":\(link.end == nil)")
        if let reason = link.reason {
            text.append(",\"reason\":\(reason.rawValue),\"reasonName\":")
            text.append(json: "\(reason)")
        }
        for (word, traffic) in [("sent", link.sent), ("received", link.received)] {
            text.append(",\"\(word)\":{\"packets\":\(traffic.packets),\"bytes\":\(traffic.byteCount)")
            if let throughput = traffic.throughput {
                text.append(",\"bytesPerSecond\":\(Int64(min(throughput, 1e15)))")
            }
            text.append(ascii: "}")
        }
        text.append(ascii: "}")
    }

    private static func append(_ table: [String: Int], to text: inout TextBuffer) {
        text.append(ascii: "{")
        text.appendList(table.sorted { ($1.value, $0.key) < ($0.value, $1.key) }) { entry, text in
            text.append(json: entry.key)
            text.append(":\(entry.value)")
        }
        text.append(ascii: "}")
    }

    private static func append(_ times: [(String, RoundTrips)], to text: inout TextBuffer) {
        text.append(ascii: "{")
        text.appendList(times.sorted { ($1.1.count, $0.0) < ($0.1.count, $1.0) }) { entry, text in
            text.append(json: entry.0)
            let trips = entry.1
            text.append(":{\"count\":\(trips.count),\"least\":\(trips.least)")
            text.append(",\"median\":\(trips.median ?? 0),\"most\":\(trips.most)}")
        }
        text.append(ascii: "}")
    }
}

extension TextBuffer {
    fileprivate mutating func appendList<Element>(
        _ elements: [Element],
        _ append: (Element, inout TextBuffer) -> Void
    ) {
        for (index, element) in elements.enumerated() {
            if index > 0 { self.append(ascii: ",") }
            append(element, &self)
        }
    }
}
