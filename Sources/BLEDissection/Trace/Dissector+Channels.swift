import BLEByteCoding
import BLECapture
import BLEHCI
import BLEL2CAP
import BluetoothTypes

private enum Names {
    static let cid = FieldName("CID")
    static let length = FieldName("Length")
    static let channel = FieldName("Channel")
    static let code = FieldName("Code")
    static let identifier = FieldName("Identifier")
    static let unit = FieldName("SDU Length")
    static let complete = FieldName("SDU Complete")
    /// The number of bytes that the recorder has cut off.
    static let missing = FieldName("Missing")
}

extension Dissector {
    /// Dissects ACL data. If the capture does not give the direction, the link's state determines it.
    ///
    /// - Parameter cutLength: the number of bytes that the recorder has cut off.
    func dissectACL(
        _ bytes: RawSpan,
        cutLength: Int,
        _ adapter: AdapterState,
        _ isDescribed: Bool,
        _ packet: inout PacketDescription
    ) {
        var layer = Layer(.acl, "ACL Data")
        var reader = ByteReader(bytes)
        do throws(PacketDecodingError) {
            let header = try ACLHeader(decoding: &reader)
            let handle = header.connectionHandle.rawValue
            if isDescribed {
                layer.head = [
                    Field(HCINames.handle, .hexadecimal(UInt64(handle), digits: 4), isInLine: true),
                    Field(
                        HCINames.flags,
                        .hexadecimal(
                            UInt64(header.packetBoundaryFlag.rawValue | header.broadcastFlag.rawValue << 2),
                            digits: 1
                        )
                    ),
                    Field(
                        HCINames.boundary,
                        .named(UInt64(header.packetBoundaryFlag.rawValue), header.packetBoundaryFlag.title)
                    ),
                    Field(HCINames.broadcast, .number(Int64(header.broadcastFlag.rawValue))),
                    Field(HCINames.length, .measure(Int64(header.dataTotalLength), .octets), isInLine: true),
                ]
            }
            let link = link(handle, adapter, at: packet.time)
            packet.link = link.reference
            packet.direction = packet.direction ?? link.direction(of: header.packetBoundaryFlag)
            let direction = packet.direction ?? .controllerToHost
            let length = Int(header.dataTotalLength)
            let missing = reader.remaining + cutLength == length ? cutLength : 0
            let payload = try reader.readBytes(count: length - missing)
            try reader.requireEnd()
            withSummary { $0.noteData(link.number, direction, byteCount: length, at: packet.time) }
            if isDescribed { packet.layers.append(layer) }
            let isStart = header.packetBoundaryFlag != .continuing
            let outcome = link.receive(payload, missing: missing, isStart: isStart, direction) { channel, known, cut in
                dissectFrame(channel.rawValue, known, missing: cut, direction, link, isDescribed, &packet)
            }
            if case .dropped(let violation) = outcome {
                packet.malformed.append(.init(layer: .l2cap, reason: violation.text))
            }
        } catch {
            packet.malformed.append(.init(layer: .acl, reason: "\(error)"))
            guard isDescribed, packet.layers.isEmpty else { return }
            layer.fields.append(Field(.data, .octets([UInt8](copying: bytes))))
            packet.layers.append(layer)
        }
    }

    /// - Parameters:
    ///   - payload: the known part of the frame's payload.
    ///   - cutLength: the number of bytes after this part that the recorder has cut off, or that follow such bytes.
    private func dissectFrame(
        _ identifier: UInt16,
        _ payload: RawSpan,
        missing cutLength: Int,
        _ direction: CaptureDirection,
        _ link: LinkState,
        _ isDescribed: Bool,
        _ packet: inout PacketDescription
    ) {
        let channel = link.channel(identifier, direction)
        let malformedCount = packet.malformed.count
        var missing = cutLength
        var layer = Layer(.l2cap, "L2CAP")
        if isDescribed {
            layer.head.reserveCapacity(3)
            layer.head += [
                Field(Names.cid, .hexadecimal(UInt64(identifier), digits: 4), isInLine: true),
                Field(Names.length, .measure(Int64(payload.byteCount + missing), .octets), isInLine: true),
            ]
            if let name = channel.map({ NamedValues.psms[UInt64($0.psm)] ?? "dynamic" }) ?? fixedName(identifier) {
                layer.head.append(Field(Names.channel, .text(name)))
            }
        }
        switch identifier {
        case 0x0001, ChannelIdentifier.signaling.rawValue:
            dissectSignaling(payload, direction, link, isDescribed, &layer, &packet)
        case ChannelIdentifier.attribute.rawValue:
            if isDescribed { packet.layers.append(layer) }
            dissectAttribute(payload, direction, link, link.bearer, isDescribed, &packet)
        case ChannelIdentifier.securityManager.rawValue, 0x0007:
            if isDescribed { packet.layers.append(layer) }
            dissectSecurity(payload, isDescribed, &packet)
        default:
            dissectChannel(payload, direction, link, channel, isDescribed, &layer, &missing, &packet)
        }
        guard missing > 0 else { return }
        // The missing bytes are the reason for these errors.
        packet.malformed.removeLast(packet.malformed.count - malformedCount)
        guard isDescribed else { return }
        let field = Field(Names.missing, .measure(Int64(missing), .octets), isInLine: true)
        packet.layers[packet.layers.count - 1].fields.append(field)
    }

