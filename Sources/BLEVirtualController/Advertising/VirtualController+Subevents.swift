import BLEByteCoding
import BLEHCI
import BluetoothTypes

// The advertiser of a train with subevents.
extension VirtualController {
    /// The number of subevents whose data is requested by one event.
    private static let subeventsPerRequest = 8

    /// Requests the data of the first event of a train.
    func requestFirstData(of train: PeriodicTrain) {
        guard let subevents = train.subevents else { return }
        for start in stride(from: 0, to: Int(subevents.count), by: Self.subeventsPerRequest) {
            requestData(from: start, of: train, subevents)
        }
    }

    private func requestData(from start: Int, of train: PeriodicTrain, _ subevents: SubeventTiming) {
        tellLE(
            LEPeriodicAdvertisingSubeventDataRequest(
                advertisingHandle: train.handle,
                subeventStart: UInt8(start),
                subeventDataCount: UInt8(min(Self.subeventsPerRequest, Int(subevents.count) - start))
            )
        )
    }

    /// Sends a subevent, receives its responses, and continues with the next subevent.
    ///
    /// A subevent without data has an empty packet, and asks for no response. A connection request takes the place of
    /// the packet, whose data remains for the next event.
    func transmit(_ subevent: UInt8, of train: PeriodicTrain, _ run: UInt64) {
        guard train.run == run, let subevents = train.subevents, let index = advertiser.index(of: train.handle) else {
            return
        }
        train.removeStaleResponses(to: subevent)
        if connect(inSubevent: subevent, of: train, advertiser.sets[index]) {
            // The request has no response slots.
            train.responses[subevent]?.removeAll { $0.event == train.eventCounter }
            return continueAfter(subevent, of: train, run, subevents)
        }
        let parameters = advertiser.sets[index].parameters
        let content = train.subeventData.removeValue(forKey: subevent)
        let packet = PeriodicPacket(
            data: content?.data.bytes ?? [],
            power: train.properties.contains(.includeTXPower) ? parameters.transmitPower : 127,
            phy: parameters.secondaryPHY,
            interval: train.interval,
            event: train.eventCounter,
            subevent: subevent,
            subevents: subevents
        )
        for receiver in train.receivers(of: subevent) { receiver.hear(packet, from: self, parameters) }
        let first = content.map { Int($0.responseSlotStart) } ?? 0
        let end = min(first + (content.map { Int($0.responseSlotCount) } ?? 0), Int(subevents.responseSlotCount))
        let event = train.eventCounter
        if first < end {
            schedule(after: subevents.endOfSlots) {
                guard train.run == run else { return }
                $0.reportResponses(to: subevent, of: train, event, slots: first..<end, phy: parameters.secondaryPHY)
            }
        } else {
            train.responses[subevent]?.removeAll { $0.event == event }
        }
        continueAfter(subevent, of: train, run, subevents)
    }

    /// Requests data if that of the last request was sent, and schedules the next subevent of the event.
    private func continueAfter(
        _ subevent: UInt8,
        of train: PeriodicTrain,
        _ run: UInt64,
        _ subevents: SubeventTiming
    ) {
        // The data of all subevents of a request was sent with its last one.
        let next = Int(subevent) + 1
        if next == Int(subevents.count) || next.isMultiple(of: Self.subeventsPerRequest) {
            requestData(from: Int(subevent) / Self.subeventsPerRequest * Self.subeventsPerRequest, of: train, subevents)
        }
        if next < Int(subevents.count) {
            schedule(after: subevents.intervalDuration) { $0.transmit(UInt8(next), of: train, run) }
        }
    }

    /// Reports the responses in the slots of a subevent. Several responses in one slot are lost.
    private func reportResponses(
        to subevent: UInt8,
        of train: PeriodicTrain,
        _ event: UInt16,
        slots: Range<Int>,
        phy: PHY
    ) {
        var received: [SubeventResponse?] = Array(repeating: nil, count: slots.count)
        var isDisturbed = Array(repeating: false, count: slots.count)
        for response in train.responses[subevent] ?? [] where response.event == event {
            let place = Int(response.slot) - slots.lowerBound
            guard received.indices.contains(place), let sender = response.sync.receiver, response.sync.train === train,
                air.getsThrough(from: sender, to: self, phy: phy)
            else { continue }
            if received[place] != nil { isDisturbed[place] = true }
            received[place] = response
        }
        train.responses[subevent]?.removeAll { $0.event == event }
        guard host.wants(subevent: LEPeriodicAdvertisingResponseReport.subeventCode) else { return }
        var writer = ResponseReportWriter(handle: train.handle, subevent: subevent)
        for slot in slots {
            let place = slot - slots.lowerBound
            guard !isDisturbed[place], let response = received[place], let sender = response.sync.receiver else {
                add(.init(responseSlot: UInt8(slot), dataStatus: .failedToReceive, data: RawSpan()), to: &writer)
                continue
            }
            let sendsPower = response.sync.responseProperties.contains(.includeTXPower)
            let (power, rssi) = (
                sendsPower ? sender.configuration.transmitPower : 127, air.rssi(at: self, from: sender)
            )
            for fragment in ReportFragment.all(
                of: response.data,
                received: response.data.count,
                perReport: ResponseReportWriter.maximumDataLength
            ) {
                add(
                    .init(
                        txPower: power,
                        rssi: rssi,
                        responseSlot: response.slot,
                        dataStatus: fragment.status,
                        data: response.data.rawSpan.extracting(fragment.range)
                    ),
                    to: &writer
                )
            }
        }
        finish(&writer)
    }

    private func add(
        _ response: borrowing LEPeriodicAdvertisingResponseReport.Response,
        to writer: inout ResponseReportWriter
    ) {
        if !writer.hasRoom(for: response) { finish(&writer) }
        writer.append(response)
    }

    private func finish(_ writer: inout ResponseReportWriter) {
        guard let packet = writer.take() else { return }
        send(packet, .event)
    }
}

/// Collects responses for one event.
private struct ResponseReportWriter {
    /// Maximum number of bytes of all responses in one event.
    private static let maximumLength = 250
    /// Maximum number of data bytes of a response in one event.
    static let maximumDataLength = 244

    let handle: UInt8
    let subevent: UInt8
    private var count: UInt8 = 0
    private var responses = PacketBuffer()

    init(handle: UInt8, subevent: UInt8) {
        self.handle = handle
        self.subevent = subevent
    }

    func hasRoom(for response: borrowing LEPeriodicAdvertisingResponseReport.Response) -> Bool {
        responses.bytes.byteCount + response.byteCount <= Self.maximumLength
    }

    mutating func append(_ response: borrowing LEPeriodicAdvertisingResponseReport.Response) {
        count += 1
        response.encode(into: &responses)
    }

    /// Returns the packet of the collected responses, and starts another one; nil if there is no response.
    mutating func take() -> [UInt8]? {
        guard count > 0 else { return nil }
        defer {
            count = 0
            responses.reset()
        }
        return PacketBuffer.bytes { buffer in
            buffer.append(PacketType.event.rawValue)
            LEPeriodicAdvertisingResponseReport(
                advertisingHandle: handle,
                subevent: subevent,
                numResponses: count,
                responses: responses.bytes
            ).encodePacket(into: &buffer)
        }
    }
}