    private func fixedName(_ identifier: UInt16) -> String? {
        switch identifier {
        case 0x0001, 0x0005: "signaling"
        case 0x0002: "connectionless"
        case 0x0003: "AMP manager"
        case 0x0004: "ATT"
        case 0x0006, 0x0007: "SMP"
        default: nil
        }
    }

    // MARK: Connection-oriented channels

    private func dissectChannel(
        _ payload: RawSpan,
        _ direction: CaptureDirection,
        _ link: LinkState,
        _ channel: ChannelState?,
        _ isDescribed: Bool,
        _ layer: inout Layer,
        _ missing: inout Int,
        _ packet: inout PacketDescription
    ) {
        guard let channel else {
            if isDescribed {
                layer.fields.append(Field(.data, .octets([UInt8](copying: payload))))
                packet.layers.append(layer)
            }
            return
        }
        guard channel.isCreditBased else {
            if isDescribed { packet.layers.append(layer) }
            if let bearer = channel.bearer {
                dissectAttribute(payload, direction, link, bearer, isDescribed, &packet)
            } else if isDescribed {
                packet.layers[packet.layers.count - 1].fields.append(Field(.data, .octets([UInt8](copying: payload))))
            }
            return
        }
        dissectKFrame(payload, direction, link, channel, isDescribed, &layer, &missing, &packet)
    }

    /// - Parameter missing: the number of bytes of the frame after `payload`. Set to that of the SDU if an SDU is
    ///   dissected.
    private func dissectKFrame(
        _ payload: RawSpan,
        _ direction: CaptureDirection,
        _ link: LinkState,
        _ channel: ChannelState,
        _ isDescribed: Bool,
        _ layer: inout Layer,
        _ missing: inout Int,
        _ packet: inout PacketDescription
    ) {
        layer.title = "K-frame"
        var reader = ByteReader(payload)
        var whole: [UInt8]?
        do throws(PacketDecodingError) {
            var remaining = channel.withUnit(direction) { $0.remaining }
            if remaining == 0 {
                let length = Int(try reader.readUInt16())
                remaining = length
                channel.withUnit(direction) { $0.begin() }
                if isDescribed {
                    layer.fields.append(Field(Names.unit, .measure(Int64(length), .octets), isInLine: true))
                }
            }
            let data = reader.readRemaining()
            let cutLength = missing
            let length = data.byteCount + cutLength
            guard length <= remaining else {
                channel.withUnit(direction) { $0.remaining = 0 }
                throw .invalidLength(length, field: "K-frame")
            }
            remaining -= length
            channel.withUnit(direction) { $0.remaining = remaining }
            if channel.bearer != nil {
                let octets = [UInt8](copying: data)
                channel.withUnit(direction) { $0.collect(octets, cutLength: cutLength) }
                if remaining == 0 {
                    whole = channel.withUnit(direction) { $0.collected }
                    missing = channel.withUnit(direction) { $0.missing }
                }
            }
            if isDescribed {
                layer.fields.append(Field(Names.complete, .truth(remaining == 0)))
                layer.fields.append(Field(.data, .octets([UInt8](copying: data))))
            }
        } catch {
            packet.malformed.append(.init(layer: .l2cap, reason: "\(error)"))
            if isDescribed { layer.fields.append(Field(.data, .octets([UInt8](copying: payload)))) }
        }
        if isDescribed { packet.layers.append(layer) }
        if let bearer = channel.bearer, let whole {
            dissectAttribute(whole.rawSpan, direction, link, bearer, isDescribed, &packet)
        }
    }

    // MARK: Signaling

    private func dissectSignaling(
        _ payload: RawSpan,
        _ direction: CaptureDirection,
        _ link: LinkState,
        _ isDescribed: Bool,
        _ layer: inout Layer,
        _ packet: inout PacketDescription
    ) {
        var reader = ByteReader(payload)
        var commands: [[Field]] = []
        do throws(PacketDecodingError) {
            // On BR/EDR a frame may contain several commands, on LE only one (Vol 3, Part A, 4).
            repeat {
                let code = try reader.readUInt8()
                let identifier = try reader.readUInt8()
                let title = SignalingLayouts.names[code] ?? "Command 0x" + hexadecimalDigits(code, count: 2)
                if commands.isEmpty { layer.title = title }
                var fields = [
                    Field(Names.code, .named(UInt64(code), title), isInLine: !commands.isEmpty),
                    Field(Names.identifier, .number(Int64(identifier))),
                ]
                let data: RawSpan
                do throws(PacketDecodingError) {
                    data = try reader.readBytes(count: Int(try reader.readUInt16()))
                } catch {
                    commands.append(fields)
                    throw error
                }
                follow(code, identifier, data, direction, link)
                guard isDescribed else { continue }
                var parameters = ByteReader(data)
                if let layout = SignalingLayouts.commands[UInt16(code)] {
                    if let error = layout.read(&parameters, into: &fields) {
                        packet.malformed.append(.init(layer: .l2cap, reason: "\(error)"))
                    }
                } else {
                    fields.append(Field(.data, .octets([UInt8](copying: data)), isInLine: true))
                }
                commands.append(fields)
            } while !reader.isAtEnd
        } catch {
            packet.malformed.append(.init(layer: .l2cap, reason: "\(error)"))
            if isDescribed { layer.fields.append(Field(.data, .octets([UInt8](copying: payload)))) }
        }
        guard isDescribed else { return }
        if !commands.isEmpty {
            layer.fields.append(
                Field(FieldName("Signaling"), .list(commands.map { .fields($0) }), isInLine: true)
            )
        }
        packet.layers.append(layer)
    }

    /// Tracks channels that are opened and closed.
    private func follow(
        _ code: UInt8,
        _ identifier: UInt8,
        _ data: RawSpan,
        _ direction: CaptureDirection,
        _ link: LinkState
    ) {
        let words = data.words
        switch code {
        case 0x02 where words.count >= 2:
            link.propose(
                .init(psm: words[0], sources: [words[1]], isCreditBased: false),
                identifier: identifier,
                from: direction
            )
        case 0x03 where words.count >= 3 && (words[2] == 0 || words[2] == 1):
            link.answer(
                identifier: identifier,
                destinations: words[2] == 0 ? [words[0]] : [],
                isFinal: words[2] == 0,
                from: direction
            )
        case 0x14 where words.count >= 2:
            link.propose(
                .init(psm: words[0], sources: [words[1]], isCreditBased: true),
                identifier: identifier,
                from: direction
            )
        case 0x15 where words.count >= 5:
            let destinations = words[4] == 0 ? [words[0]] : []
            link.answer(identifier: identifier, destinations: destinations, isFinal: true, from: direction)
        case 0x17 where words.count >= 5:
            link.propose(
                .init(psm: words[0], sources: Array(words[4...]), isCreditBased: true),
                identifier: identifier,
                from: direction
            )
        case 0x18 where words.count >= 4:
            let isPending = (0x0D...0x0F).contains(words[3])
            link.answer(
                identifier: identifier,
                destinations: isPending ? [] : Array(words[4...]),
                isFinal: !isPending,
                from: direction
            )
        case 0x07 where words.count >= 2:
            // The response repeats both ends in the order of the request.
            link.close(destination: words[0], source: words[1], from: direction.opposite)
        default: break
        }
    }

    // MARK: Security Manager

    private func dissectSecurity(_ payload: RawSpan, _ isDescribed: Bool, _ packet: inout PacketDescription) {
        guard let code = payload[checked: 0] else {
            packet.malformed.append(.init(layer: .smp, reason: "no code"))
            return
        }
        if code == 0x05, let reason = payload[checked: 1] {
            let all = NamedValues.all["pairingFailed"]
            withSummary { $0.noteError(all?[UInt64(reason)] ?? "reason \(reason)", in: "Pairing Failed") }
        }
        guard isDescribed else { return }
        let title = SecurityLayouts.names[code] ?? "Command 0x" + hexadecimalDigits(code, count: 2)
        var layer = Layer(.smp, title, head: [Field(Names.code, .hexadecimal(UInt64(code), digits: 2))])
        let data = payload.extracting(droppingFirst: 1)
        if let layout = SecurityLayouts.commands[UInt16(code)] {
            var reader = ByteReader(data)
            if let error = layout.read(&reader, into: &layer.fields) {
                packet.malformed.append(.init(layer: .smp, reason: "\(error)"))
            }
        } else {
            packet.malformed.append(.init(layer: .smp, reason: "an unknown code"))
            layer.fields.append(Field(.data, .octets([UInt8](copying: data))))
        }
        packet.layers.append(layer)
    }
}

extension RawSpan {
    /// The bytes as 16-bit numbers, at most sixteen.
    fileprivate var words: [UInt16] {
        var reader = ByteReader(self)
        var words: [UInt16] = []
        while words.count < 16, let word = try? reader.readUInt16() { words.append(word) }
        return words
    }
}

extension PacketBoundaryFlag {
    fileprivate var title: String {
        switch self {
        case .firstNonFlushable: "first, non-flushable"
        case .continuing: "continuing"
        case .firstFlushable: "first, flushable"
        case .complete: "complete"
        }
    }
}

extension Reassembler.Violation {
    fileprivate var text: String {
        switch self {
        case .unexpectedContinuation: "a continuing fragment of no frame"
        case .interruptedFrame: "the frame before was not complete"
        case .excessBytes: "more bytes than the frame's length says"
        case .oversizedFrame(let length): "a frame of \(length) bytes"
        case .emptyStart: "an empty fragment starts a frame"
        }
    }
}
